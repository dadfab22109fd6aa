//! Bodies that come without being asked for, and are here before their reader is.
//!
//! A pushed body stands in the driver, and its link with it, until it has a place. Its reader is usually about to give it
//! one: the message in front of the body has just been put into its mailbox. If the reader takes its time, the body goes
//! into memory of our own, so that what is behind it can go on, and the reader copies it from there. The protocol bounds
//! how much that can be ([`PUSH_WINDOW`](mizzen_proto::wire::PUSH_WINDOW) for a link).
//!
//! The file is about unsafety in so far as it lends that memory to the driver.
#![allow(unsafe_code)]

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mizzen_driver::{Driver, PartMut};
use mizzen_proto::id::{BodyId, OfferId};
use mizzen_proto::link::Link;

use super::bodies::{End, Outcome};
use super::control::Control;
use super::engine::driver_id;
use super::link::{NetLink, State};
use crate::memory::{LentBytes, Purpose};
use crate::process::progress::Progress;
use crate::rank::ProcessId;

/// How long a body stands in the driver before it is taken out of the way: longer than a sleeping reader needs to wake up.
pub(super) const PATIENCE: Duration = Duration::from_micros(100);

/// The link was lost before the body was whole.
#[derive(Debug)]
pub(super) struct Lost;

/// A body that stands in the driver.
pub(super) struct Standing {
    pub(super) link: Arc<NetLink>,
    pub(super) body: BodyId,
    pub(super) since: Instant,
}

/// The pushed bodies of one link that have no reader yet.
#[derive(Default)]
pub(super) struct Pushed {
    /// Announced, with their lengths.
    announced: BTreeMap<OfferId, usize>,
    /// Announced, and never wanted.
    unwanted: VecDeque<OfferId>,
    kept: BTreeMap<OfferId, Kept>,
    /// The bodies of `kept` that are not whole yet.
    receiving: BTreeMap<BodyId, OfferId>,
}

/// A body in memory of our own.
struct Kept {
    /// The driver writes it until `end` is set. Not looked at before that.
    memory: Memory,
    end: Arc<End>,
    len: usize,
    is_wanted: bool,
}

enum Memory {
    Block(LentBytes),
    Heap(Vec<u8>),
}

impl Memory {
    /// From the arena, which has its pages already, or else from the heap: the protocol bounds it.
    fn new(process: Option<&dyn Control>, len: usize) -> Self {
        let block = process.and_then(|process| {
            let block = process.links().try_take_block(len, Purpose::LongMessage);
            block.ok().flatten()
        });
        match block {
            Some(block) => Self::Block(block),
            None => Self::Heap(vec![0; len]),
        }
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Self::Block(block) => block.as_bytes(),
            Self::Heap(bytes) => bytes,
        }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Block(block) => block.as_mut_bytes(),
            Self::Heap(bytes) => bytes,
        }
    }
}

impl Pushed {
    pub(super) fn announce(&mut self, offer: OfferId, len: u64) {
        self.announced.insert(offer, len as usize);
    }

    /// It has a reader now. Returns its length.
    pub(super) fn remove(&mut self, offer: OfferId) -> Option<usize> {
        self.announced.remove(&offer)
    }

    pub(super) fn is_kept(&self, offer: OfferId) -> bool {
        self.kept.contains_key(&offer)
    }

    pub(super) fn is_receiving(&self) -> bool {
        !self.receiving.is_empty()
    }

    /// Whether somebody must see to bodies that nobody wants.
    pub(super) fn has_unwanted(&self) -> bool {
        !self.unwanted.is_empty()
    }

    /// A kept body has ended. Returns its length if nobody wants it.
    pub(super) fn end_body(&mut self, body: BodyId, outcome: Outcome) -> Option<usize> {
        let offer = self.receiving.remove(&body)?;
        let kept = self.kept.get(&offer)?;
        kept.end.set(outcome);
        if kept.is_wanted {
            return None;
        }
        self.kept.remove(&offer).map(|kept| kept.len)
    }

    /// The link is over, and the driver done with it. What remains is whole and has yet to be read.
    pub(super) fn lose_all(&mut self) -> Self {
        let mut kept = core::mem::take(&mut self.kept);
        for offer in self.receiving.values() {
            if let Some(kept) = kept.remove(offer) {
                kept.end.set(Outcome::Lost);
            }
        }
        Self {
            kept,
            ..Self::default()
        }
    }

