//! Memory lent to the driver: the bodies of long messages, from their poster's memory into their reader's.
//!
//! Two functions lend memory, [`NetLink::send_borrowed`] for a poster and [`NetOffered::receive_while`] for a reader. Both stay on the
//! stack of the thread that owns the memory until the driver is done with it: the body was moved, declined or
//! lost, or, if the thread unwinds, the link was cut. The parts they put into [`Bodies`] are valid for just as long,
//! because whatever ends a body happens under the port, and so does whatever follows the parts.
#![allow(unsafe_code)]

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Instant;

use mizzen_driver::{Driver, Part, PartMut, Refused};
use mizzen_proto::id::{BodyId, MailboxId, OfferId};
use mizzen_proto::link::{AcceptRefused, Link};

use super::engine::{Engine, driver_id};
use super::link::{Expired, NetLink};
use super::pushed::{Lost, Pushed};
use crate::error::{Departure, PostError, UnpackError};
use crate::memory::LentBytes;
use crate::message::Offered;
use crate::process::progress::Progress;
use crate::rank::ProcessId;

/// How a body ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Its bytes are where they should be, or with the network.
    Done = 1,
    /// Nobody wants it.
    Declined = 2,
    /// The link ended before it did.
    Lost = 3,
    /// Its poster took it back.
    Retracted = 4,
}

/// Whether a body has ended, and how.
#[derive(Debug, Default)]
pub(super) struct End(AtomicU8);

impl End {
    pub(super) fn set(&self, outcome: Outcome) {
        // Release pairs with the acquire in `get`: the driver's accesses are over.
        self.0.store(outcome as u8, Ordering::Release);
    }

    pub(super) fn get(&self) -> Option<Outcome> {
        match self.0.load(Ordering::Acquire) {
            0 => None,
            1 => Some(Outcome::Done),
            2 => Some(Outcome::Declined),
            3 => Some(Outcome::Lost),
            _ => Some(Outcome::Retracted),
        }
    }
}

/// The bodies of one link, both ways.
#[derive(Default)]
pub(super) struct Bodies {
    /// Our offers that have not ended.
    offers: BTreeMap<OfferId, Lending>,
    /// Bodies that the peer asked for and the driver was not yet given.
    asked: VecDeque<(OfferId, BodyId)>,
    /// Bodies that threads of ours wait for and the peer was not yet asked for.
    wanted: VecDeque<Wanted>,
    receiving: BTreeMap<BodyId, Receiving>,
    /// Pushed bodies that nobody has a place for yet.
    pub(super) pushed: Pushed,
}

/// A body that the driver has a place for.
struct Receiving {
    end: Arc<End>,
    /// Its length, if it was pushed: then the peer may push as much again.
    pushed: Option<usize>,
}

/// The body of an offer of ours.
pub(super) struct Lending {
    parts: Vec<Part>,
    end: Arc<End>,
    /// Who owns the memory, if not a thread that waits.
    _owner: Option<LentBytes>,
}

struct Wanted {
    offer: OfferId,
    parts: Vec<PartMut>,
    end: Arc<End>,
}

impl Lending {
    /// A body in a block that goes with it.
    pub(super) fn owned(block: LentBytes) -> Self {
        Self {
            parts: vec![Part::of(block.as_bytes())],
            end: Arc::default(),
            _owner: Some(block),
        }
    }
}

impl Bodies {
    pub(super) fn offer(&mut self, offer: OfferId, lending: Lending) {
        self.offers.insert(offer, lending);
    }

    pub(super) fn ask(&mut self, offer: OfferId, body: BodyId) {
        self.asked.push_back((offer, body));
    }

    pub(super) fn has_asked(&self) -> bool {
        !self.asked.is_empty()
    }

    pub(super) fn is_receiving(&self) -> bool {
        !self.receiving.is_empty() || self.pushed.is_receiving()
    }

    /// Whether a thread waits for the body of an offer and the driver has no place for it yet.
    pub(super) fn is_wanted(&self, offer: OfferId) -> bool {
        self.wanted.iter().any(|wanted| wanted.offer == offer)
    }

    pub(super) fn end_offer(&mut self, offer: OfferId, outcome: Outcome) {
        if let Some(lending) = self.offers.remove(&offer) {
            lending.end.set(outcome);
        }
    }

    /// A body that was being received has ended. Returns how many pushed bytes were taken by that.
    pub(super) fn end_body(&mut self, body: BodyId, outcome: Outcome) -> Option<usize> {
        match self.receiving.remove(&body) {
            Some(receiving) => {
                receiving.end.set(outcome);
                receiving.pushed
            }
            None => self.pushed.end_body(body, outcome),
        }
    }

    /// The link is over and the driver done with all of them.
    pub(super) fn lose_all(&mut self) {
        let mut all = core::mem::take(self);
        self.pushed = all.pushed.lose_all();
        let offers = all.offers.into_values().map(|lending| lending.end);
        let wanted = all.wanted.into_iter().map(|wanted| wanted.end);
        let receiving = all.receiving.into_values().map(|receiving| receiving.end);
        for end in offers.chain(wanted).chain(receiving) {
            end.set(Outcome::Lost);
        }
    }

