//! Where posted receives and messages meet.
//!
//! Whoever looks holds the lock: a thread that waits for a receive, the owner that retrieves, a thread that waits for something
//! else, and the reactor for all who sleep. The exchange is *armed* while somebody sleeps: the reactor's bell stands in the
//! mailbox's watch then, and the reactor looks for everybody, as for the task of a mailbox. Nobody else writes the watch while
//! the exchange has the places.
//!
//! Long messages are not copied under the lock. A thread that waits for one copies it itself; the others are copied by one
//! worker, one after the other.

use core::mem;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::task::{Wake, Waker};

use super::board::Board;
use super::memory::Target;
use super::slot::{Came, Slot, Waiter, Whose, Withdrawn};
use crate::bells::REACTOR_BELL;
use crate::blocking::block_in_place;
use crate::delivery::{Core, Looker, Searched, What};
use crate::error::{Error, Gone, RetrieveError};
use crate::incoming::Incoming;
use crate::lock::{lock, try_lock};
use crate::mailbox::look::among::Among;
use crate::mailbox::look::{Outcome, Places, Reach, Taken};
use crate::process::Process;
use crate::rank::Rank;
use crate::standing::UnderWay;

/// Messages that one turn gives to receives: then others get the lock.
const TURN: u32 = 128;

/// The exchange of one mailbox.
pub(in crate::mailbox) struct Exchange {
    pub(super) process: Arc<Process>,
    pub(super) core: Arc<Core>,
    me: Weak<Self>,
    inner: Mutex<Inner>,
}

pub(super) struct Inner {
    /// The mailbox's, while anything is posted.
    pub(super) places: Option<Box<Places>>,
    pub(super) board: Board,
    /// What was given to a receive and did not fit: the owner's.
    pub(super) refused: VecDeque<Taken>,
    /// How far searches of the queue have come: for receives, and for the owner.
    searched: Searched,
    pub(super) owner_searched: Searched,
    /// The owner, if it sleeps, and for what.
    pub(super) owner: Option<(Waiter, What)>,
    /// How many posted receives are awaited by somebody who sleeps.
    waiters: usize,
    /// Whether a thread sleeps that waits for something else.
    is_watched: bool,
    is_armed: bool,
    /// Whether a rank that a receive names may be gone.
    checks_gone: bool,
    /// Receives that a worker is to fill.
    to_fill: VecDeque<Arc<Slot>>,
    is_filling: bool,
    /// Who is to be woken when the lock is free.
    woken: Vec<Waiter>,
}

