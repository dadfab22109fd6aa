//! Where a mailbox looks for messages: the lanes of its senders, its queue, and the shared lanes that fill it.
//!
//! A look begins at the place that had the last message, the *hot* one, where the next one most likely is. It goes on with the few
//! that had messages before it, the *recent* ones, with the queue, and with a few of the other lanes and links in turn: a thousand
//! idle ones must not slow down those that are active. A mailbox that is about to sleep, or is asked only once, looks at all of
//! them.

pub(super) mod among;
mod elsewhere;
mod held;
mod of_rank;
mod opening;
mod order;
#[cfg(test)]
mod tests;

use core::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use mizzen_lane::{Arrival, Exact, SHORT_MAX};
use mizzen_shm::barrier;

use crate::delivery::{Account, Core, Delivery, Entry, LaneIn, Searched, Wanted};
use crate::error::{RetrieveError, UnpackError};
use crate::link::MemoryLink;
use crate::memory::{Holding, LoanTicket, Spare};
use crate::message::{Flags, Lead, Payload};
use crate::net::Catch;
use crate::process::Process;
use crate::progress::Progress;
use crate::rank::ProcessId;
use crate::wait::spin;

use self::held::{Held, Opened};
use super::led::Led;

/// Messages that one place may have in a row before the others are looked at, and that the recent ones may have.
const TURN: u32 = 128;

/// How many places count as recent.
const RECENT: usize = 4;

/// How far a look goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// Some of the places; the others have their turn next time.
    Some,
    /// All of them.
    All,
}

impl Reach {
    /// Of `count` places of a kind, how many one look takes in: as few of many as of some, so that a look costs the same. All have
    /// had their turn long before a waiting thread sleeps.
    #[inline]
    fn of(self, count: usize) -> usize {
        match self {
            Self::Some => count.min(8),
            Self::All => count,
        }
    }
}

/// The places of one mailbox. Used by its owner only.
pub(super) struct Places {
    lanes: RefCell<Vec<LaneIn>>,
    links: RefCell<Vec<Arc<MemoryLink>>>,
    links_version: Cell<u64>,
    hot: Cell<Origin>,
    /// How many messages in a row it had, so that the others get their turn.
    streak: Cell<u32>,
    /// Places that were hot before; the last one comes first. They are hints: lanes and links may have moved.
    recent: Cell<[Origin; RECENT]>,
    /// How many messages they had since the others were looked at.
    recent_streak: Cell<u32>,
    next_lane: Cell<usize>,
    next_link: Cell<usize>,
    /// Whether the queue and the links are looked at before the lanes.
    lanes_last: Cell<bool>,
    /// The same when only one rank's are looked for.
    lanes_last_of_rank: Cell<bool>,
    /// A message that a worker opens. While there is one, `streak` stays at `TURN`.
    held: RefCell<Option<Arc<Held>>>,
    /// Who has all of the above meanwhile, because receives are posted. While somebody has, `streak` stays at `TURN`.
    elsewhere: RefCell<Option<Arc<dyn Elsewhere>>>,
    /// Whether the networks, being the hot place, were watched a moment ago.
    has_watched: Cell<bool>,
    /// Whether a look has found news, for whoever must know more than what they brought.
    has_seen_news: Cell<bool>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// A sender's own lane.
    Lane(usize),
    /// The shared lane of a link, and the queue.
    Link(usize),
    /// Networks, which fill the queue.
    Network,
}

impl Origin {
    /// A place that is not there.
    const NOWHERE: Self = Self::Lane(usize::MAX);
}

/// Who has the places of a mailbox, and looks there for its owner.
pub(super) trait Elsewhere: Send + Sync {
    /// Looks for a message that the owner may have.
    fn poll(&self, reach: Reach) -> Look;

    /// The same, of one rank.
    fn poll_of(&self, wanted: Wanted, searched: &mut Searched, reach: Reach) -> Option<Outcome>;

    /// Looks for others only.
    fn move_on(&self);

    /// Whether there may be something for the owner.
    fn is_ready(&self) -> bool;

    /// The same, of one rank.
    fn is_ready_of(&self, wanted: Wanted, searched: &mut Searched) -> bool;
}

/// What a look elsewhere found.
pub(super) enum Look {
    Found(Outcome),
    Nothing,
    /// Nobody else needs them any more.
    Home(Box<Places>),
}

