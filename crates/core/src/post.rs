//! Posting through memory: over the shared lane of a link, or over a sender's own lane.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use mizzen_lane::{Producer, Refused, SHORT_MAX, SharedProducer, Watch};
use zerocopy::IntoBytes;

use crate::error::PostError;
use crate::link::{MemoryLink, Route};
use crate::links::WithLinks;
use crate::memory::{Arena, Lent, LentBytes, LoanTicket, Purpose};
use crate::message::{Encoded, Flags, Message};
use crate::plain::Plain;
use crate::wait::{Crowd, Patience, Step, Until, spin};

/// How long a poster sleeps between looks at a full lane: the receiver does not know who waits for a shared lane.
const FULL_NAP: Duration = Duration::from_millis(1);
/// The first such nap. Most receivers that read at all have made room by then.
pub(crate) const FIRST_NAP: Duration = Duration::from_micros(20);
/// How often a receiver that does not drain its lane is reminded through its control channel.
const REMIND_EVERY: u32 = 64;

impl MemoryLink {
    /// Posts over the shared lane.
    pub(crate) fn post(
        &self,
        around: &dyn WithLinks,
        route: &Route,
        message: &impl Encoded,
        until: Until,
    ) -> Result<(), PostError> {
        let len = message.len();
        if len <= SharedProducer::SHORT_MAX || len <= self.lane.ring().eager_max() {
            return self.post_copied(around, route, message, until);
        }
        self.post_long(around, message, until, |bytes, kind| {
            let flags = message.flags().with(kind);
            self.post_copied(around, route, &Ticket { bytes, flags }, until)
        })
    }

    /// Takes a credit, then a place in the lane.
    fn post_copied(
        &self,
        around: &dyn WithLinks,
        route: &Route,
        message: &impl Encoded,
        until: Until,
    ) -> Result<(), PostError> {
        self.check(&route.watch)?;
        if !take_credit(route) {
            self.wait(around, until, || take_credit(route), || route.is_closed())?;
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
                    around,
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
        around: &dyn WithLinks,
        until: Until,
        mut attempt: impl FnMut() -> bool,
        closed: impl Fn() -> bool,
    ) -> Result<(), PostError> {
        let rank = self.peer.rank;
        let crowd = Crowd::default();
        let mut patience = Patience::until(until.deadline(), &crowd);
        let mut next_nap = FIRST_NAP;
        loop {
            around.pump_all();
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
                    self.remark_full(around, &mut patience);
                    std::thread::sleep(nap.min(next_nap));
                    next_nap = (next_nap * 2).min(FULL_NAP);
                }
                Step::Expired(_) => return Err(PostError::TimedOut { rank }),
            }
        }
    }

    fn remark_full(&self, around: &dyn WithLinks, patience: &mut Patience<'_>) {
        if let Some(waited) = patience.remarkable() {
            let what = format!(
                "for room in a mailbox at rank {} that nobody reads",
                self.peer
            );
            around.remark(waited, &what);
        }
    }

    /// Passes on a long message by a ticket: while it is copied into the arena, or, if there is a deadline or if it refers to
    /// lent buffers, when it has been.
    pub(crate) fn post_long(
        &self,
        around: &dyn WithLinks,
        message: &impl Encoded,
        until: Until,
        post: impl FnOnce(&[u8], Flags) -> Result<(), PostError>,
    ) -> Result<(), PostError> {
        if let Until::Forever = until {
            if !message.flags().has(Flags::LENT) {
                return self.stream(around, message, |ticket| post(ticket, Flags::STREAM));
            }
        }
        let links = around.links();
        let mut block = links.take_block(
            around.progress(),
            message.len(),
            Purpose::LongMessage,
            until,
        )?;
        block.fill(message);
        self.show_slab(&links.arena, block.slab())?;
        post(block.ticket().as_bytes(), Flags::LONG)?;
        block.hand_over(self.peer, self.their_returns.clone());
        self.reclaim_late(&links.arena);
        Ok(())
    }

    /// What was handed over to a process that had died meanwhile is ours again.
    pub(crate) fn reclaim_late(&self, arena: &Arena) {
        if self.is_reclaimed() {
            arena.reclaim(self.peer);
        }
    }

    /// Prepares the lent pieces of a message for this peer.
    pub(crate) fn show_lent(
        &self,
        arena: &Arc<Arena>,
        message: &mut Message<'_>,
    ) -> Result<(), PostError> {
        for buffer in message.lent_buffers() {
            let buffer = buffer.as_ref().ok_or(PostError::LentTwice)?;
            self.show_bytes(arena, buffer)?;
        }
        Ok(())
    }

    /// Prepares a lent buffer for this peer: its ticket.
    pub(crate) fn show<T: Plain>(
        &self,
        arena: &Arc<Arena>,
        buffer: &Lent<T>,
    ) -> Result<LoanTicket, PostError> {
        self.show_bytes(arena, buffer.bytes())?;
        Ok(buffer.bytes().ticket())
    }

    fn show_bytes(&self, arena: &Arc<Arena>, buffer: &LentBytes) -> Result<(), PostError> {
        if !buffer.is_of(arena) {
            return Err(PostError::LentByAnother);
        }
        self.show_slab(arena, buffer.slab())
    }

    /// Gives away a lent buffer that was posted.
    pub(crate) fn give(&self, arena: &Arc<Arena>, buffer: LentBytes) {
        buffer.hand_over(self.peer, self.their_returns.clone());
        self.reclaim_late(arena);
    }

    /// Gives away the lent pieces of a message that was posted.
    pub(crate) fn give_lent(&self, arena: &Arc<Arena>, message: &mut Message<'_>) {
        for buffer in message.lent_buffers() {
            if let Some(buffer) = buffer.take() {
                buffer.hand_over(self.peer, self.their_returns.clone());
            }
        }
        self.reclaim_late(arena);
    }

    /// Sends over a lane of a sender's own.
    #[inline]
    pub(crate) fn send(
        &self,
        around: &dyn WithLinks,
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
            Err(refused) => self.send_slowly(around, lane, watch, message, until, refused),
        }
    }

    #[cold]
    fn send_slowly(
        &self,
        around: &dyn WithLinks,
        lane: &mut Producer,
        watch: &Watch,
        message: &impl Encoded,
        until: Until,
        refused: Refused,
    ) -> Result<(), PostError> {
        match refused {
            Refused::TooLong => self.post_long(around, message, until, |bytes, kind| {
                let flags = message.flags().with(kind);
                self.send(around, lane, watch, &Ticket { bytes, flags }, until)
            }),
            Refused::Full => {
                self.wait_for_room(around, lane, watch, message, until)?;
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
        around: &dyn WithLinks,
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
            around.pump_all();
            spin(patience.quick_looks(), || false);
            match patience.step() {
                Step::Again => (),
                Step::Expired(_) => return Err(PostError::TimedOut { rank }),
                Step::Sleep(nap) => {
                    self.remark_full(around, &mut patience);
                    let room = lane.ring().room();
                    let mut sent = false;
                    let mut mine = 0;
                    around.bells().sleep(
                        // Our own lanes want draining meanwhile.
                        nap.min(Duration::from_millis(20)),
                        |bell| {
                            mine = bell;
                            self.add_sleeper(bell);
                            room.wait(bell);
                        },
                        || {
                            sent = try_send(lane, message).is_ok();
                            sent || self.is_ended()
                        },
                        || room.stop_waiting(),
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