impl Exchange {
    pub(in crate::mailbox) fn new(process: Arc<Process>, core: Arc<Core>) -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            process,
            core,
            me: Weak::clone(me),
            inner: Mutex::new(Inner {
                places: None,
                board: Board::default(),
                refused: VecDeque::new(),
                searched: Searched::default(),
                owner_searched: Searched::default(),
                owner: None,
                waiters: 0,
                is_watched: false,
                is_armed: false,
                checks_gone: false,
                to_fill: VecDeque::new(),
                is_filling: false,
                woken: Vec::new(),
            }),
        })
    }

    /// It has the places of its mailbox from now on.
    pub(in crate::mailbox) fn take_over(self: &Arc<Self>, places: Places) {
        self.with(|inner| inner.places = Some(Box::new(places)));
        self.process.standing.add(self);
    }

    /// The mailbox is closed: nothing will come. Gives back its places.
    pub(in crate::mailbox) fn close(&self) -> Option<Box<Places>> {
        let (places, refused) = self.with(|inner| {
            for slot in inner.board.take_all() {
                let error = Error::from(RetrieveError::Closed);
                inner.woken.extend(slot.fail(error));
            }
            inner.owner = None;
            inner.waiters = 0;
            (self.give_back(inner), mem::take(&mut inner.refused))
        });
        refused.iter().for_each(super::slot::discard);
        places
    }

    /// Posts a receive.
    pub(super) fn post(&self, slot: Arc<Slot>) {
        self.with(|inner| {
            inner.checks_gone |= slot.from != Whose::Anybody;
            if inner.board.post(slot) {
                inner.search_anew();
            }
            // Somebody sleeps: it may be here already, and nobody else looks.
            if inner.is_armed {
                self.look_again(inner);
            }
        });
    }

    /// Withdraws a receive, unless a message was for it.
    pub(super) fn withdraw(&self, slot: &Slot) -> Withdrawn {
        self.with(|inner| {
            let withdrawn = slot.withdraw();
            if let Withdrawn::Posted { was_awaited } = withdrawn {
                inner.waiters -= usize::from(was_awaited);
                inner.board.note_withdrawn(slot.from);
                inner.search_anew();
            }
            withdrawn
        })
    }

    /// Looks for messages. If one comes for `mine` and is long, the caller copies it.
    pub(super) fn look(&self, mine: Option<&Arc<Slot>>, reach: Reach) {
        self.with(|inner| {
            self.turn(inner, reach);
            if let Some(mine) = mine {
                inner.to_fill.retain(|slot| !Arc::ptr_eq(slot, mine));
            }
        });
    }

    /// Leaves word of who waits for a receive and is about to sleep, and looks once more.
    pub(super) fn leave(&self, slot: &Slot, waiter: Waiter) {
        self.with(|inner| {
            let Some(is_new) = slot.leave(waiter) else {
                return;
            };
            inner.waiters += usize::from(is_new);
            self.arm(inner);
            if !inner.is_armed && slot.is_posted() {
                // There is no reactor: the task asks again at once, rather than never.
                let waiter = slot.take_waiter();
                inner.waiters -= usize::from(waiter.is_some());
                inner.woken.extend(waiter);
            }
        });
    }

    /// Nobody waits for a receive any longer.
    pub(super) fn retract(&self, slot: &Slot) {
        self.with(|inner| inner.waiters -= usize::from(slot.retract()));
    }

    /// Copies a long message into the memory of a receive, if there is one and nobody does.
    pub(super) fn fill(&self, slot: &Slot) -> bool {
        let Some((taken, mut memory)) = slot.begin_filling() else {
            return false;
        };
        let process = Arc::clone(&self.process);
        let outcome = copy(process, *taken, &mut *memory);
        if let Some(waiter) = slot.end_filling(memory, outcome) {
            waiter.wake(&self.process.bells);
        }
        true
    }

    /// Has the lock, and afterwards wakes whom that concerns.
    pub(super) fn with<T>(&self, run: impl FnOnce(&mut Inner) -> T) -> T {
        self.with_guard(lock(&self.inner), run)
    }

    fn with_guard<T>(
        &self,
        mut inner: MutexGuard<'_, Inner>,
        run: impl FnOnce(&mut Inner) -> T,
    ) -> T {
        let outcome = run(&mut inner);
        let woken = mem::take(&mut inner.woken);
        let needs_worker = !inner.to_fill.is_empty() && !inner.is_filling;
        inner.is_filling |= needs_worker;
        drop(inner);
        if needs_worker {
            self.start_filling();
        }
        // Wakers are code of the program.
        woken
            .into_iter()
            .for_each(|waiter| waiter.wake(&self.process.bells));
        outcome
    }

    /// Has a worker fill what nobody waits for with a thread.
    fn start_filling(&self) {
        let Some(me) = self.me.upgrade() else { return };
        let fill_all = move || {
            while let Some(slot) = me.next_to_fill() {
                me.fill(&slot);
            }
        };
        let workers = self.process.workers();
        drop(workers.spawn(async move { block_in_place(fill_all) }));
    }

    fn next_to_fill(&self) -> Option<Arc<Slot>> {
        let mut inner = lock(&self.inner);
        let slot = inner.to_fill.pop_front();
        inner.is_filling = slot.is_some();
        slot
    }

    /// Gives messages to receives. `true` if there may be more.
    pub(super) fn turn(&self, inner: &mut Inner, reach: Reach) -> bool {
        let mut reach = reach;
        if inner.places.is_none() {
            return false;
        }
        let has_seen_news = inner
            .places
            .as_ref()
            .is_some_and(|places| places.has_seen_news());
        if self.core.has_news() || has_seen_news {
            // A message that a worker opened for the owner may be the news.
            inner.wake_owner();
            inner.checks_gone = true;
        }
        // Read before the look: what they sent before they went is found then.
        let gone = if inner.checks_gone {
            reach = Reach::All;
            Gones::of(&self.process, &inner.board)
        } else {
            Gones::default()
        };
        for _ in 0..TURN {
            if inner.board.is_empty() {
                inner.is_watched = false;
                return false;
            }
            match self.next(inner, reach) {
                Some(Ok(taken)) => inner.give(taken),
                Some(Err(error)) => inner.tell(error),
                None => {
                    self.fail_gone(inner, &gone);
                    return false;
                }
            }
        }
        true
    }

    fn next(&self, inner: &mut Inner, reach: Reach) -> Option<Outcome> {
        let Inner {
            places,
            board,
            searched,
            ..
        } = inner;
        let places = places.as_ref()?;
        if board.wants_anything() {
            return places.poll(&self.process, &self.core, reach);
        }
        let among = Among {
            wants: &|rank| board.wants(rank),
            news: false,
        };
        places.poll_among(&self.process, &self.core, &among, searched, reach)
    }

    /// Ends the receives for which no message can come. A look has found nothing for them.
    fn fail_gone(&self, inner: &mut Inner, gone: &Gones) {
        if !inner.checks_gone {
            return;
        }
        let Some(places) = &inner.places else { return };
        inner.checks_gone = gone.are_uncertain || self.core.has_news();
        if let Some(failed) = gone.failed {
            for slot in inner.board.take_all() {
                inner.fail(&slot, failed);
            }
            return;
        }
        let mut sure = Vec::new();
        for (gone, is_final) in &gone.ranks {
            if places.has_message_of(&self.process, &self.core, gone.rank()) {
                inner.checks_gone = true;
            } else {
                sure.push((*gone, *is_final));
            }
        }
        for (gone, is_final) in sure {
            let life = Some(gone.process());
            let ends = |from| matches!(from, Whose::Rank(_, over) if is_final || over != life);
            for slot in inner.board.take_of(gone.rank(), ends) {
                inner.fail(&slot, gone);
            }
            inner.search_anew();
        }
    }

    /// Somebody is about to sleep: the reactor looks for it.
    pub(super) fn arm(&self, inner: &mut Inner) {
        if !inner.is_armed && inner.places.is_some() {
            if self.process.ensure_reactor().is_err() {
                inner.wake_owner();
                return;
            }
            self.leave_with_reactor(inner);
            self.look_again(inner);
        }
    }

    fn leave_with_reactor(&self, inner: &mut Inner) {
        let Some(me) = self.me.upgrade() else { return };
        inner.is_armed = true;
        self.core
            .set_waker(Waker::from(me), Looker::Reactor, What::Anything);
        self.core.watch.announce_sleep(REACTOR_BELL);
    }

    /// After the bell was left: what came just before.
    fn look_again(&self, inner: &mut Inner) {
        while self.turn(inner, Reach::All) {}
    }

    /// Its places are the owner's again.
    pub(super) fn give_back(&self, inner: &mut Inner) -> Option<Box<Places>> {
        let places = inner.places.take()?;
        inner.is_watched = false;
        inner.is_armed = false;
        self.core.clear_waker();
        self.core.watch.announce_awake();
        let me: Weak<dyn UnderWay> = self.me.clone();
        self.process.standing.remove(&me);
        Some(places)
    }
}

