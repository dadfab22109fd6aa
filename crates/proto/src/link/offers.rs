//! Offers of both ends of one link (docs/wire.md §5).
//!
//! Every offer ends exactly once, by a decline or by its body:
//!
//! ```text
//!   sender:    open ─▶ offered ──accept──▶ sending ──sent, failed──▶ (ended)
//!                        │ ▲ retract: still offered, waits for the answer
//!                        └──decline──▶ (ended)
//!   receiver:  offer ─▶ announced ──accept──▶ receiving ──received, failed──▶ (ended)
//!                        │      ▲──withdraw──┘
//!                        └──decline, retract──▶ (ended)
//! ```
//!
//! An offer may be accepted in parts instead, each of them with a body of its own, from the front to the back:
//!
//! ```text
//!   sender:    offered ──pull──▶ pulled ──decline, last byte pulled──▶ over ──all parts sent, failed──▶ (ended)
//!   receiver:  announced ──pull──▶ pulled ──decline, retract, last byte pulled──▶ (ended, its parts still come)
//! ```
//!
//! One that is pushed begins as *sending*, and ends at the receiver by its body only.

use std::collections::{BTreeMap, BTreeSet};

use super::{BODIES_MAX, OFFERS_MAX, PULLS_MAX};
use crate::ProtocolError;
use crate::id::{BodyId, OfferId};
use crate::wire::{FrameKind, PUSH_WINDOW};

/// Why a body cannot be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AcceptRefused {
    /// Too many bodies are under way. Ask again when one has come.
    #[error("{BODIES_MAX} bodies are under way")]
    Busy,
    /// The peer took the offer back, or it was answered.
    #[error("the offer is no longer open")]
    NotOpen,
}

/// No body of this name is under way, in this direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no such body")]
pub struct UnknownBody;

/// The offers of this process.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    last_offer: u64,
    last_body: u64,
    offered: BTreeMap<OfferId, Offered>,
    /// Those of which the peer asked for parts.
    pulled: BTreeMap<OfferId, Pulled>,
    sending: BTreeMap<BodyId, OfferId>,
    /// Parts under way, or to be sent.
    parts: BTreeMap<BodyId, OfferId>,
    /// Bytes pushed and not returned.
    pushed: u64,
}

/// Bytes of a body. Their end does not overflow: they begin inside of a body, whose length is bounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) from: u64,
    pub(super) len: u32,
}

impl Range {
    fn end(self) -> u64 {
        self.from.saturating_add(u64::from(self.len))
    }
}

/// An offer that was not answered.
#[derive(Debug)]
struct Offered {
    len: u64,
    asked: Asked,
}

/// An offer that is answered part by part.
#[derive(Debug)]
struct Pulled {
    len: u64,
    asked: Asked,
    /// Where the next part may begin.
    reached: u64,
    under_way: usize,
    /// No more is wanted.
    is_over: bool,
}

/// What tells the name of a pushed body from those that receivers choose (docs/wire.md §5.8).
const PUSHED: u64 = 1 << 63;

/// The name of the body of a pushed offer.
pub(super) fn pushed_body(offer: OfferId) -> BodyId {
    BodyId(PUSHED | offer.0)
}

/// The pushed offer whose body has this name.
pub(super) fn pushed_offer(body: BodyId) -> Option<OfferId> {
    (body.0 & PUSHED != 0).then_some(OfferId(body.0 & !PUSHED))
}

/// Whether the peer was asked to let an offer be taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    No,
    Yes,
}

impl Outgoing {
    pub(super) fn open(&mut self, len: u64) -> OfferId {
        self.last_offer += 1;
        let offer = OfferId(self.last_offer);
        let asked = Asked::No;
        self.offered.insert(offer, Offered { len, asked });
        offer
    }

    /// Opens an offer whose body goes at once, if that much may be pushed now.
    pub(super) fn push(&mut self, len: u64) -> Option<(OfferId, BodyId)> {
        let charge = push_charge(len);
        if self.pushed + charge > PUSH_WINDOW {
            return None;
        }
        self.pushed += charge;
        self.last_offer += 1;
        let offer = OfferId(self.last_offer);
        let body = pushed_body(offer);
        self.sending.insert(body, offer);
        Some((offer, body))
    }

    pub(super) fn undo(&mut self, offer: OfferId) {
        self.offered.remove(&offer);
    }

