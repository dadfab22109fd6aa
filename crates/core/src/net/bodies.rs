//! Memory lent to the driver: the bodies of long messages, from their poster's memory into their reader's.
//!
//! Two functions (`lending.rs`) lend memory, `NetLink::send_borrowed` for a poster and `NetOffered::receive` for a
//! reader. Both stay on the stack of the thread that owns the memory until the driver is done with it: the body was moved,
//! declined or lost, or, if the thread unwinds, the link was cut. Two others lend it for an operation (`operations.rs`):
//! `NetLink::step_post` and `NetOffered::start_receiving`. The operation keeps the memory borrowed and does not touch it before
//! the body has ended; if it is dropped before that, its drop waits in the same way. The parts they put into [`Bodies`]
//! are valid for just as long, because whatever ends a body happens under the port, and so does whatever follows the parts.
#![allow(unsafe_code)]

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use mizzen_driver::{Driver, Part, PartMut, Refused};
use mizzen_proto::id::{BodyId, MailboxId, OfferId};
use mizzen_proto::link::{AcceptRefused, Link};

use super::id::driver_id;
use super::outcome::{End, Outcome};
use super::pushed::Pushed;
use crate::error::Departure;
use crate::rank::ProcessId;

/// The bodies of one link, both ways.
#[derive(Default)]
pub(super) struct Bodies {
    /// Our offers that have not ended.
    offers: BTreeMap<OfferId, Lending>,
    /// Bodies that the peer asked for and the driver was not yet given.
    asked: VecDeque<(OfferId, BodyId)>,
    /// Bodies that threads of ours wait for and the peer was not yet asked for.
    pub(super) wanted: VecDeque<Wanted>,
    receiving: BTreeMap<BodyId, Receiving>,
    /// Pushed bodies that nobody has a place for yet.
    pub(super) pushed: Pushed,
    /// Bytes of offered bodies in memory of our own, by mailbox.
    kept: BTreeMap<MailboxId, usize>,
}

/// A body that the driver has a place for.
struct Receiving {
    end: Arc<End>,
    /// Its length, if it was pushed: then the peer may push as much again.
    pushed: Option<usize>,
}

/// The body of an offer of ours.
pub(super) struct Lending {
    pub(super) parts: Vec<Part>,
    pub(super) end: Arc<End>,
    /// Who owns the memory, if not a thread that waits.
    pub(super) owner: Option<Owned>,
}

/// A body that a thread of ours waits for.
pub(super) struct Wanted {
    pub(super) offer: OfferId,
    pub(super) parts: Vec<PartMut>,
    pub(super) end: Arc<End>,
}

/// A body in memory of its own.
pub(super) struct Owned {
    to: MailboxId,
    /// Not touched until it is dropped: the driver reads it.
    bytes: Vec<u8>,
}

impl Owned {
    /// The body of a message to a mailbox.
    pub(super) fn new(to: MailboxId, bytes: Vec<u8>) -> Self {
        Self { to, bytes }
    }
}

impl Lending {
    /// A body that needs nobody to wait for it.
    pub(super) fn owned(owned: Owned) -> Self {
        Self {
            parts: vec![Part::of(&owned.bytes)],
            end: Arc::default(),
            owner: Some(owned),
        }
    }
}

impl Bodies {
    pub(super) fn offer(&mut self, offer: OfferId, lending: Lending) {
        if let Some(owned) = &lending.owner {
            *self.kept.entry(owned.to).or_default() += owned.bytes.len();
        }
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

    /// Takes back a body that nobody was asked for yet. `false`: the driver has its place, or it has ended.
    pub(super) fn take_wanted(&mut self, end: &Arc<End>) -> bool {
        let before = self.wanted.len();
        self.wanted.retain(|wanted| !Arc::ptr_eq(&wanted.end, end));
        self.wanted.len() < before
    }

    pub(super) fn end_offer(&mut self, offer: OfferId, outcome: Outcome) {
        if let Some(lending) = self.offers.remove(&offer) {
            lending.end.set(outcome);
            self.release(lending);
        }
    }

    /// How many bytes of bodies for a mailbox are in memory of our own.
    pub(super) fn kept(&self, to: MailboxId) -> usize {
        self.kept.get(&to).copied().unwrap_or(0)
    }

    /// How many bodies are.
    pub(super) fn kept_offers(&self) -> usize {
        let owned = self
            .offers
            .values()
            .filter(|lending| lending.owner.is_some());
        owned.count()
    }

    /// Whether the driver does not have the memory of an offer yet, and it can still be another's.
    pub(super) fn is_ours(&self, offer: OfferId) -> bool {
        let lending = self.offers.get(&offer);
        lending.is_some_and(|lending| !lending.parts.is_empty() && lending.owner.is_none())
    }

    /// Puts a copy in the place of memory that was lent for an offer, which is its owner's again. `false`: too late, the driver
    /// has it.
    pub(super) fn replace(&mut self, offer: OfferId, owned: Owned) -> bool {
        if !self.is_ours(offer) {
            return false;
        }
        if let Some(lent) = self.offers.remove(&offer) {
            lent.end.set(Outcome::Declined);
        }
        self.offer(offer, Lending::owned(owned));
        true
    }

    fn release(&mut self, lending: Lending) {
        let Some(owned) = lending.owner else { return };
        if let Some(kept) = self.kept.get_mut(&owned.to) {
            *kept -= owned.bytes.len();
            if *kept == 0 {
                self.kept.remove(&owned.to);
            }
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
            // SAFETY: `NetOffered::start` was given parts of memory that is borrowed mutably, disjoint and initialised, until
            // `end` is set or the link cut: `receive` does not return before, and an operation does not end. `end` of a body that is received is set only when the
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
            // in `NetLink::send_borrowed` or an operation, which neither write it nor end.
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