/// A message taken out of the mailbox, not yet opened.
pub struct Taken {
    /// Which process sent it.
    pub source: ProcessId,
    pub(crate) flags: Flags,
    pub(crate) payload: Payload,
    pub(crate) lender: Option<Arc<MemoryLink>>,
    /// What a worker made of it, if one opened it.
    pub(crate) opened: Option<Box<Opened>>,
}

impl Taken {
    /// Whether it is a header and a buffer that was [handed over](crate::Sender::hand_over).
    #[must_use]
    pub fn is_handed(&self) -> bool {
        self.flags == Flags::HANDED
    }

    /// Whether the message is a single plain piece.
    #[must_use]
    pub fn is_single(&self) -> bool {
        self.flags.has(Flags::SINGLE)
    }

    /// The first `N` bytes and the others, if the message is a single plain piece of so many that is all here.
    #[must_use]
    pub fn split_single<const N: usize>(self) -> Option<([u8; N], Vec<u8>)> {
        let len = self.len_behind(N).filter(|_| self.is_single())?;
        let (mut first, mut rest) = ([0; N], vec![0; len]);
        self.payload.copy_out(0, &mut first);
        self.payload.copy_out(N, &mut rest);
        Some((first, rest))
    }

    /// Whether it has a lead before it.
    #[must_use]
    pub fn is_led(&self) -> bool {
        self.flags.is_led()
    }

    /// The lead and what is behind it, if it has one.
    #[must_use]
    pub fn split_lead(self) -> Option<(Lead, Led)> {
        let mut lead = Lead::default();
        let len = self.len_behind(lead.len()).filter(|_| self.is_led())?;
        let mut spare = Spare::take();
        self.payload
            .copy_out(lead.len(), spare.as_mut().get_mut(..len)?);
        self.payload.copy_out(0, &mut lead);
        spare.set_len(len);
        Some((lead, Led::new(self.source, self.flags, spare)))
    }

    /// How many bytes are behind the first `first`, if all are here.
    fn len_behind(&self, first: usize) -> Option<usize> {
        let is_here = matches!(
            self.payload,
            Payload::Short { .. } | Payload::Eager(_) | Payload::Owned(_)
        );
        let len = self.payload.len().checked_sub(first);
        len.filter(|_| is_here)
    }
}

/// A message, or why there is none.
pub(super) type Outcome = Result<Taken, RetrieveError>;

fn take_entry(entry: Entry) -> Outcome {
    match entry {
        Entry::Message(delivery) => Ok(delivery.take()),
        Entry::Gone(gone) => Err(RetrieveError::PeerGone(gone)),
    }
}

impl Delivery {
    /// Takes the message out of the mailbox: whoever sent it may send another.
    fn take(self) -> Taken {
        if let Some(account) = &self.account {
            account.retrieved();
        }
        Taken {
            source: self.source,
            flags: self.flags,
            payload: self.payload,
            lender: self.lender,
            opened: None,
        }
    }
}

impl Places {
    pub(super) fn new() -> Self {
        Self {
            lanes: RefCell::default(),
            links: RefCell::default(),
            links_version: Cell::new(u64::MAX),
            hot: Cell::new(Origin::Lane(0)),
            streak: Cell::new(0),
            recent: Cell::new([Origin::Network; RECENT]),
            recent_streak: Cell::new(0),
            next_lane: Cell::new(0),
            next_link: Cell::new(0),
            lanes_last: Cell::new(false),
            lanes_last_of_rank: Cell::new(false),
            held: RefCell::default(),
            elsewhere: RefCell::default(),
            has_watched: Cell::new(false),
            has_seen_news: Cell::new(false),
        }
    }

    /// Takes the next message at the hot place into `target`, if it is one of just that length: most messages of a
    /// program that cares for time are. If there is none, looks up to `looks` times more, a moment apart.
    ///
    /// Always inlined: what is between the arrival of a message and the program's answer to it decides about the time of a
    /// round trip, and the length of `target` is known there.
    #[inline(always)]
    pub(super) fn take_hot(
        &self,
        process: &Process,
        core: &Core,
        flags: Flags,
        target: &mut [u8],
        looks: u32,
    ) -> bool {
        let streak = self.streak.get();
        if streak >= TURN {
            return false;
        }
        let Origin::Lane(index) = self.hot.get() else {
            return self.take_elsewhere(process, core, flags, target, looks);
        };
        let mut lanes = self.lanes.borrow_mut();
        let Some(lane) = lanes.get_mut(index) else {
            return false;
        };
        let mut left = looks;
        loop {
            match lane.consumer.poll_exact(flags.0, None, target) {
                Exact::Taken => break,
                Exact::Nothing if left > 0 => left -= 1,
                _ => return false,
            }
            ::core::hint::spin_loop();
        }
        self.streak.set(streak + 1);
        true
    }

