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

use mizzen_driver::{Driver, Gather, Part, PartMut};
use mizzen_proto::id::{BodyId, MailboxId, OfferId};
use mizzen_proto::link::{AcceptRefused, Link};
use mizzen_proto::time::Time;
use mizzen_proto::wire::PULL_MAX;

use super::giving::place_pushed;
use super::outcome::{End, Outcome};
use super::parts::{front_of, not_empty, slice, take_front};
use super::pushed::Pushed;
use super::session::NetSession;
use crate::rank::ProcessId;

/// The bodies of one link, both ways.
#[derive(Default)]
pub(super) struct Bodies {
    /// Our offers that have not ended.
    offers: BTreeMap<OfferId, Lending>,
    /// Bodies that the peer asked for and the session was not yet given.
    asked: VecDeque<Ask>,
    /// Bodies that were made of more parts than the driver takes, until they have gone.
    joined: BTreeMap<BodyId, Vec<u8>>,
    /// How long the parts are that are being sent of bodies that are asked for in parts.
    sending: BTreeMap<BodyId, usize>,
    /// Bodies that threads of ours wait for and the peer was not yet asked for, or for some of it.
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
    /// How long it is, if it is a part of what a [`Wanted`] waits for.
    part: Option<usize>,
    /// Its length, if it was pushed: then the peer may push as much again.
    pushed: Option<usize>,
}

/// The body of an offer of ours.
pub(super) struct Lending {
    pub(super) parts: Vec<Part>,
    pub(super) end: Arc<End>,
    /// Who owns the memory, if not a thread that waits.
    owner: Option<Owned>,
    /// How much of it the peer has asked for, if it does so in parts.
    reached: usize,
    /// Which part has the first byte that was not asked for, and where in the body that part begins.
    next: (usize, usize),
    /// The driver could not send one of them.
    has_failed: bool,
}

/// Bytes of a body that a thread of ours waits for.
pub(super) struct Wanted {
    offer: OfferId,
    asking: Asking,
    /// Where they go, as far as the peer was not asked for them.
    parts: VecDeque<PartMut>,
    end: Arc<End>,
    /// If nobody waits who owns the memory: not touched while the driver has it.
    _memory: Option<Arc<dyn Send + Sync>>,
}

/// How a body is asked for.
enum Asking {
    Whole,
    Parts {
        /// Where in the body the next part begins.
        from: usize,
        under_way: usize,
        /// No more is asked for: how it ends with what is under way.
        over: Option<Outcome>,
    },
}

/// What the peer asked for.
#[derive(Clone, Copy)]
struct Ask {
    offer: OfferId,
    body: BodyId,
    /// If not all of it: from where, and how many bytes.
    range: Option<(usize, usize)>,
}

/// The longest body that is asked for whole. Longer ones come in parts, so that either side knows how far they are, and neither
/// has more of them in hand than that.
pub(super) const WHOLE_MAX: usize = 8 << 20;

/// The length of a part: long enough that asking for it costs little.
const PART: usize = PULL_MAX as usize;

/// How many parts of one body are asked for before the first of them is here: what a fast network holds on its way.
const PARTS_AHEAD: usize = 4;

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
    /// A body in memory of somebody who waits for `end`.
    pub(super) fn of(parts: Vec<Part>, end: Arc<End>) -> Self {
        Self {
            parts,
            end,
            owner: None,
            reached: 0,
            next: (0, 0),
            has_failed: false,
        }
    }

    /// A body that needs nobody to wait for it.
    pub(super) fn owned(owned: Owned) -> Self {
        Self {
            owner: Some(owned),
            ..Self::of(Vec::new(), Arc::default())
        }
        .with_own_parts()
    }

    fn with_own_parts(mut self) -> Self {
        let owner = self.owner.iter();
        self.parts = owner.map(|owned| Part::of(&owned.bytes)).collect();
        self
    }

    /// `len` bytes of it, from `from` on. They are behind all that was asked for before, so that no part is passed over twice,
    /// however little is asked for at once.
    fn advance(&mut self, from: usize, len: usize) -> Vec<Part> {
        self.reached = from + len;
        let (mut index, mut begins) = self.next;
        while let Some(part) = self
            .parts
            .get(index)
            .filter(|part| begins + part.len() <= from)
        {
            (index, begins) = (index + 1, begins + part.len());
        }
        self.next = (index, begins);
        slice(&self.parts[index..], from - begins, len)
    }

    /// Whether the driver has none of it yet.
    fn is_untouched(&self) -> bool {
        !self.parts.is_empty() && self.reached == 0
    }
}

impl Wanted {
    /// All of the body of an offer, into memory of somebody who waits for `end`.
    pub(super) fn whole(offer: OfferId, parts: Vec<PartMut>, end: Arc<End>) -> Self {
        let len = parts.iter().map(PartMut::len).sum::<usize>();
        let asking = match len {
            0..=WHOLE_MAX => Asking::Whole,
            _ => Asking::from(0),
        };
        Self {
            offer,
            asking,
            parts: not_empty(parts),
            end,
            _memory: None,
        }
    }