    pub(super) fn undo_push(&mut self, body: BodyId, len: u64) {
        if self.sending.remove(&body).is_some() {
            // The peer may have returned, too early, what it never got.
            self.pushed = self.pushed.saturating_sub(push_charge(len));
        }
    }

    pub(super) fn handle_returned(&mut self, bytes: u64) -> Result<(), ProtocolError> {
        if bytes == 0 || bytes > self.pushed {
            let pushed = self.pushed;
            return Err(ProtocolError::ReturnedTooMuch { bytes, pushed });
        }
        self.pushed -= bytes;
        Ok(())
    }

    /// Whether the peer is to be asked.
    pub(super) fn retract(&mut self, offer: OfferId) -> bool {
        let offered = self.offered.get_mut(&offer);
        let pulled = self.pulled.get_mut(&offer).filter(|pulled| !pulled.is_over);
        let asked = offered.map(|offered| &mut offered.asked);
        match asked.or(pulled.map(|pulled| &mut pulled.asked)) {
            Some(asked) => std::mem::replace(asked, Asked::Yes) == Asked::No,
            None => false,
        }
    }

    pub(super) fn handle_accept(
        &mut self,
        offer: OfferId,
        body: BodyId,
    ) -> Result<(), ProtocolError> {
        let kind = FrameKind::Accept;
        self.offered
            .remove(&offer)
            .ok_or(ProtocolError::UnknownOffer { kind, offer })?;
        self.name_body(body)?;
        self.sending.insert(body, offer);
        Ok(())
    }

    pub(super) fn handle_pull(
        &mut self,
        offer: OfferId,
        body: BodyId,
        range: Range,
    ) -> Result<(), ProtocolError> {
        let kind = FrameKind::Pull;
        if let Some(Offered { len, asked }) = self.offered.remove(&offer) {
            let pulled = Pulled {
                len,
                asked,
                reached: 0,
                under_way: 0,
                is_over: false,
            };
            self.pulled.insert(offer, pulled);
        }
        let pulled = self.pulled.get_mut(&offer);
        let pulled = pulled
            .filter(|pulled| !pulled.is_over)
            .ok_or(ProtocolError::UnknownOffer { kind, offer })?;
        let Range { from, len } = range;
        if len == 0 || from < pulled.reached || range.end() > pulled.len {
            return Err(ProtocolError::PullRange { offer, from, len });
        }
        if self.parts.len() >= PULLS_MAX {
            let limit = PULLS_MAX;
            return Err(ProtocolError::TooManyPulls { offer, limit });
        }
        pulled.reached = range.end();
        pulled.under_way += 1;
        pulled.is_over = pulled.reached == pulled.len;
        self.name_body(body)?;
        self.parts.insert(body, offer);
        Ok(())
    }

    /// The peer has given a body its name.
    fn name_body(&mut self, body: BodyId) -> Result<(), ProtocolError> {
        if body.0 <= self.last_body || body.0 & PUSHED != 0 {
            let last = BodyId(self.last_body);
            return Err(ProtocolError::BodyOrder { body, last });
        }
        self.last_body = body.0;
        Ok(())
    }

    pub(super) fn handle_decline(&mut self, offer: OfferId) -> Result<(), ProtocolError> {
        let kind = FrameKind::Decline;
        if self.offered.remove(&offer).is_some() {
            return Ok(());
        }
        let pulled = self.pulled.get_mut(&offer);
        let pulled = pulled
            .filter(|pulled| !pulled.is_over)
            .ok_or(ProtocolError::UnknownOffer { kind, offer })?;
        pulled.is_over = true;
        if pulled.under_way == 0 {
            self.pulled.remove(&offer);
        }
        Ok(())
    }

    pub(super) fn end(&mut self, body: BodyId) -> Result<OfferId, UnknownBody> {
        if let Some(offer) = self.sending.remove(&body) {
            return Ok(offer);
        }
        let offer = self.parts.remove(&body).ok_or(UnknownBody)?;
        if let Some(pulled) = self.pulled.get_mut(&offer) {
            pulled.under_way -= 1;
            if pulled.under_way == 0 && pulled.is_over {
                self.pulled.remove(&offer);
            }
        }
        Ok(offer)
    }