    /// Takes the next message at the hot place into `slot`, if that is a lane and the message a short one with these flags: its
    /// length and who sent it. If there is none, looks up to `looks` times more, a moment apart.
    #[inline(always)]
    pub(super) fn take_hot_short(
        &self,
        flags: Flags,
        slot: &mut [u8; SHORT_MAX],
        looks: u32,
    ) -> Option<(usize, ProcessId)> {
        self.take_hot_of_lane(|lane| {
            let mut left = looks;
            loop {
                if let Some(len) = lane.consumer.poll_short(flags.0, slot) {
                    return Some((len, lane.link.peer));
                }
                // Another message would not become one of these by waiting.
                if left == 0 || lane.consumer.is_ready() {
                    return None;
                }
                left -= 1;
                ::core::hint::spin_loop();
            }
        })
    }

    /// Takes the next message at the hot place, if that is a lane, and the message has a lead before it.
    /// If there is none, looks up to `looks` times more, a moment apart.
    #[inline]
    pub(super) fn take_hot_led(&self, looks: u32) -> Option<(Lead, Led)> {
        self.take_hot_of_lane(|lane| {
            spin(looks, || lane.consumer.is_ready());
            let is_led = |tag| Flags(tag).is_led();
            let (tag, lead, mut spare, len) = lane.consumer.poll_split(is_led, Spare::take)?;
            spare.set_len(len);
            Some((lead, Led::new(lane.link.peer, Flags(tag), spare)))
        })
    }

    /// What `take` takes out of the lane that is the hot place, if it has not had its turn.
    #[inline(always)]
    fn take_hot_of_lane<T>(&self, take: impl FnOnce(&mut LaneIn) -> Option<T>) -> Option<T> {
        let streak = self.streak.get();
        let Origin::Lane(index) = self.hot.get() else {
            return None;
        };
        if streak >= TURN {
            return None;
        }
        let taken = take(self.lanes.borrow_mut().get_mut(index)?)?;
        self.streak.set(streak + 1);
        Some(taken)
    }

    fn take_elsewhere(
        &self,
        process: &Process,
        core: &Core,
        flags: Flags,
        target: &mut [u8],
        looks: u32,
    ) -> bool {
        match self.hot.get() {
            Origin::Lane(_) => false,
            Origin::Link(index) => self.take_hot_link(index, core, flags, target, looks),
            Origin::Network => self.catch(process, core, flags, target),
        }
    }

    /// The same if that is what networks bring: then the message need not be queued.
    fn catch(&self, process: &Process, core: &Core, flags: Flags, target: &mut [u8]) -> bool {
        if !core.is_queue_empty() || core.has_news() {
            return false;
        }
        let mut catch = Catch::new(core, flags, target);
        process.catch(&mut catch);
        if !catch.is_over() {
            self.has_watched.set(true);
            return false;
        }
        core.counts.note_caught();
        self.streak.set(self.streak.get() + 1);
        true
    }

    fn take_hot_link(
        &self,
        index: usize,
        core: &Core,
        flags: Flags,
        target: &mut [u8],
        looks: u32,
    ) -> bool {
        let links = self.links.borrow();
        let Some(link) = links.get(index) else {
            return false;
        };
        if link.take_exact(core, flags, target, looks) != Exact::Taken {
            return false;
        }
        self.streak.set(self.streak.get() + 1);
        true
    }

    /// The buffer of the message that was just taken at the hot place.
    pub(super) fn borrow(&self, ticket: LoanTicket) -> Result<Holding, UnpackError> {
        match self.hot.get() {
            Origin::Lane(index) => match self.lanes.borrow().get(index) {
                Some(lane) => lane.link.borrow(ticket),
                None => Err(UnpackError::Malformed),
            },
            Origin::Link(index) => match self.links.borrow().get(index) {
                Some(link) => link.borrow(ticket),
                None => Err(UnpackError::Malformed),
            },
            // Nothing on a network refers to another's memory.
            Origin::Network => Err(UnpackError::Malformed),
        }
    }

    /// Whether the last message came over a network.
    #[inline]
    pub(super) fn is_network_hot(&self) -> bool {
        self.hot.get() == Origin::Network
    }