    /// Some of it, from `from` on; `memory` holds the parts, if nobody waits who does.
    pub(super) fn some(
        offer: OfferId,
        from: usize,
        parts: Vec<PartMut>,
        end: Arc<End>,
        memory: Option<Arc<dyn Send + Sync>>,
    ) -> Self {
        Self {
            offer,
            asking: Asking::from(from),
            parts: not_empty(parts),
            end,
            _memory: memory,
        }
    }

    fn under_way(&self) -> usize {
        match self.asking {
            Asking::Whole => 0,
            Asking::Parts { under_way, .. } => under_way,
        }
    }

    /// Asks for no more.
    fn stop(&mut self, how: Outcome) {
        if let Asking::Parts { over, .. } = &mut self.asking {
            over.get_or_insert(how);
        }
        self.parts.clear();
    }

    /// How it ended, if it did.
    fn outcome(&self) -> Option<Outcome> {
        match self.asking {
            Asking::Parts {
                under_way: 0, over, ..
            } => over.or_else(|| self.parts.is_empty().then_some(Outcome::Done)),
            _ => None,
        }
    }
}

impl Asking {
    fn from(from: usize) -> Self {
        Self::Parts {
            from,
            under_way: 0,
            over: None,
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
        let range = None;
        self.asked.push_back(Ask { offer, body, range });
    }

    /// The peer asks for some of a body; the protocol has seen that it is inside.
    pub(super) fn ask_part(&mut self, offer: OfferId, body: BodyId, from: u64, len: u64) {
        let range = Some((from as usize, len as usize));
        self.asked.push_back(Ask { offer, body, range });
    }

    pub(super) fn has_asked(&self) -> bool {
        !self.asked.is_empty()
    }

    /// Whether a thread waits for the body of an offer and the driver has no place for it yet.
    pub(super) fn is_wanted(&self, offer: OfferId) -> bool {
        self.wanted.iter().any(|wanted| wanted.offer == offer)
    }

    /// Takes back a body that nobody was asked for yet, or the rest of one. `false`: the driver has a place of it, or it has
    /// ended.
    pub(super) fn take_wanted(&mut self, end: &Arc<End>) -> bool {
        let Some(at) = self.place_of(end) else {
            return false;
        };
        self.wanted[at].stop(Outcome::Declined);
        if self.wanted[at].under_way() > 0 {
            return false;
        }
        self.wanted.remove(at);
        true
    }

    fn place_of(&self, end: &Arc<End>) -> Option<usize> {
        self.wanted
            .iter()
            .position(|wanted| Arc::ptr_eq(&wanted.end, end))
    }

    /// The driver is done with a body of ours. `is_last`: its offer has ended with it.
    pub(super) fn end_sent(
        &mut self,
        offer: OfferId,
        body: BodyId,
        outcome: Outcome,
        is_last: bool,
    ) {
        self.joined.remove(&body);
        let part = self.sending.remove(&body);
        let Some(lending) = self.offers.get_mut(&offer) else {
            return;
        };
        if let Some(len) = part {
            lending.end.moved(len);
            lending.has_failed |= outcome != Outcome::Done;
        }
        if !is_last {
            return;
        }
        let len = lending.parts.iter().map(Part::len).sum::<usize>();
        let outcome = match part {
            Some(_) if lending.has_failed => Outcome::Lost,
            Some(_) if lending.reached < len => Outcome::Declined,
            _ => outcome,
        };
        self.end_offer(offer, outcome);
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
        lending.is_some_and(|lending| lending.is_untouched() && lending.owner.is_none())
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
        let Some(receiving) = self.receiving.remove(&body) else {
            return self.pushed.end_body(body, outcome);
        };
        match receiving.part {
            Some(len) => self.end_part(&receiving.end, len, outcome),
            None => receiving.end.set(outcome),
        }
        receiving.pushed
    }

    fn end_part(&mut self, end: &Arc<End>, len: usize, outcome: Outcome) {
        let Some(at) = self.place_of(end) else { return };
        let wanted = &mut self.wanted[at];
        if let Asking::Parts { under_way, .. } = &mut wanted.asking {
            *under_way -= 1;
        }
        match outcome {
            Outcome::Done => end.moved(len),
            failed => wanted.stop(failed),
        }
        if let Some(outcome) = wanted.outcome() {
            self.wanted.remove(at);
            end.set(outcome);
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
        session: &mut NetSession,
        driver: &mut dyn Driver,
        now: Time,
    ) -> bool {
        let mut ended = false;
        for mut wanted in core::mem::take(&mut self.wanted) {
            let is_over = match wanted.asking {
                Asking::Whole => {
                    let placing = Placing {
                        peer,
                        session,
                        driver,
                        now,
                    };
                    self.place_whole(link, announced, placing, &mut wanted)
                }
                Asking::Parts { .. } => {
                    let max_parts = driver.caps().max_parts;
                    self.place_parts(link, announced, session, max_parts, &mut wanted, now);
                    match wanted.outcome() {
                        Some(outcome) => {
                            wanted.end.set(outcome);
                            ended = true;
                            continue;
                        }
                        None => Placed::Later,
                    }
                }
            };
            match is_over {
                Placed::Now => (),
                Placed::Later => self.wanted.push_back(wanted),
                Placed::Never => {
                    wanted.end.set(Outcome::Retracted);
                    ended = true;
                }
            }
        }
        ended
    }

    fn place_whole(
        &mut self,
        link: &mut Link,
        announced: &mut BTreeMap<OfferId, MailboxId>,
        placing: Placing<'_>,
        wanted: &mut Wanted,
    ) -> Placed {
        let body = match link.accept(wanted.offer) {
            Ok(body) => body,
            // When a body has come there is room again, and the link is served again.
            Err(AcceptRefused::Busy) => return Placed::Later,
            Err(AcceptRefused::NotOpen) => return Placed::Never,
        };
        let parts = Vec::from(core::mem::take(&mut wanted.parts));
        if let Err(parts) = placing.place(body, parts) {
            // No room: the peer was not told.
            wanted.parts = parts.into();
            let _ = link.withdraw(body);
            return Placed::Later;
        }
        announced.remove(&wanted.offer);
        let receiving = Receiving {
            end: Arc::clone(&wanted.end),
            part: None,
            pushed: self.pushed.remove(wanted.offer),
        };
        self.receiving.insert(body, receiving);
        Placed::Now
    }

    /// Asks for the next parts of a body, as many as may be under way.
    fn place_parts(
        &mut self,
        link: &mut Link,
        announced: &mut BTreeMap<OfferId, MailboxId>,
        session: &mut NetSession,
        max_parts: usize,
        wanted: &mut Wanted,
        now: Time,
    ) {
        while let Asking::Parts {
            from, under_way, ..
        } = &mut wanted.asking
        {
            if wanted.parts.is_empty() || *under_way >= PARTS_AHEAD {
                return;
            }
            let (parts, len) = front_of(&wanted.parts, PART, max_parts);
            let body = match link.pull(wanted.offer, *from as u64, len as u32) {
                Ok(body) => body,
                Err(AcceptRefused::Busy) => return,
                Err(AcceptRefused::NotOpen) => return wanted.stop(Outcome::Retracted),
            };
            if session.expect_body(body, parts, now).is_err() {
                let _ = link.withdraw(body);
                return;
            }
            announced.remove(&wanted.offer);
            *from += len;
            *under_way += 1;
            take_front(&mut wanted.parts, len);
            let receiving = Receiving {
                end: Arc::clone(&wanted.end),
                part: Some(len),
                pushed: None,
            };
            self.receiving.insert(body, receiving);
        }
    }

    /// Takes out what is to be sent, in at most `max_parts` parts each.
    pub(super) fn take_asked(&mut self, max_parts: usize) -> Vec<(BodyId, Vec<Part>)> {
        let asked = core::mem::take(&mut self.asked).into_iter();
        asked
            .map(|ask| (ask.body, self.take_parts(ask, max_parts)))
            .collect()
    }

    /// The same for the body of an offer that goes without being asked for.
    pub(super) fn take_pushed(
        &mut self,
        offer: OfferId,
        body: BodyId,
        max_parts: usize,
    ) -> Vec<Part> {
        let range = None;
        self.take_parts(Ask { offer, body, range }, max_parts)
    }

    fn take_parts(&mut self, ask: Ask, max_parts: usize) -> Vec<Part> {
        let Some(lending) = self.offers.get_mut(&ask.offer) else {
            // It has not ended, or the protocol would not have let the peer ask for it.
            return Vec::new();
        };
        let parts = match ask.range {
            None => core::mem::take(&mut lending.parts),
            Some((from, len)) => {
                self.sending.insert(ask.body, len);
                lending.advance(from, len)
            }
        };
        if parts.len() <= max_parts {
            return parts;
        }
        let joined = join(&parts);
        let parts = vec![Part::of(&joined)];
        self.joined.insert(ask.body, joined);
        parts
    }
}

/// What a body needs to get a place.
struct Placing<'a> {
    peer: ProcessId,
    session: &'a mut NetSession,
    driver: &'a mut dyn Driver,
    now: Time,
}

impl Placing<'_> {
    /// Gives a body its place. One that was pushed may be waiting for it in the driver; another is asked for when the session
    /// has told the driver.
    fn place(self, body: BodyId, parts: Vec<PartMut>) -> Result<(), Vec<PartMut>> {
        if Link::is_pushed(body) {
            return place_pushed(self.peer, self.session, self.driver, body, parts);
        }
        let expected = self.session.expect_body(body, parts.clone(), self.now);
        expected.map_err(|_| parts)
    }
}

/// Whether a body has a place.
enum Placed {
    Now,
    Later,
    Never,
}

/// The bytes of a body, or of a part of one, in one piece.
fn join(parts: &[Part]) -> Vec<u8> {
    // SAFETY: as for `give_body`, which would have them read now.
    let mut gather = unsafe { Gather::new(parts) };
    let len = gather.remaining();
    let mut joined = Vec::with_capacity(len);
    gather.copy_to(len, &mut joined);
    joined
}
