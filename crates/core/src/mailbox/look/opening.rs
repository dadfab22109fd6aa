//! A message whose beginning has yet to come, when a task retrieves it: a worker waits for it, and the task does not block.
//!
//! It stays the mailbox's next message, whatever form of retrieving comes next, so that a dropped future loses nothing and
//! messages keep their order. What comes meanwhile waits behind it; only another rank's may be asked for.

use std::sync::Arc;

use super::held::{Held, Opened};
use super::{Outcome, Places, Reach, TURN, Taken};
use crate::blocking::block_in_place;
use crate::delivery::Core;
use crate::incoming::Incoming;
use crate::message::{Flags, Payload, ticket_at};
use crate::process::Process;
use crate::rank::{ProcessId, Rank};

impl Taken {
    /// Whether to open it may mean to wait: for its table, or for the memory that it lies in.
    pub(in crate::mailbox) fn may_wait(&self) -> bool {
        let is_single = self.flags.has(Flags::SINGLE);
        let Some(lender) = &self.lender else {
            return match &self.payload {
                Payload::Offered(offered) => offered.head().is_empty() && !is_single,
                _ => false,
            };
        };
        let is_lent = self.flags.has(Flags::LENT) && !self.flags.has(Flags::HANDED);
        if is_lent || self.flags.has(Flags::STREAM) && !is_single {
            return true;
        }
        ticket_at(&self.payload, 0).is_some_and(|ticket| !lender.knows_slab(ticket.slab))
    }

    fn opened(source: ProcessId, opened: Opened) -> Self {
        Self {
            source,
            flags: Flags::default(),
            payload: Payload::Owned(Vec::new()),
            lender: None,
            opened: Some(Box::new(opened)),
        }
    }
}

impl Places {
    /// Has a worker open a message, which stays the next one.
    pub(in crate::mailbox) fn open_aside(
        &self,
        process: &Arc<Process>,
        core: &Arc<Core>,
        taken: Taken,
    ) {
        let held = Arc::new(Held::new(taken.source));
        self.hold(Arc::clone(&held));
        let (process, core) = (Arc::clone(process), Arc::clone(core));
        let workers = Arc::clone(process.workers());
        drop(workers.spawn(async move {
            let Taken {
                source,
                flags,
                payload,
                lender,
                ..
            } = taken;
            let open = || {
                let process = Arc::clone(&process);
                Incoming::open(process, source, flags, payload, lender.as_ref())
            };
            held.finish(block_in_place(open));
            core.look();
            process.mailboxes.wake(&core);
        }));
    }

    fn hold(&self, held: Arc<Held>) {
        *self.held.borrow_mut() = Some(held);
        // So that nothing is taken from the hot place past it.
        self.streak.set(TURN);
    }

    /// Whether a message is held that nothing may overtake; of this rank, if one is given. Without one: or whether somebody
    /// else has the places.
    #[inline]
    pub(in crate::mailbox) fn is_holding(&self, rank: Option<Rank>) -> bool {
        // Read first because it is at hand: what is held has ended the turn of the hot place.
        self.streak.get() >= TURN && self.is_held_back(rank)
    }

    /// Whether a message is held that a worker opens.
    pub(in crate::mailbox) fn is_held(&self) -> bool {
        self.held.borrow().is_some()
    }

    fn is_held_back(&self, rank: Option<Rank>) -> bool {
        let held = self.held.borrow();
        match rank {
            Some(rank) => held.as_ref().is_some_and(|held| held.source.rank == rank),
            None => held.is_some() || self.elsewhere.borrow().is_some(),
        }
    }

    /// Whether the message that is held is open, or whoever has the places has something.
    pub(super) fn is_held_ready(&self) -> bool {
        match &*self.held.borrow() {
            Some(held) => held.is_done(),
            None => self.elsewhere().is_some_and(|other| other.is_ready()),
        }
    }

    /// The message that is held, if it is open; otherwise what whoever has the places finds.
    #[cold]
    pub(super) fn poll_held(
        &self,
        process: &Arc<Process>,
        core: &Arc<Core>,
        reach: Reach,
    ) -> Option<Outcome> {
        if self.held.borrow().is_none() {
            return self.poll_elsewhere(process, core, reach);
        }
        let opened = self.poll_opened();
        if opened.is_none() {
            // What is posted does not wait for it.
            self.elsewhere().inspect(|other| other.move_on());
        }
        opened
    }

    /// The message that is held, if it is open.
    pub(super) fn poll_opened(&self) -> Option<Outcome> {
        if !self
            .held
            .borrow()
            .as_ref()
            .is_some_and(|held| held.is_done())
        {
            return None;
        }
        let held = self.held.take()?;
        let is_elsewhere = self.elsewhere.borrow().is_some();
        self.streak.set(if is_elsewhere { TURN } else { 0 });
        let opened = held.take()?;
        Some(Ok(Taken::opened(held.source, opened)))
    }
}