    /// Whether the next message can be expected at the hot place.
    #[inline]
    pub(super) fn is_hot_likely(&self) -> bool {
        self.streak.get() > 0
    }

    /// Whether the hot place has a message, as far as a quick look tells.
    #[inline]
    pub(super) fn is_hot_ready(&self, core: &Core) -> bool {
        match self.hot.get() {
            Origin::Lane(index) => {
                let lanes = self.lanes.borrow();
                lanes
                    .get(index)
                    .is_some_and(|lane| lane.consumer.is_ready())
            }
            Origin::Link(index) => {
                let links = self.links.borrow();
                core.queued.load(Ordering::Acquire) > 0
                    || links.get(index).is_some_and(|link| link.peek.is_ready())
            }
            Origin::Network => core.queued.load(Ordering::Acquire) > 0,
        }
    }

    /// Looks once for a message.
    pub(super) fn poll(
        &self,
        process: &Arc<Process>,
        core: &Arc<Core>,
        reach: Reach,
    ) -> Option<Outcome> {
        let reach = if core.has_news() {
            self.take_news(core);
            Reach::All
        } else {
            reach
        };
        if self.is_holding(None) {
            return self.poll_held(process, core, reach);
        }
        loop {
            let lanes = self.lanes.borrow().len();
            let outcome = self
                .end_turn(process, core, reach)
                .or_else(|| self.poll_hot(process, core, reach))
                .or_else(|| self.poll_recent(process, core))
                .or_else(|| self.poll_others(process, core, reach));
            // When a lane has ended, another one was moved to its place and may have been passed over.
            if outcome.is_some() || self.lanes.borrow().len() >= lanes {
                return outcome;
            }
        }
    }

    /// When the hot place has had its turn, looks at the others first.
    #[inline]
    pub(super) fn end_turn(
        &self,
        process: &Arc<Process>,
        core: &Arc<Core>,
        reach: Reach,
    ) -> Option<Outcome> {
        if self.streak.get() < TURN {
            return None;
        }
        if self.is_holding(None) {
            return self.poll_held(process, core, reach);
        }
        self.streak.set(0);
        // Lanes that are always busy must not keep the others from their turn.
        self.lanes_last.set(!self.lanes_last.get());
        self.poll_others(process, core, reach)
    }

    fn poll_others(
        &self,
        process: &Arc<Process>,
        core: &Arc<Core>,
        reach: Reach,
    ) -> Option<Outcome> {
        if self.lanes_last.get() {
            return self
                .poll_shared(process, core, reach)
                .or_else(|| self.poll_lanes(core, reach));
        }
        self.poll_lanes(core, reach)
            .or_else(|| self.poll_shared(process, core, reach))
    }

    /// The queue, and what fills it.
    fn poll_shared(
        &self,
        process: &Arc<Process>,
        core: &Arc<Core>,
        reach: Reach,
    ) -> Option<Outcome> {
        let outcome = self
            .poll_queue(core)
            .or_else(|| self.poll_links(process, core, reach));
        if outcome.is_some() {
            return outcome;
        }
        // If that is the hot place, it was just looked at.
        if self.hot.get() != Origin::Network {
            process.poll_networks();
        }
        // Others' messages may have hidden ours, and networks bring theirs here: they were queued meanwhile.
        self.poll_queue(core)
    }

    #[inline]
    fn poll_hot(&self, process: &Arc<Process>, core: &Arc<Core>, reach: Reach) -> Option<Outcome> {
        match self.hot.get() {
            Origin::Lane(index) => self.poll_lane(core, index),
            // What is queued came before what is in the lane.
            Origin::Link(index) => match self.poll_queue(core) {
                Some(outcome) => {
                    self.note(Origin::Link(index));
                    Some(outcome)
                }
                None => self.poll_link(process, core, index),
            },
            Origin::Network => self.poll_queue(core).or_else(|| {
                let has_watched = self.has_watched.take();
                match reach {
                    // What that brought would be in the queue.
                    Reach::Some if has_watched => return None,
                    Reach::Some => process.watch_networks(),
                    Reach::All => process.poll_networks(),
                }
                self.poll_queue(core)
            }),
        }
    }

