//! Posting through memory: over the shared lane of a link, or over a sender's own lane.

use core::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use mizzen_lane::{Refused, SharedProducer, Watch};

use crate::bells::REACTOR_BELL;
use crate::caller::Caller;
use crate::error::PostError;
use crate::link::{LaneBehind, LaneOut, MemoryLink, Route, SENDER_LANE, WINDOW, Waiting, try_send};
use crate::links::WithLinks;
use crate::memory::{Arena, Block, LoanTicket, Purpose};
use crate::message::{Encoded, Flags};
use crate::roll::{Kind, WaitsFor};
use crate::wait::{Contention, Noted, Patience, Step, Until, spin};

/// How long a poster sleeps between looks at a full lane: the receiver does not know who waits for a shared lane.
const FULL_NAP: Duration = Duration::from_millis(1);
/// The first such nap. Most receivers that read at all have made room by then.
pub(crate) const FIRST_NAP: Duration = Duration::from_micros(20);
/// How often a receiver that does not drain its lane is reminded through its control channel.
const REMIND_EVERY: u32 = 64;

impl MemoryLink {
    /// Posts over the shared lane.
    #[track_caller]
    pub(crate) fn post(
        &self,
        around: &dyn WithLinks,
        route: &Arc<Route>,
        message: &impl Encoded,
        until: Until,
    ) -> Result<(), PostError> {
        let len = message.len();
        if len <= SharedProducer::SHORT_MAX || len <= self.lane.ring().eager_max() {
            return self.post_copied(around, route, message, until, Location::caller());
        }
        let at = Location::caller();
        loop {
            self.wait_for_turns(around, route, until)?;
            let posted = self.post_long(around, message, until, |bytes, kind| {
                let flags = message.flags().with(kind);
                self.post_copied(around, route, &Ticket { bytes, flags }, until, at)
            });
            match posted {
                // An operation took its turn meanwhile: the memory goes back first.
                Err(PostError::Busy { .. }) if !matches!(until, Until::Now) => (),
                posted => return posted,
            }
        }
    }

    /// Waits until no operation waits for its turn at a mailbox.
    #[track_caller]
    fn wait_for_turns(
        &self,
        around: &dyn WithLinks,
        route: &Route,
        until: Until,
    ) -> Result<(), PostError> {
        let rank = self.peer.rank;
        let contention = Contention::default();
        let mut patience = Patience::until(until.deadline(), &contention);
        let mut naps = Naps::default();
        let mut noted = Noted::default();
        while self.has_turns(route) {
            self.check(&route.watch)?;
            if let Until::Now = until {
                return Err(PostError::Busy { rank });
            }
            around.pump_all();
            match patience.step() {
                Step::Again => (),
                Step::Expired(_) => return Err(PostError::TimedOut { rank }),
                Step::Sleep(nap) => {
                    let _call = Caller::enter();
                    self.remark_full(around, &mut patience, &mut noted);
                    self.counts.sleeps.add(1);
                    naps.sleep(nap);
                }
            }
        }
        Ok(())
    }

    /// Takes a credit, then a place in the lane. It is called from `at`.
    fn post_copied(
        &self,
        around: &dyn WithLinks,
        route: &Arc<Route>,
        message: &impl Encoded,
        until: Until,
        at: &'static Location<'static>,
    ) -> Result<(), PostError> {
        self.check(&route.watch)?;
        let paid = route.take_credit();
        if paid && self.attempt(route, message).is_ok() {
            return Ok(());
        }
        self.post_slowly(around, route, message, until, paid, at)
    }

