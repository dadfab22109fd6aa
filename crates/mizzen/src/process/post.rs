//! Posting through memory: over the shared lane of a link, or over a sender's own lane.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use mizzen_lane::{Producer, Refused, SHORT_MAX, SharedProducer, Watch};
use zerocopy::IntoBytes;

use super::Process;
use super::link::{MemoryLink, Route};
use crate::error::{ArenaError, PostError};
use crate::memory::{Lent, LentBytes, LoanTicket, Purpose};
use crate::message::{Encoded, Flags, Message, Plain};
use crate::wait::{Crowd, Patience, Step, deadline_in, spin};

/// How long a poster sleeps between looks at a full lane: the receiver does not know who waits for a shared lane.
const FULL_NAP: Duration = Duration::from_millis(1);
/// The first such nap. Most receivers that read at all have made room by then.
pub(super) const FIRST_NAP: Duration = Duration::from_micros(20);
/// How often a receiver that does not drain its lane is reminded through its control channel.
const REMIND_EVERY: u32 = 64;

/// Until when to wait for room.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Until {
    Forever,
    Deadline(Instant),
    Now,
}

impl Until {
    /// At most so long from now.
    pub(crate) fn within(timeout: Duration) -> Self {
        deadline_in(timeout).map_or(Self::Forever, Self::Deadline)
    }

    pub(crate) fn deadline(self) -> Option<Instant> {
        match self {
            Self::Forever => None,
            Self::Deadline(deadline) => Some(deadline),
            Self::Now => Some(Instant::now()),
        }
    }
}

impl MemoryLink {
    /// Posts over the shared lane.
    pub(crate) fn post(
        &self,
        process: &Arc<Process>,
        route: &Route,
        message: &impl Encoded,
        until: Until,
    ) -> Result<(), PostError> {
        let len = message.len();
        if len <= SharedProducer::SHORT_MAX || len <= self.lane.ring().eager_max() {
            return self.post_copied(process, route, message, until);
        }
        self.post_long(process, message, until, |bytes, kind| {
            let flags = message.flags().with(kind);
            self.post_copied(process, route, &Ticket { bytes, flags }, until)
        })
    }

    /// Takes a credit, then a place in the lane.
    fn post_copied(
        &self,
        process: &Arc<Process>,
        route: &Route,
        message: &impl Encoded,
        until: Until,
    ) -> Result<(), PostError> {
        self.check(&route.watch)?;
        if !take_credit(route) {
            self.wait(process, until, || take_credit(route), || route.is_closed())?;
        }
        let flags = message.flags();
        let attempt = || {
            let short = message.with_short(SharedProducer::SHORT_MAX, |bytes| {
                self.lane.try_short(flags.0, route.mailbox.0, bytes)
            });
            short.unwrap_or_else(|| self.lane.try_eager(flags.0, route.mailbox.0, message))
        };
        let published = match attempt() {
            Ok(published) => published,
            Err(_) => {
                let mut outcome = Err(Refused::Full);
                let mut tries = 0u32;
                let waited = self.wait(
                    process,
                    until,
                    || {
                        tries += 1;
                        if tries % REMIND_EVERY == 0 {
                            self.channel.remind();
                        }
                        outcome = attempt();
                        !matches!(outcome, Err(Refused::Full))
                    },
                    || route.is_closed(),
                );
                match (waited, outcome) {
                    (Ok(()), Ok(published)) => published,
                    (Err(error), _) => {
                        route.credits.fetch_add(1, Ordering::Relaxed);
                        return Err(error);
                    }
                    (Ok(()), Err(_)) => {
                        self.cut_off();
                        return Err(self.gone_or_died());
                    }
                }
            }
        };
        self.call(&route.watch);
        self.call_following(published);
        Ok(())
    }

    /// Waits until `attempt` succeeds, draining our own lanes meanwhile: the peer may wait for us.
    fn wait(
        &self,
        process: &Arc<Process>,
        until: Until,
        mut attempt: impl FnMut() -> bool,
        closed: impl Fn() -> bool,
    ) -> Result<(), PostError> {
        let rank = self.peer.rank;
        let crowd = Crowd::default();
        let mut patience = Patience::until(until.deadline(), &crowd);
        let mut next_nap = FIRST_NAP;
        loop {
            process.pump_all();
            if attempt() {
                return Ok(());
            }
            if self.is_ended() {
                return Err(self.gone_or_died());
            }
            if closed() {
                return Err(PostError::Closed { rank });
            }
            if let Until::Now = until {
                return Err(PostError::Busy { rank });
            }
            spin(patience.quick_looks(), || false);
            match patience.step() {
                Step::Again => (),
                Step::Sleep(nap) => {
                    self.remark_full(process, &mut patience);
                    std::thread::sleep(nap.min(next_nap));
                    next_nap = (next_nap * 2).min(FULL_NAP);
                }
                Step::Expired(_) => return Err(PostError::TimedOut { rank }),
            }
        }
    }