    /// The places that were hot before. When they have had their turn, the others come first once.
    fn poll_recent(&self, process: &Arc<Process>, core: &Arc<Core>) -> Option<Outcome> {
        let streak = self.recent_streak.get() + 1;
        if streak > TURN {
            self.recent_streak.set(0);
            return None;
        }
        for origin in self.recent.get() {
            let outcome = match origin {
                _ if origin == self.hot.get() => None,
                Origin::Lane(index) => self.poll_lane(core, index),
                // What is queued came before what is in the lane.
                Origin::Link(index) => self
                    .poll_queue(core)
                    .or_else(|| self.poll_link(process, core, index)),
                // A look at the networks costs more than one at the others, and comes after them.
                Origin::Network => None,
            };
            if outcome.is_some() {
                self.recent_streak.set(streak);
                return outcome;
            }
        }
        None
    }

    fn poll_lanes(&self, core: &Core, reach: Reach) -> Option<Outcome> {
        let looks = reach.of(self.lanes.borrow().len());
        for _ in 0..looks {
            // Lanes that ended are taken out meanwhile.
            let count = self.lanes.borrow().len();
            let index = self.next_lane.get();
            let index = if index < count { index } else { 0 };
            self.next_lane.set(index + 1);
            if self.hot.get() == Origin::Lane(index) {
                continue;
            }
            if let Some(outcome) = self.poll_lane(core, index) {
                return Some(outcome);
            }
        }
        None
    }

    fn poll_lane(&self, core: &Core, index: usize) -> Option<Outcome> {
        if !self.is_due(core, index) {
            return None;
        }
        self.take_of_lane(core, index)
    }

    fn take_of_lane(&self, core: &Core, index: usize) -> Option<Outcome> {
        let mut lanes = self.lanes.borrow_mut();
        let lane = lanes.get_mut(index)?;
        // Read before the lane: what the peer sent before it went is there then.
        let ended = lane.has_ended();
        let (flags, payload) = match lane.consumer.poll() {
            Ok(Some(Arrival::Short(short))) => {
                (Flags(short.tag), Payload::Short { short, from: 0 })
            }
            Ok(Some(Arrival::Double(double))) => (Flags(double.tag), Payload::Owned(double.bytes)),
            Ok(Some(Arrival::Eager(eager))) => (Flags(eager.tag), Payload::Eager(eager)),
            Ok(None) if !ended => return None,
            other => {
                let closed = matches!(other, Ok(Some(Arrival::Closed)));
                let lane = lanes.swap_remove(index);
                // The word that closed it was no message.
                let messages = lane.consumer.peek().taken() - u64::from(closed);
                core.counts.note_lane_end(messages);
                core.set_peeks(lanes.iter().map(LaneIn::peek).collect());
                drop(lanes);
                if let Origin::Lane(_) = self.hot.get() {
                    // Another lane may have its place, and it may not be that one's turn.
                    self.hot.set(Origin::NOWHERE);
                }
                end_lane(core, &lane, closed, other.is_err());
                return None;
            }
        };
        self.note(Origin::Lane(index));
        let lender = flags.refers_to_lender().then(|| Arc::clone(&lane.link));
        Some(Ok(Taken {
            source: lane.link.peer,
            flags,
            payload,
            lender,
            opened: None,
        }))
    }

    fn poll_queue(&self, core: &Core) -> Option<Outcome> {
        let entry = core.next_entry(|entry| self.is_too_early(core, entry))?;
        self.note_network(&entry);
        Some(take_entry(entry))
    }

    #[inline]
    fn note_network(&self, entry: &Entry) {
        if let Entry::Message(Delivery {
            account: Some(Account::Net { .. }),
            ..
        }) = entry
        {
            self.note(Origin::Network);
        }
    }

    fn poll_links(
        &self,
        process: &Arc<Process>,
        core: &Arc<Core>,
        reach: Reach,
    ) -> Option<Outcome> {
        self.refresh_links(process);
        let count = self.links.borrow().len();
        for _ in 0..reach.of(count) {
            let index = self.next_link.get();
            let index = if index < count { index } else { 0 };
            self.next_link.set(index + 1);
            if let Some(outcome) = self.poll_link(process, core, index) {
                return Some(outcome);
            }
        }
        None
    }

    fn poll_link(&self, process: &Arc<Process>, core: &Arc<Core>, index: usize) -> Option<Outcome> {
        let links = self.links.borrow();
        self.take_of_link(process, core, index, links.get(index)?)
    }