    pub(super) fn has_ended(&self, offer: OfferId) -> bool {
        let is_whole = || self.sending.values().any(|sending| *sending == offer);
        !self.offered.contains_key(&offer) && !self.pulled.contains_key(&offer) && !is_whole()
    }

    pub(super) fn into_open(self) -> (Vec<OfferId>, Vec<(BodyId, OfferId)>) {
        let mut offered: Vec<OfferId> = self.offered.into_keys().collect();
        offered.extend(self.pulled.into_keys());
        offered.sort_unstable();
        let mut sending: Vec<_> = self.sending.into_iter().chain(self.parts).collect();
        sending.sort_unstable();
        (offered, sending)
    }

    /// Offers that have not ended.
    pub(super) fn len(&self) -> usize {
        self.offered.len() + self.pulled.len() + self.sending.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn is_full(&self) -> bool {
        self.len() >= OFFERS_MAX
    }
}

/// The offers of the peer.
#[derive(Debug, Default)]
pub(super) struct Incoming {
    last_offer: u64,
    last_body: u64,
    announced: BTreeMap<OfferId, u64>,
    /// Those of which we asked for parts, and may ask for more.
    pulled: BTreeMap<OfferId, Pulling>,
    /// Those announced whose bodies come unasked.
    pushed: BTreeSet<OfferId>,
    /// Bodies and parts under way, and how long the whole body is.
    receiving: BTreeMap<BodyId, (OfferId, u64)>,
    /// Bytes of pushed bodies that are not yet returned, and those of them that were taken.
    unreturned: u64,
    due: u64,
}

/// How far we have asked for a body.
#[derive(Debug)]
struct Pulling {
    len: u64,
    reached: u64,
}

impl Incoming {
    pub(super) fn accept(&mut self, offer: OfferId) -> Result<BodyId, AcceptRefused> {
        let &len = self.announced.get(&offer).ok_or(AcceptRefused::NotOpen)?;
        if self.pushed.remove(&offer) {
            // As many as the window holds at most, and they are here or soon will be.
            self.announced.remove(&offer);
            let body = pushed_body(offer);
            self.receiving.insert(body, (offer, len));
            return Ok(body);
        }
        if self.receiving.len() >= BODIES_MAX {
            return Err(AcceptRefused::Busy);
        }
        self.announced.remove(&offer);
        self.last_body += 1;
        let body = BodyId(self.last_body);
        self.receiving.insert(body, (offer, len));
        Ok(body)
    }

    pub(super) fn pull(&mut self, offer: OfferId, range: Range) -> Result<BodyId, AcceptRefused> {
        let Pulling { len, reached } = match (self.announced.get(&offer), self.pulled.get(&offer)) {
            (Some(&len), _) => Pulling { len, reached: 0 },
            (None, Some(&Pulling { len, reached })) => Pulling { len, reached },
            (None, None) => return Err(AcceptRefused::NotOpen),
        };
        assert!(
            !self.pushed.contains(&offer),
            "a pushed body is not asked for"
        );
        assert!(
            range.len > 0 && range.from >= reached && range.end() <= len,
            "the next bytes of the body"
        );
        if self.receiving.len() >= BODIES_MAX {
            return Err(AcceptRefused::Busy);
        }
        self.announced.remove(&offer);
        let reached = range.end();
        if reached == len {
            self.pulled.remove(&offer);
        } else {
            self.pulled.insert(offer, Pulling { len, reached });
        }
        self.last_body += 1;
        let body = BodyId(self.last_body);
        self.receiving.insert(body, (offer, len));
        Ok(body)
    }

    /// The caller knows that the peer was not told, and that this was the last range of the offer.
    pub(super) fn withdraw_pull(
        &mut self,
        body: BodyId,
        range: Range,
    ) -> Result<OfferId, UnknownBody> {
        let (offer, len) = self.receiving.remove(&body).ok_or(UnknownBody)?;
        let reached = range.from;
        if range.end() == len {
            self.pulled.insert(offer, Pulling { len, reached });
        } else if let Some(pulling) = self.pulled.get_mut(&offer) {
            // One that is not there was declined or retracted meanwhile.
            pulling.reached = reached;
        }
        Ok(offer)
    }

    /// The caller knows that the peer was not told.
    pub(super) fn withdraw(&mut self, body: BodyId) -> Result<OfferId, UnknownBody> {
        let (offer, len) = self.receiving.remove(&body).ok_or(UnknownBody)?;
        self.announced.insert(offer, len);
        if pushed_offer(body).is_some() {
            self.pushed.insert(offer);
        }
        Ok(offer)
    }