    fn remark_full(&self, process: &Process, patience: &mut Patience<'_>) {
        if let Some(waited) = patience.remarkable() {
            let what = format!(
                "for room in a mailbox at rank {} that nobody reads",
                self.peer
            );
            process.remark(waited, &what);
        }
    }

    /// Passes on a long message by a ticket: while it is copied into the arena, or, if there is a deadline or if it refers to
    /// lent buffers, when it has been.
    pub(crate) fn post_long(
        &self,
        process: &Arc<Process>,
        message: &impl Encoded,
        until: Until,
        post: impl FnOnce(&[u8], Flags) -> Result<(), PostError>,
    ) -> Result<(), PostError> {
        if let Until::Forever = until {
            if !message.flags().has(Flags::LENT) {
                return self.stream(process, message, |ticket| post(ticket, Flags::STREAM));
            }
        }
        let mut block = process.take_block(message.len(), Purpose::LongMessage, until)?;
        block.fill(message);
        self.show_slab(process, block.slab())?;
        post(block.ticket().as_bytes(), Flags::LONG)?;
        block.hand_over(self.peer, self.their_returns.clone());
        self.reclaim_late(process);
        Ok(())
    }

    /// What was handed over to a process that had died meanwhile is ours again.
    pub(super) fn reclaim_late(&self, process: &Process) {
        if self.is_reclaimed() {
            process.arena.reclaim(self.peer);
        }
    }

    /// Prepares the lent pieces of a message for this peer.
    pub(crate) fn show_lent(
        &self,
        process: &Process,
        message: &mut Message<'_>,
    ) -> Result<(), PostError> {
        for buffer in message.lent_buffers() {
            let buffer = buffer.as_ref().ok_or(PostError::LentTwice)?;
            self.show_bytes(process, buffer)?;
        }
        Ok(())
    }

    /// Prepares a lent buffer for this peer: its ticket.
    pub(crate) fn show<T: Plain>(
        &self,
        process: &Process,
        buffer: &Lent<T>,
    ) -> Result<LoanTicket, PostError> {
        self.show_bytes(process, buffer.bytes())?;
        Ok(buffer.bytes().ticket())
    }

    fn show_bytes(&self, process: &Process, buffer: &LentBytes) -> Result<(), PostError> {
        if !buffer.is_of(&process.arena) {
            return Err(PostError::LentByAnother);
        }
        self.show_slab(process, buffer.slab())
    }

    /// Gives away a lent buffer that was posted.
    pub(crate) fn give(&self, process: &Process, buffer: LentBytes) {
        buffer.hand_over(self.peer, self.their_returns.clone());
        self.reclaim_late(process);
    }

    /// Gives away the lent pieces of a message that was posted.
    pub(crate) fn give_lent(&self, process: &Process, message: &mut Message<'_>) {
        for buffer in message.lent_buffers() {
            if let Some(buffer) = buffer.take() {
                buffer.hand_over(self.peer, self.their_returns.clone());
            }
        }
        self.reclaim_late(process);
    }

    /// Sends over a lane of a sender's own.
    #[inline]
    pub(crate) fn send(
        &self,
        process: &Arc<Process>,
        lane: &mut Producer,
        watch: &Watch,
        message: &impl Encoded,
        until: Until,
    ) -> Result<(), PostError> {
        match try_send(lane, message) {
            // It is posted, whether anybody will read it or not: what it lends is given back then.
            Ok(()) => {
                let _ = self.call_quietly(watch);
                Ok(())
            }
            Err(refused) => self.send_slowly(process, lane, watch, message, until, refused),
        }
    }

    #[cold]
    fn send_slowly(
        &self,
        process: &Arc<Process>,
        lane: &mut Producer,
        watch: &Watch,
        message: &impl Encoded,
        until: Until,
        refused: Refused,
    ) -> Result<(), PostError> {
        match refused {
            Refused::TooLong => self.post_long(process, message, until, |bytes, kind| {
                let flags = message.flags().with(kind);
                self.send(process, lane, watch, &Ticket { bytes, flags }, until)
            }),
            Refused::Full => {
                self.wait_for_room(process, lane, watch, message, until)?;
                self.call(watch);
                Ok(())
            }
            Refused::Corrupt => {
                self.cut_off();
                Err(self.gone_or_died())
            }
        }
    }