    /// Takes the next message of a shared lane if it is ours, and everybody else's before it to where they belong.
    fn take_of_link(
        &self,
        process: &Process,
        core: &Arc<Core>,
        index: usize,
        link: &Arc<MemoryLink>,
    ) -> Option<Outcome> {
        if self.is_life_too_early(core, link.peer) {
            // What is for us waits in the queue.
            link.pump(&process.mailboxes);
            return None;
        }
        let delivery = link.pump_for(&process.mailboxes, core)?;
        self.note(Origin::Link(index));
        Some(Ok(delivery.take()))
    }

    #[inline]
    fn note(&self, origin: Origin) {
        let again = self.hot.get() == origin;
        self.streak
            .set(if again { self.streak.get() + 1 } else { 0 });
        if !again {
            self.note_recent(self.hot.replace(origin));
        }
    }

    /// A place is not the hot one any more.
    fn note_recent(&self, origin: Origin) {
        if origin == Origin::NOWHERE {
            return;
        }
        let mut recent = self.recent.get();
        let place = recent.iter().position(|other| *other == origin);
        let place = place.unwrap_or(RECENT - 1);
        recent[..=place].rotate_right(1);
        recent[0] = origin;
        self.recent.set(recent);
    }

    fn take_news(&self, core: &Core) {
        if self.elsewhere.borrow().is_some() {
            // Whoever has the lanes takes the new ones.
            return;
        }
        self.has_seen_news.set(true);
        let new = core.take_new_lanes();
        let mut lanes = self.lanes.borrow_mut();
        lanes.extend(new);
        // The list may have been replaced just when these were opened.
        core.set_peeks(lanes.iter().map(LaneIn::peek).collect());
    }

    fn refresh_links(&self, process: &Process) {
        if self.links_version.get() != process.links.version() {
            let (version, links) = process.links.all();
            self.links_version.set(version);
            *self.links.borrow_mut() = links;
            if let Origin::Link(_) = self.hot.get() {
                // Another link may have its place.
                self.hot.set(Origin::NOWHERE);
            }
        }
    }

    pub(super) fn has_unsent_notices(&self) -> bool {
        self.links
            .borrow()
            .iter()
            .any(|link| link.has_unsent_notices())
    }

    /// Whether a look at everything would find something.
    pub(super) fn is_ready(&self, process: &Process, core: &Core) -> bool {
        if self.is_holding(None) {
            return self.is_held_ready() || core.has_news();
        }
        self.is_any_ready(process, core)
    }

    fn is_any_ready(&self, process: &Process, core: &Core) -> bool {
        core.queued.load(Ordering::Acquire) > 0
            || core.has_news()
            || self.links_version.get() != process.links.version()
            || self.lanes.borrow().iter().any(LaneIn::wants_a_look)
            || self.links.borrow().iter().any(|link| link.peek.is_ready())
    }

    /// What nobody will read gives back what it borrowed.
    pub(super) fn discard_all(&mut self, core: &Core) {
        self.held.take();
        self.take_news(core);
        while let Some(entry) = core.next_entry(|_| false) {
            if let Entry::Message(Delivery {
                flags,
                payload,
                lender: Some(lender),
                ..
            }) = entry
            {
                lender.discard(flags, &payload);
            }
        }
        let mut is_shared = false;
        for lane in self.lanes.get_mut() {
            is_shared |= lane.begin_ending();
        }
        if is_shared {
            // Who posts now sees that, or has announced what is found below.
            fence(Ordering::SeqCst);
            barrier::everywhere().into_iter().for_each(|fence| fence());
        }
        for lane in self.lanes.get_mut() {
            let link = Arc::clone(&lane.link);
            for arrival in lane.rest() {
                let (flags, payload) = match arrival {
                    Arrival::Short(short) => (Flags(short.tag), Payload::Short { short, from: 0 }),
                    Arrival::Double(double) => (Flags(double.tag), Payload::Owned(double.bytes)),
                    Arrival::Eager(eager) => (Flags(eager.tag), Payload::Eager(eager)),
                    Arrival::Closed => break,
                };
                link.discard(flags, &payload);
            }
        }
    }
}

/// A lane has no more messages: its sender closed it, is gone, or wrote nonsense.
#[cold]
fn end_lane(core: &Core, lane: &LaneIn, closed: bool, broken: bool) {
    if broken {
        lane.link.cut_off();
    }
    let orderly = closed || lane.done.load(Ordering::Acquire);
    if let Some(gone) = lane
        .link
        .gone()
        .filter(|gone| !orderly && gone.is_failure())
    {
        core.tell_gone(gone);
    }
}