    /// Asks for the bodies that threads wait for, each with its place. `true` if one of them has ended instead.
    pub(super) fn place_wanted(
        &mut self,
        peer: ProcessId,
        link: &mut Link,
        announced: &mut BTreeMap<OfferId, MailboxId>,
        driver: &mut dyn Driver,
    ) -> bool {
        let mut ended = false;
        for wanted in core::mem::take(&mut self.wanted) {
            let body = match link.accept(wanted.offer) {
                Ok(body) => body,
                // When a body has come there is room again, and the link is served again.
                Err(AcceptRefused::Busy) => {
                    self.wanted.push_back(wanted);
                    continue;
                }
                Err(AcceptRefused::NotOpen) => {
                    wanted.end.set(Outcome::Retracted);
                    ended = true;
                    continue;
                }
            };
            // SAFETY: `Offered::receive` made the parts of memory it borrows mutably, disjoint and initialised, and does not
            // return before `end` is set or the link cut. `end` of a body that is received is set only when the
            // driver reported its end, and under the port, which our caller holds.
            let placed = unsafe {
                driver.recv_body(
                    driver_id(peer),
                    mizzen_driver::BodyId(body.0),
                    &wanted.parts,
                )
            };
            if placed.is_ok() {
                announced.remove(&wanted.offer);
                let (end, pushed) = (wanted.end, self.pushed.remove(wanted.offer));
                self.receiving.insert(body, Receiving { end, pushed });
            } else {
                // No room, or the loss of the link is about to be reported.
                let _ = link.withdraw(body);
                self.wanted.push_back(wanted);
            }
        }
        ended
    }

    /// Takes out what the driver is to send.
    pub(super) fn take_asked(&mut self) -> Asked {
        let asked = core::mem::take(&mut self.asked).into_iter();
        let with_parts = asked.filter_map(|(offer, body)| {
            let lending = self.offers.get_mut(&offer)?;
            Some((offer, body, core::mem::take(&mut lending.parts)))
        });
        Asked(with_parts.collect())
    }

    pub(super) fn put_back(&mut self, refused: Asked) {
        for (offer, body, parts) in refused.0.into_iter().rev() {
            if let Some(lending) = self.offers.get_mut(&offer) {
                lending.parts = parts;
                self.asked.push_front((offer, body));
            }
        }
    }
}

/// Bodies on their way to the driver.
pub(super) struct Asked(Vec<(OfferId, BodyId, Vec<Part>)>);

impl Asked {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Gives them to the driver; returns those it has no room for.
    ///
    /// # Errors
    ///
    /// How the link must end, if the driver refuses one for good.
    pub(super) fn send(self, peer: ProcessId, driver: &mut dyn Driver) -> Result<Self, Departure> {
        let mut refused = Vec::new();
        for (offer, body, parts) in self.0 {
            // SAFETY: the parts are of an offer that has not ended: offers end under the port, which our caller has held
            // since it took them out. Until it ends, its memory belongs to the `Lending`, or to a thread
            // in `NetLink::send_borrowed`, which neither writes it nor returns.
            let sent = unsafe {
                let (to, name) = (driver_id(peer), mizzen_driver::BodyId(body.0));
                if Link::is_pushed(body) {
                    driver.push_body(to, name, &parts)
                } else {
                    driver.send_body(to, name, &parts)
                }
            };
            match sent {
                Ok(()) => (),
                Err(Refused::TooManyBodies { .. } | Refused::Busy { .. }) => {
                    refused.push((offer, body, parts));
                }
                // The loss is about to be reported, and ends the offer.
                Err(Refused::NotConnected { .. }) => (),
                Err(_) => return Err(Departure::Misbehaved),
            }
        }
        Ok(Self(refused))
    }
}

/// Keeps a thread from unwinding while the driver has its memory.
struct Borrowing<'a> {
    engine: &'a Engine,
    link: &'a Arc<NetLink>,
    end: &'a End,
}

impl Drop for Borrowing<'_> {
    fn drop(&mut self) {
        if self.end.get().is_none() {
            self.engine.cut(self.link, Departure::ConnectionLost);
        }
    }
}