    /// Takes the unwanted bodies out of the way. Those that the driver has no room for stay.
    pub(super) fn place_unwanted(
        &mut self,
        peer: ProcessId,
        link: &mut Link,
        driver: &mut dyn Driver,
    ) {
        for offer in core::mem::take(&mut self.unwanted) {
            if !self.keep(None, peer, link, driver, offer, false) {
                self.unwanted.push_back(offer);
            }
        }
    }

    /// Has a body received into memory of our own. `false` if the driver has no room for it.
    fn keep(
        &mut self,
        process: Option<&dyn Control>,
        peer: ProcessId,
        link: &mut Link,
        driver: &mut dyn Driver,
        offer: OfferId,
        is_wanted: bool,
    ) -> bool {
        let (Some(&len), Ok(body)) = (self.announced.get(&offer), link.accept(offer)) else {
            return true;
        };
        let mut memory = Memory::new(process, len);
        let part = PartMut::of(memory.bytes_mut());
        // SAFETY: the memory is ours alone, initialised, and does not move: a block of the arena, or of the heap. It goes
        // into `kept`, which is not looked at or freed before `end_body`, which the driver's report calls, or `lose_all`,
        // which comes after the driver is done with the link.
        let placed =
            unsafe { driver.recv_body(driver_id(peer), mizzen_driver::BodyId(body.0), &[part]) };
        if placed.is_err() {
            let _ = link.withdraw(body);
            return false;
        }
        self.announced.remove(&offer);
        self.receiving.insert(body, offer);
        let kept = Kept {
            memory,
            end: Arc::default(),
            len,
            is_wanted,
        };
        self.kept.insert(offer, kept);
        true
    }
}

impl State {
    /// A pushed body will never be wanted.
    pub(super) fn throw_away(&mut self, offer: OfferId) {
        let pushed = &mut self.bodies.pushed;
        match pushed.kept.get_mut(&offer) {
            Some(kept) if kept.end.get().is_none() => kept.is_wanted = false,
            Some(kept) => {
                let len = kept.len;
                pushed.kept.remove(&offer);
                self.taken(len);
            }
            None if self.link.is_some() => pushed.unwanted.push_back(offer),
            None => (),
        }
    }

    /// The memory of a pushed body is free: the peer may push as much again.
    pub(super) fn taken(&mut self, len: usize) {
        if let Some(link) = &mut self.link {
            link.taken(len as u64);
        }
    }

    /// Takes a body out of the driver's way, if it still stands there. `false` if that must be tried again.
    pub(super) fn keep_standing(
        &mut self,
        process: Option<&dyn Control>,
        driver: &mut dyn Driver,
        peer: ProcessId,
        body: BodyId,
    ) -> bool {
        let Some(link) = &mut self.link else {
            return true;
        };
        let Some(offer) = link.waiting(body) else {
            return true;
        };
        if self.bodies.is_wanted(offer) {
            // Its reader is here: it gets its place as soon as the link is served.
            return false;
        }
        self.announced.remove(&offer);
        self.bodies
            .pushed
            .keep(process, peer, link, driver, offer, true)
    }

    /// Whether a body has not been given a place yet.
    pub(super) fn is_standing(&self, body: BodyId) -> bool {
        let link = self.link.as_ref();
        link.is_some_and(|link| link.waiting(body).is_some())
    }
}

impl NetLink {
    /// If a body was taken into our own memory: waits until it is whole, and copies it to `parts`.
    pub(super) fn take_kept(
        self: &Arc<Self>,
        progress: &dyn Progress,
        offer: OfferId,
        parts: &mut [&mut [u8]],
    ) -> Option<Result<(), Lost>> {
        let end = {
            let state = self.lock();
            Arc::clone(&state.bodies.pushed.kept.get(&offer)?.end)
        };
        let outcome = loop {
            if let Ok(outcome) = self.wait(progress, None, |_| end.get()) {
                break outcome;
            }
        };
        let kept = self.lock().bodies.pushed.kept.remove(&offer);
        let Some(kept) = kept.filter(|_| outcome == Outcome::Done) else {
            return Some(Err(Lost));
        };
        let mut rest = kept.memory.bytes();
        for part in parts {
            let (here, after) = rest.split_at(part.len());
            part.copy_from_slice(here);
            rest = after;
        }
        let len = kept.len;
        drop(kept);
        let mut state = self.lock();
        state.taken(len);
        state.transmit();
        let has_news = !state.outbox.is_empty();
        drop(state);
        if has_news {
            self.push();
        }
        Some(Ok(()))
    }
}