impl Inner {
    fn search_anew(&mut self) {
        (self.searched, self.owner_searched) = Default::default();
    }

    fn give(&mut self, taken: Taken) {
        let rank = taken.source.rank;
        let Some(slot) = self.board.take(rank) else {
            return self.refuse(taken);
        };
        if !self.board.wants(rank) {
            self.search_anew();
        }
        let given = slot.give(taken);
        self.waiters -= usize::from(given.was_awaited);
        self.woken.extend(given.waiter);
        if given.needs_filling {
            self.to_fill.push_back(slot);
        }
        if let Some(taken) = given.back {
            self.refuse(taken);
        }
    }

    /// The owner gets it.
    fn refuse(&mut self, taken: Taken) {
        self.refused.push_back(taken);
        self.wake_owner();
    }

    /// A loss is told to whoever would have got the next message.
    fn tell(&mut self, error: RetrieveError) {
        self.checks_gone = true;
        if let Some(slot) = self.board.take_of_anybody() {
            self.end(&slot, error.into());
        }
    }

    fn fail(&mut self, slot: &Slot, gone: Gone) {
        self.end(slot, RetrieveError::PeerGone(gone).into());
    }

    fn end(&mut self, slot: &Slot, error: Error) {
        let waiter = slot.fail(error);
        self.waiters -= usize::from(waiter.is_some());
        self.woken.extend(waiter);
    }