    /// Whether the peer is to be told.
    pub(super) fn decline(&mut self, offer: OfferId) -> bool {
        !self.pushed.contains(&offer) && self.forget(offer)
    }

    /// Whether it was open.
    fn forget(&mut self, offer: OfferId) -> bool {
        self.announced.remove(&offer).is_some() || self.pulled.remove(&offer).is_some()
    }

    /// The offer, if this is the name of a pushed body that was not accepted.
    pub(super) fn waiting(&self, body: BodyId) -> Option<OfferId> {
        pushed_offer(body).filter(|offer| self.pushed.contains(offer))
    }

    pub(super) fn handle_push(&mut self, offer: OfferId, len: u64) -> Result<(), ProtocolError> {
        let charge = push_charge(len);
        if self.unreturned + charge > PUSH_WINDOW {
            return Err(ProtocolError::PushedTooMuch { len });
        }
        self.handle_offer(offer, len)?;
        self.unreturned += charge;
        self.pushed.insert(offer);
        Ok(())
    }

    /// The memory of a pushed body is free again. Whether the peer is to be told.
    pub(super) fn taken(&mut self, len: u64) -> bool {
        let before = self.due;
        self.due = (self.due + push_charge(len)).min(self.unreturned);
        before < RETURN_AT && self.due >= RETURN_AT
    }

    pub(super) fn poll_returned(&mut self) -> Option<u64> {
        let due = std::mem::take(&mut self.due);
        self.unreturned -= due;
        (due > 0).then_some(due)
    }

    pub(super) fn handle_offer(&mut self, offer: OfferId, len: u64) -> Result<(), ProtocolError> {
        if offer.0 <= self.last_offer {
            let last = OfferId(self.last_offer);
            return Err(ProtocolError::OfferOrder { offer, last });
        }
        // Ours is never above the sender's own count: we see an answer end an offer before it does.
        if self.announced.len() + self.pulled.len() >= OFFERS_MAX {
            let limit = OFFERS_MAX;
            return Err(ProtocolError::TooManyOffers { offer, limit });
        }
        self.last_offer = offer.0;
        self.announced.insert(offer, len);
        Ok(())
    }

    /// Whether the offer was open and has ended; if not, the answer to it is already on its way.
    pub(super) fn handle_retract(&mut self, offer: OfferId) -> Result<bool, ProtocolError> {
        if offer.0 == 0 || offer.0 > self.last_offer {
            let kind = FrameKind::Retract;
            return Err(ProtocolError::UnknownOffer { kind, offer });
        }
        if self.pushed.contains(&offer) {
            let kind = FrameKind::Retract;
            return Err(ProtocolError::UnknownOffer { kind, offer });
        }
        Ok(self.forget(offer))
    }

    pub(super) fn end(&mut self, body: BodyId) -> Result<OfferId, UnknownBody> {
        let (offer, _) = self.receiving.remove(&body).ok_or(UnknownBody)?;
        Ok(offer)
    }

    pub(super) fn into_open(self) -> (Vec<OfferId>, Vec<(BodyId, OfferId)>) {
        let mut announced: Vec<OfferId> = self.announced.into_keys().collect();
        announced.extend(self.pulled.into_keys());
        announced.sort_unstable();
        let receiving = self.receiving.into_iter();
        let receiving = receiving.map(|(body, (offer, _))| (body, offer));
        (announced, receiving.collect())
    }

    pub(super) fn len(&self) -> usize {
        self.announced.len() + self.pulled.len() + self.receiving.len()
    }

    pub(super) fn bodies(&self) -> usize {
        self.receiving.len()
    }
}

/// What a pushed body takes of the window (docs/wire.md §5.9): its bytes, but no less than lets [`OFFERS_MAX`] of them into
/// it. A body that is accepted and never comes costs its receiver an entry, whatever its length.
fn push_charge(len: u64) -> u64 {
    len.max(PUSH_WINDOW / OFFERS_MAX as u64)
}

/// Taken bytes are returned once they are a quarter of the window: then the longest body that is pushed always finds
/// room when all before it were taken.
const RETURN_AT: u64 = PUSH_WINDOW / 4;
