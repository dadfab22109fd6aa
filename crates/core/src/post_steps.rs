//! Posting through memory in steps: what `post.rs` does, by whoever comes along, without waiting.
//!
//! First the message waits for its turn among those to the same mailbox, for a credit and for room in the lane; then, if it is
//! long, it is written as far as its reader lets it, again and again.

use std::sync::Arc;

use mizzen_lane::{Begun, Filling, Refused, SharedProducer, Waits, Written};

use crate::bells::REACTOR_BELL;
use crate::error::{ArenaError, PostError};
use crate::link::{MemoryLink, Route, Turn};
use crate::links::WithLinks;
use crate::memory::{Memory, SlabId};
use crate::message::{Encoded, Flags, Message};
use crate::operations::STEP_BYTES;
use crate::post::Ticket;
use crate::stream::Peer;
use crate::wait::{Contention, Until};

use mizzen_lane::Receiver as _;

/// How far a message is.
pub(crate) enum MemoryPost {
    /// Nobody knows of it.
    Waits {
        turn: Turn,
        /// Others take no more memory than they need, if it waits for some.
        memory: Option<Waits>,
    },
    /// It was announced, and so many bytes are written.
    Writes {
        filling: Box<Filling<Memory>>,
        written: usize,
    },
    /// It is posted, or never will be.
    Over,
}

impl MemoryPost {
    /// How many bytes are written.
    pub(crate) fn moved(&self) -> u64 {
        match self {
            Self::Writes { written, .. } => *written as u64,
            Self::Waits { .. } | Self::Over => 0,
        }
    }
}

/// What became of an attempt to announce a message.
enum Announced {
    /// It needs nothing more.
    Posted,
    /// It is to be written.
    Begun(Box<Filling<Memory>>),
    /// There is no room now.
    NoRoom,
    /// There is no memory now: its reader must read others first.
    NoMemory,
}

impl MemoryLink {
    /// A message that found no room takes its turn.
    pub(crate) fn begin_post(&self, around: &dyn WithLinks, route: &Arc<Route>) -> MemoryPost {
        let turn = self.take_turn(route);
        around.bells().ring(REACTOR_BELL);
        MemoryPost::Waits { turn, memory: None }
    }

    /// Moves a message on. `Ok(None)`: it waits for its reader. `Ok(Some(false))`: some of it went. `Ok(Some(true))`: all of it.
    pub(crate) fn step_post(
        &self,
        around: &dyn WithLinks,
        route: &Arc<Route>,
        message: &mut Message<'_>,
        post: &mut MemoryPost,
    ) -> Result<Option<bool>, PostError> {
        let stepped = match post {
            MemoryPost::Waits { .. } => self.step_turn(around, route, message, post),
            MemoryPost::Writes { filling, written } => {
                self.write_some(around, filling, written, &message.wire())
            }
            MemoryPost::Over => Ok(Some(true)),
        };
        match &stepped {
            Ok(Some(true)) => self.end_post(around, route, post, true),
            Err(_) => self.end_post(around, route, post, false),
            Ok(_) => (),
        }
        stepped
    }

    /// Ends a message that was `written` to its end, or takes it back: if it was announced, its reader hears of it.
    pub(crate) fn end_post(
        &self,
        around: &dyn WithLinks,
        route: &Arc<Route>,
        post: &mut MemoryPost,
        written: bool,
    ) {
        match core::mem::replace(post, MemoryPost::Over) {
            MemoryPost::Waits { turn, .. } => self.end_turn(route, &turn),
            MemoryPost::Writes { filling, .. } => {
                let len = filling.ticket().len as usize;
                let stream = if written {
                    self.counts.note_long(len);
                    filling.finish()
                } else {
                    filling.abandon()
                };
                let links = around.links();
                self.borrower.keep(&links.arena, stream);
                self.take_back_unheard(&links.arena);
                links.tidy();
            }
            MemoryPost::Over => (),
        }
    }