    /// Waits for a credit, if none was `paid` yet, and for room in the lane, draining our own lanes meanwhile: the peer may wait
    /// for us. Who would have to sleep leaves the message behind, if it may.
    #[cold]
    fn post_slowly(
        &self,
        around: &dyn WithLinks,
        route: &Arc<Route>,
        message: &impl Encoded,
        until: Until,
        mut paid: bool,
        at: &'static Location<'static>,
    ) -> Result<(), PostError> {
        let counts = &self.counts;
        let counter = if paid {
            &counts.lane_full
        } else {
            &counts.credits_exhausted
        };
        counter.add(1);
        let contention = Contention::default();
        let mut patience = Patience::until(until.deadline(), &contention);
        let mut naps = Naps::default();
        let mut noted = Noted::default();
        let unpaid = |paid: bool, error| {
            route.add_credits(route.price(paid), WINDOW);
            Err(error)
        };
        let rank = self.peer.rank;
        loop {
            around.pump_all();
            paid = paid || route.take_credit();
            match paid.then(|| self.attempt(route, message)) {
                Some(Ok(())) => return Ok(()),
                None | Some(Err(Refused::Full)) => (),
                Some(Err(_)) => {
                    self.cut_off();
                    return Err(self.gone_or_died());
                }
            }
            if self.fate.is_ended() {
                return Err(self.gone_or_died());
            }
            if route.is_closed() {
                return unpaid(paid, PostError::Closed { rank });
            }
            if !paid && message.flags().is_ticket() && self.has_turns(route) {
                return Err(PostError::Busy { rank });
            }
            spin(patience.quick_looks(), || false);
            let step = match until {
                Until::Now => Step::Sleep(Duration::ZERO),
                // Behind what waits already, there is nothing to wait for.
                _ if !paid && self.is_behind(route) => Step::Sleep(FULL_NAP),
                _ => patience.step(),
            };
            match step {
                Step::Again => (),
                Step::Sleep(_) if self.leave(around, route, message, paid) => return Ok(()),
                Step::Sleep(_) if matches!(until, Until::Now) => {
                    return unpaid(paid, PostError::Busy { rank });
                }
                Step::Sleep(_) if patience.is_over() => {
                    return unpaid(paid, PostError::TimedOut { rank });
                }
                Step::Sleep(nap) => {
                    let _call = Caller::enter_at(at);
                    self.remark_full(around, &mut patience, &mut noted);
                    self.counts.sleeps.add(1);
                    if naps.sleep(nap) {
                        self.channel.remind();
                    }
                }
                Step::Expired(_) => return unpaid(paid, PostError::TimedOut { rank }),
            }
        }
    }

    /// Leaves a message behind. `false`: it may not be.
    fn leave(
        &self,
        around: &dyn WithLinks,
        route: &Arc<Route>,
        message: &impl Encoded,
        paid: bool,
    ) -> bool {
        if !around.can_move_on_later() {
            return false;
        }
        let left = self.leave_behind(route, message, route.price(paid));
        if left == Some(true) {
            around.bells().ring(REACTOR_BELL);
        }
        if left.is_some() && self.fate.is_ended() {
            // Whoever ended the link may have been here before us.
            self.move_on();
            self.take_back_unheard(&around.links().arena);
        }
        left.is_some()
    }

    fn remark_full(&self, around: &dyn WithLinks, patience: &mut Patience<'_>, noted: &mut Noted) {
        let what = || {
            format!(
                "for room in a mailbox at rank {} that nobody reads",
                self.peer
            )
        };
        let waits = || WaitsFor::one(Kind::Room, self.peer.rank, what());
        noted.keep(patience, waits);
        if let Some(waited) = patience.remarkable() {
            around.remark(waited, &what());
        }
    }