    fn wait_for_room(
        &self,
        process: &Arc<Process>,
        lane: &mut Producer,
        watch: &Watch,
        message: &impl Encoded,
        until: Until,
    ) -> Result<(), PostError> {
        let rank = self.peer.rank;
        if let Until::Now = until {
            return Err(PostError::Busy { rank });
        }
        let crowd = Crowd::default();
        let mut patience = Patience::until(until.deadline(), &crowd);
        loop {
            match try_send(lane, message) {
                Ok(()) => return Ok(()),
                Err(Refused::Full) => (),
                Err(_) => {
                    self.cut_off();
                    return Err(self.gone_or_died());
                }
            }
            self.check(watch)?;
            process.pump_all();
            spin(patience.quick_looks(), || false);
            match patience.step() {
                Step::Again => (),
                Step::Expired(_) => return Err(PostError::TimedOut { rank }),
                Step::Sleep(nap) => {
                    self.remark_full(process, &mut patience);
                    let ring = lane.ring().clone();
                    let mut sent = false;
                    let mut mine = 0;
                    process.sleep(
                        // Our own lanes want draining meanwhile.
                        nap.min(Duration::from_millis(20)),
                        |bell| {
                            mine = bell;
                            self.add_sleeper(bell);
                            ring.wait_for_room(bell);
                        },
                        || {
                            sent = try_send(lane, message).is_ok();
                            sent || self.is_ended()
                        },
                        || ring.stop_waiting_for_room(),
                    );
                    self.remove_sleeper(mine);
                    if sent {
                        return Ok(());
                    }
                }
            }
        }
    }
}

impl Process {
    /// A block of the arena, waiting for receivers to give some back.
    pub(crate) fn take_block(
        self: &Arc<Self>,
        len: usize,
        purpose: Purpose,
        until: Until,
    ) -> Result<LentBytes, ArenaError> {
        let crowd = Crowd::default();
        let mut patience = Patience::until(until.deadline(), &crowd);
        loop {
            if let Some(block) = self.try_take_block(len, purpose)? {
                return Ok(block);
            }
            self.pump_all();
            spin(patience.quick_looks(), || false);
            match patience.step() {
                Step::Again => (),
                Step::Sleep(nap) => std::thread::sleep(nap.min(FULL_NAP)),
                Step::Expired(waited) => return Err(ArenaError::AllOut { waited }),
            }
        }
    }

    /// A block of the arena, if there is one now.
    pub(crate) fn try_take_block(
        &self,
        len: usize,
        purpose: Purpose,
    ) -> Result<Option<LentBytes>, ArenaError> {
        let mut taken = self.arena.take(len, purpose)?;
        if taken.is_none() {
            self.close_idle_streams();
            taken = self.arena.take(len, purpose)?;
        }
        if self.arena.has_dropped() {
            self.hide_dropped_slabs();
        }
        Ok(taken.map(|held| LentBytes::new(Arc::clone(&self.arena), held, len)))
    }

    /// Waits a little for receivers to give memory back, each time longer.
    pub(crate) fn wait_for_memory(self: &Arc<Self>, nap: &mut Duration) {
        self.close_idle_streams();
        self.pump_all();
        std::thread::sleep(*nap);
        *nap = (*nap * 2).min(FULL_NAP);
    }

    /// Chunks that wait for the next long message to somebody are free.
    fn close_idle_streams(&self) {
        for link in self.links().1 {
            link.close_streams();
        }
    }

    /// Slabs that the arena dropped need not be kept by peers.
    fn hide_dropped_slabs(&self) {
        for slab in self.arena.dropped_slabs() {
            for link in self.links().1 {
                link.hide_slab(self, slab);
            }
        }
    }

    /// A lent buffer of `count` values, which are whatever was there before.
    pub(crate) fn lend<T: Plain>(
        self: &Arc<Self>,
        count: usize,
        until: Until,
    ) -> Result<Lent<T>, ArenaError> {
        let limit = crate::memory::Arena::longest(Purpose::Lend);
        let bytes = count.saturating_mul(size_of::<T>());
        if bytes > limit {
            return Err(ArenaError::TooLong { bytes, limit });
        }
        self.take_block(bytes, Purpose::Lend, until).map(Lent::new)
    }
}

/// The ticket of a long message in the place of its bytes.
struct Ticket<'a> {
    bytes: &'a [u8],
    flags: Flags,
}

impl mizzen_lane::Parts for Ticket<'_> {
    fn len(&self) -> usize {
        self.bytes.len()
    }

    fn each(&self, mut take: impl FnMut(&[u8])) {
        take(self.bytes);
    }
}

impl Encoded for Ticket<'_> {
    fn flags(&self) -> Flags {
        self.flags
    }
}

#[inline]
fn try_send(lane: &mut Producer, message: &impl Encoded) -> Result<(), Refused> {
    let flags = message.flags();
    match message.with_short(SHORT_MAX, |bytes| lane.try_short(flags.0, bytes)) {
        Some(outcome) => outcome,
        None => lane.try_eager(flags.0, 0, message),
    }
}

fn take_credit(route: &Route) -> bool {
    let less = |now: u32| now.checked_sub(1);
    // Acquire pairs with the release in `handle_control`: what the receiver did before is done.
    route
        .credits
        .fetch_update(Ordering::Acquire, Ordering::Relaxed, less)
        .is_ok()
}