    fn step_turn(
        &self,
        around: &dyn WithLinks,
        route: &Arc<Route>,
        message: &mut Message<'_>,
        post: &mut MemoryPost,
    ) -> Result<Option<bool>, PostError> {
        let MemoryPost::Waits { turn, memory } = post else {
            return Ok(None);
        };
        self.check(&route.watch)?;
        if route.is_closed() {
            let rank = self.peer.rank;
            return Err(PostError::Closed { rank });
        }
        if !self.pay_in_turn(route, turn) {
            return Ok(None);
        }
        let announced = self.announce(around, route, message);
        if !matches!(announced, Ok(Announced::Posted | Announced::Begun(_))) {
            Self::keep_lent(around.links(), message);
            self.unpay_in_turn(route);
        }
        match announced? {
            Announced::Posted => {
                self.give_lent(around.links(), message);
                Ok(Some(true))
            }
            Announced::Begun(filling) => {
                self.end_turn(route, turn);
                *post = MemoryPost::Writes {
                    filling,
                    written: 0,
                };
                Ok(Some(false))
            }
            Announced::NoRoom => Ok(None),
            Announced::NoMemory => {
                memory.get_or_insert_with(|| self.borrower.wait());
                Ok(None)
            }
        }
    }

    /// Announces a message that is paid for, or posts it if that is all.
    fn announce(
        &self,
        around: &dyn WithLinks,
        route: &Route,
        message: &mut Message<'_>,
    ) -> Result<Announced, PostError> {
        let arena = &around.links().arena;
        // Its slabs were shown at the first attempt: nobody is asked here.
        self.show_lent(around, message, Until::Now)?;
        let wire = message.wire();
        let len = mizzen_lane::Parts::len(&wire);
        let busy = |error| match error {
            PostError::Busy { .. } => Ok(Announced::NoRoom),
            PostError::Memory(ArenaError::AllOut { .. }) => Ok(Announced::NoMemory),
            error => Err(error),
        };
        if len <= SharedProducer::SHORT_MAX || len <= self.lane.ring().eager_max() {
            let posted = self.post_paid(route, &wire);
            return posted.map(|()| Announced::Posted).or_else(busy);
        }
        if wire.flags().has(Flags::LENT) {
            let posted = self.post_long(around, &wire, Until::Now, |bytes, kind| {
                let flags = wire.flags().with(kind);
                self.post_paid(route, &Ticket { bytes, flags })
            });
            return posted.map(|()| Announced::Posted).or_else(busy);
        }
        let filling = match self.borrower.stream(arena).begin(len)? {
            Begun::Now(filling) => filling,
            Begun::Full(stream) => {
                self.borrower.keep(arena, stream);
                // What the peer has read of messages that other threads wrote.
                self.borrower.trim();
                return Ok(Announced::NoMemory);
            }
        };
        let ticket = filling.ticket();
        let contention = Contention::default();
        let peer = Peer::new(self, around, Until::Now, &contention);
        let announced = peer.show(SlabId(ticket.slab)).and_then(|()| {
            let flags = wire.flags().with(Flags::STREAM);
            let bytes = &ticket.to_bytes();
            self.post_paid(route, &Ticket { bytes, flags })
        });
        match announced {
            Ok(()) => Ok(Announced::Begun(Box::new(filling))),
            Err(error) => {
                self.borrower.keep(arena, filling.withdraw());
                busy(error)
            }
        }
    }

    /// Puts a message into the lane. `Busy`: there is no room.
    fn post_paid(&self, route: &Route, message: &impl Encoded) -> Result<(), PostError> {
        match self.attempt(route, message) {
            Ok(()) => Ok(()),
            Err(Refused::Full) => {
                let rank = self.peer.rank;
                Err(PostError::Busy { rank })
            }
            Err(_) => {
                self.cut_off();
                Err(self.gone_or_died())
            }
        }
    }

    /// Writes more of a message, as far as its reader has made room. As `step_post`.
    fn write_some(
        &self,
        around: &dyn WithLinks,
        filling: &mut Filling<Memory>,
        written: &mut usize,
        message: &impl Encoded,
    ) -> Result<Option<bool>, PostError> {
        let contention = Contention::default();
        let peer = Peer::new(self, around, Until::Now, &contention);
        let (before, most) = (*written, *written + STEP_BYTES);
        let (mut at, mut goes_on, mut outcome) = (0, true, Ok(false));
        message.each(|part| {
            let (from, end) = (at, at + part.len());
            at = end;
            if !goes_on || *written >= end {
                return;
            }
            let part = &part[*written - from..(most - from).min(part.len())];
            match filling.try_write(part, &peer) {
                Ok(Written::All) => {
                    *written += part.len();
                    goes_on = *written < most;
                }
                Ok(Written::Part(now)) => {
                    *written += now;
                    goes_on = false;
                }
                Ok(Written::Unwanted) => (goes_on, outcome) = (false, Ok(true)),
                Err(error) => (goes_on, outcome) = (false, Err(error)),
            }
        });
        let is_over = outcome? || *written == message.len();
        Ok((is_over || *written > before).then_some(is_over))
    }
}