impl NetLink {
    /// Offers a body in the caller's memory with `offer`, and waits until it was sent, or never will be.
    pub(super) fn send_borrowed(
        self: &Arc<Self>,
        progress: &dyn Progress,
        engine: &Engine,
        pieces: &[&[u8]],
        deadline: Option<Instant>,
        offer: impl FnOnce(Lending) -> Result<OfferId, PostError>,
    ) -> Result<(), PostError> {
        let end = Arc::<End>::default();
        let borrowing = Borrowing {
            engine,
            link: self,
            end: &end,
        };
        let offer = match offer(Lending {
            parts: pieces.iter().map(|piece| Part::of(piece)).collect(),
            end: Arc::clone(&end),
            _owner: None,
        }) {
            Ok(offer) => offer,
            Err(error) => {
                // The parts are gone with the `Lending`: there is nothing to wait for.
                if Arc::strong_count(&end) == 1 {
                    end.set(Outcome::Declined);
                }
                return Err(error);
            }
        };
        self.push();
        let mut retracted = false;
        let outcome = match self.wait(progress, deadline, |_| end.get()) {
            Ok(outcome) => outcome,
            Err(Expired) => {
                // The peer answers with a decline, unless it has accepted already: then the body goes.
                if let Some(link) = &mut self.lock().link {
                    link.retract(offer);
                }
                retracted = true;
                self.push();
                loop {
                    if let Ok(outcome) = self.wait(progress, None, |_| end.get()) {
                        break outcome;
                    }
                }
            }
        };
        drop(borrowing);
        match outcome {
            Outcome::Declined if retracted => Err(PostError::TimedOut {
                rank: self.peer.rank,
            }),
            Outcome::Done | Outcome::Declined => Ok(()),
            Outcome::Lost | Outcome::Retracted => Err(self.peer_gone()),
        }
    }
}

/// A message whose body has yet to come. Dropping it declines the body.
#[derive(Debug)]
pub(super) struct NetOffered {
    link: Arc<NetLink>,
    offer: OfferId,
    head: Vec<u8>,
    body_len: usize,
    /// Whether the body comes without being asked for.
    pushed: bool,
    answered: bool,
}

impl NetOffered {
    pub(super) fn new(
        link: Arc<NetLink>,
        offer: OfferId,
        head: &[u8],
        body_len: u64,
        pushed: bool,
    ) -> Self {
        Self {
            link,
            offer,
            head: head.to_vec(),
            body_len: body_len as usize,
            pushed,
            answered: false,
        }
    }

    /// Receives the body into `parts`, which together are as long as it is.
    fn receive_while(
        &mut self,
        progress: &dyn Progress,
        parts: &mut [&mut [u8]],
    ) -> Result<(), UnpackError> {
        assert_eq!(
            parts.iter().map(|part| part.len()).sum::<usize>(),
            self.body_len,
            "the place is as long as the body"
        );
        let gone = |link: &NetLink| UnpackError::PeerGone(link.gone_or_lost());
        if self.answered {
            return Err(gone(&self.link));
        }
        if self.pushed {
            if let Some(outcome) = self.link.take_kept(progress, self.offer, parts) {
                self.answered = true;
                return outcome.map_err(|Lost| gone(&self.link));
            }
        }
        let Some(engine) = self.link.engine.upgrade() else {
            return Err(gone(&self.link));
        };
        let end = Arc::<End>::default();
        let borrowing = Borrowing {
            engine: &engine,
            link: &self.link,
            end: &end,
        };
        {
            let mut state = self.link.lock();
            if state.link.is_none() {
                end.set(Outcome::Lost);
                return Err(gone(&self.link));
            }
            if self.pushed && state.bodies.pushed.is_kept(self.offer) {
                // It was taken into our own memory just now.
                end.set(Outcome::Declined);
                drop(state);
                drop(borrowing);
                return self.receive_while(progress, parts);
            }
            self.answered = true;
            state.bodies.wanted.push_back(Wanted {
                offer: self.offer,
                parts: parts.iter_mut().map(|part| PartMut::of(part)).collect(),
                end: Arc::clone(&end),
            });
        }
        self.link.push();
        let outcome = loop {
            if let Ok(outcome) = self.link.wait(progress, None, |_| end.get()) {
                break outcome;
            }
        };
        drop(borrowing);
        match outcome {
            Outcome::Done => Ok(()),
            Outcome::Retracted => Err(UnpackError::Retracted),
            Outcome::Declined | Outcome::Lost => Err(gone(&self.link)),
        }
    }
}

impl Offered for NetOffered {
    fn len(&self) -> usize {
        self.head.len() + self.body_len
    }

    fn head(&self) -> &[u8] {
        &self.head
    }

    fn max_parts(&self) -> usize {
        let engine = self.link.engine.upgrade();
        engine.map_or(1, |engine| engine.max_parts)
    }

    fn receive(&mut self, parts: &mut [&mut [u8]]) -> Result<(), UnpackError> {
        let engine = self.link.engine.upgrade();
        let Some(process) = engine.and_then(|engine| engine.process.upgrade()) else {
            return Err(UnpackError::PeerGone(self.link.gone_or_lost()));
        };
        self.receive_while(process.progress(), parts)
    }

    fn is(&self, link: usize, offer: OfferId) -> bool {
        Arc::as_ptr(&self.link).addr() == link && self.offer == offer
    }
}

impl Drop for NetOffered {
    fn drop(&mut self) {
        if self.answered {
            return;
        }
        {
            let mut state = self.link.lock();
            state.announced.remove(&self.offer);
            if self.pushed {
                state.throw_away(self.offer);
            } else if let Some(link) = &mut state.link {
                link.decline(self.offer);
            }
            state.transmit();
        }
        self.link.push();
    }
}