    pub(super) fn wake_owner(&mut self) {
        self.woken
            .extend(self.owner.take().map(|(waiter, _)| waiter));
    }
}

/// Ranks that receives name and that are gone.
#[derive(Default)]
struct Gones {
    /// With whether no other life of it will come.
    ranks: Vec<(Gone, bool)>,
    /// Whether others may be, of which a network can still bring something.
    are_uncertain: bool,
    /// Because of whom the whole job fails.
    failed: Option<Gone>,
}

impl Gones {
    fn of(process: &Process, board: &Board) -> Self {
        let mut gones = Self {
            failed: process.mailboxes.failure(),
            ..Self::default()
        };
        for rank in board.ranks() {
            gones.add(process, rank);
        }
        gones
    }

    fn add(&mut self, process: &Process, rank: Rank) {
        let Some(gone) = process.peers.latest_gone(rank) else {
            return;
        };
        if process.on_network(rank) == Some(gone.process()) {
            self.are_uncertain = true;
        } else {
            self.ranks.push((gone, process.peers.is_gone(rank)));
        }
    }
}

/// Copies a message into the memory of a receive.
fn copy(process: Arc<Process>, taken: Taken, memory: &mut dyn Target) -> Result<Came, Error> {
    let Taken {
        source,
        flags,
        payload,
        lender,
        ..
    } = taken;
    let mut incoming = Incoming::open(process, source, flags, payload, lender.as_ref())?;
    // What its ticket said is checked again: that was its sender's word, and may have changed.
    let len = incoming.next_len().unwrap_or(0);
    let count = memory.count(len, flags)?;
    incoming.unpack_cheaper(&mut memory.bytes()[..len])?;
    incoming.finish()?;
    memory.put_right(len, flags);
    let source = source.rank;
    Ok(Came { source, count })
}

/// The reactor has found something, or a thread of this process.
impl Wake for Exchange {
    fn wake(self: Arc<Self>) {
        self.with(|inner| {
            inner.is_armed = false;
            self.look_again(inner);
            if self.has_owners(inner) {
                inner.wake_owner();
            }
            let is_awaited = inner.waiters > 0 || inner.is_watched || inner.owner.is_some();
            if is_awaited && inner.places.is_some() {
                // There is a reactor: this is it.
                self.leave_with_reactor(inner);
                self.look_again(inner);
                if self.has_owners(inner) {
                    inner.wake_owner();
                }
            }
        });
    }
}

impl UnderWay for Exchange {
    fn move_on(&self) {
        if let Some(inner) = try_lock(&self.inner) {
            self.with_guard(inner, |inner| self.turn(inner, Reach::All));
        }
    }

    fn watch(&self) {
        if let Some(inner) = try_lock(&self.inner) {
            self.with_guard(inner, |inner| {
                if !inner.board.is_empty() {
                    inner.is_watched = true;
                    self.arm(inner);
                }
            });
        }
    }
}