    /// Passes on a long message by a ticket: while it is copied into the arena, or, if it refers to lent buffers, when it has
    /// been.
    #[track_caller]
    pub(crate) fn post_long(
        &self,
        around: &dyn WithLinks,
        message: &impl Encoded,
        until: Until,
        post: impl FnOnce(&[u8], Flags) -> Result<(), PostError>,
    ) -> Result<(), PostError> {
        if !message.flags().has(Flags::LENT) {
            return self.stream(around, message, until, |ticket| post(ticket, Flags::STREAM));
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
        post(&block.ticket().to_bytes(), Flags::LONG)?;
        self.counts.note_long(message.len());
        self.give(&links.arena, block);
        Ok(())
    }

    /// Prepares a lent buffer for this peer: its ticket.
    pub(crate) fn show(&self, arena: &Arc<Arena>, buffer: &Block) -> Result<LoanTicket, PostError> {
        self.show_block(arena, buffer)?;
        Ok(buffer.ticket())
    }

    /// The same without the ticket.
    pub(crate) fn show_block(&self, arena: &Arc<Arena>, buffer: &Block) -> Result<(), PostError> {
        if !buffer.is_of(arena) {
            return Err(PostError::LentByAnother);
        }
        self.show_slab(arena, buffer.slab())
    }

    /// Gives away a lent buffer that was posted.
    pub(crate) fn give(&self, arena: &Arc<Arena>, buffer: Block) {
        self.borrower.hand_over(arena, buffer);
        self.take_back_unheard(arena);
    }

    /// Sends over a lane of a sender's own, as long as there is hope that room for it comes soon: `Busy` if not.
    #[track_caller]
    pub(crate) fn send(
        &self,
        around: &dyn WithLinks,
        lane: &mut LaneOut,
        message: &impl Encoded,
        until: Until,
    ) -> Result<(), PostError> {
        match try_send(&mut lane.open.producer, message) {
            // It is posted, whether anybody will read it or not: what it lends is given back then.
            Ok(()) => {
                let _ = self.call_quietly(&lane.watch);
                Ok(())
            }
            Err(refused) => self.send_slowly(around, lane, message, until, refused),
        }
    }

    #[cold]
    #[track_caller]
    fn send_slowly(
        &self,
        around: &dyn WithLinks,
        lane: &mut LaneOut,
        message: &impl Encoded,
        until: Until,
        refused: Refused,
    ) -> Result<(), PostError> {
        match refused {
            Refused::TooLong => self.post_long(around, message, until, |bytes, kind| {
                let flags = message.flags().with(kind);
                self.send(around, lane, &Ticket { bytes, flags }, until)
            }),
            Refused::Full => {
                self.counts.lane_full.add(1);
                self.wait_for_room(around, lane, message, until)?;
                self.call(&lane.watch);
                Ok(())
            }
            Refused::Corrupt => {
                self.cut_off();
                Err(self.gone_or_died())
            }
        }
    }

    /// Waits without sleeping.
    fn wait_for_room(
        &self,
        around: &dyn WithLinks,
        lane: &mut LaneOut,
        message: &impl Encoded,
        until: Until,
    ) -> Result<(), PostError> {
        let busy = PostError::Busy {
            rank: self.peer.rank,
        };
        let contention = Contention::default();
        let mut patience = Patience::until(until.deadline(), &contention);
        loop {
            match try_send(&mut lane.open.producer, message) {
                Ok(()) => return Ok(()),
                Err(Refused::Full) => (),
                Err(_) => {
                    self.cut_off();
                    return Err(self.gone_or_died());
                }
            }
            self.check(&lane.watch)?;
            if let Until::Now = until {
                return Err(busy);
            }
            around.pump_all();
            spin(patience.quick_looks(), || false);
            match patience.step() {
                Step::Again => (),
                Step::Sleep(_) | Step::Expired(_) => return Err(busy),
            }
        }
    }

    /// Posts behind what waits for room in a sender's lane, waiting until less than the allowance does.
    #[track_caller]
    pub(crate) fn post_behind(
        &self,
        around: &dyn WithLinks,
        lane: &LaneBehind,
        watch: &Watch,
        message: &impl Encoded,
        until: Until,
    ) -> Result<(), PostError> {
        if message.len() > SENDER_LANE.eager_max() {
            return self.post_long(around, message, until, |bytes, kind| {
                let flags = message.flags().with(kind);
                self.post_behind(around, lane, watch, &Ticket { bytes, flags }, until)
            });
        }
        let rank = self.peer.rank;
        if !Waiting::may_wait(message.flags()) {
            return Err(PostError::Busy { rank });
        }
        let contention = Contention::default();
        let mut patience = Patience::until(until.deadline(), &contention);
        let mut naps = Naps::default();
        let mut noted = Noted::default();
        loop {
            self.check(watch)?;
            if self.leave_in_lane(lane, message) {
                return Ok(());
            }
            if let Until::Now = until {
                return Err(PostError::Busy { rank });
            }
            around.pump_all();
            match patience.step() {
                Step::Again => (),
                Step::Expired(_) => return Err(PostError::TimedOut { rank }),
                Step::Sleep(nap) => {
                    let _call = Caller::enter();
                    self.remark_full(around, &mut patience, &mut noted);
                    self.counts.sleeps.add(1);
                    naps.sleep(nap);
                }
            }
        }
    }
}

/// The naps of one poster, each longer than the last.
struct Naps {
    next: Duration,
    count: u32,
}

impl Default for Naps {
    fn default() -> Self {
        Self {
            next: FIRST_NAP,
            count: 0,
        }
    }
}

impl Naps {
    /// Sleeps at most so long. Whether it is time to remind the receiver.
    fn sleep(&mut self, most: Duration) -> bool {
        std::thread::sleep(most.min(self.next));
        self.next = (self.next * 2).min(FULL_NAP);
        self.count += 1;
        self.count % REMIND_EVERY == 0
    }
}

/// The ticket of a long message in the place of its bytes.
pub(crate) struct Ticket<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) flags: Flags,
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
