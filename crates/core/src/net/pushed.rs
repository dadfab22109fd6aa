//! Bodies that come without being asked for, and are here before their reader is.
//!
//! A pushed body stands in the driver, and its link with it, until it has a place. Its reader is usually about to give it
//! one: the message in front of the body has just been put into its mailbox. If the reader takes its time, the body goes
//! into memory of our own, so that what is behind it can go on, and the reader copies it from there. The protocol bounds
//! how much that can be ([`PUSH_WINDOW`](mizzen_proto::wire::PUSH_WINDOW) for a link).
//!
//! This file has unsafe code because it lends that memory to the driver.
#![allow(unsafe_code)]

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use mizzen_driver::{Driver, PartMut, Scatter};
use mizzen_proto::id::{BodyId, OfferId};
use mizzen_proto::link::Link;

use super::giving::place_pushed;
use super::outcome::{End, Outcome};
use super::session::NetSession;
use crate::links::Links;
use crate::memory::{Block, Purpose};
use crate::rank::ProcessId;

/// How long a body stands in the driver before it is taken out of the way: longer than a sleeping reader needs to wake up.
pub(super) const PATIENCE: Duration = Duration::from_micros(100);

/// The pushed bodies of one link that have no reader yet.
#[derive(Default)]
pub(super) struct Pushed {
    /// Announced, with their lengths.
    pub(super) announced: BTreeMap<OfferId, usize>,
    /// Announced, and never wanted.
    pub(super) unwanted: VecDeque<OfferId>,
    pub(super) kept: BTreeMap<OfferId, Kept>,
    /// The bodies of `kept` that are not whole yet.
    pub(super) receiving: BTreeMap<BodyId, OfferId>,
}

/// A body in memory of our own.
pub(super) struct Kept {
    /// The driver writes it until `end` is set. Not looked at before that.
    pub(super) memory: Memory,
    pub(super) end: Arc<End>,
    pub(super) len: usize,
    pub(super) is_wanted: bool,
}

pub(super) enum Memory {
    Block(Block),
    Heap(Vec<u8>),
}

impl Kept {
    /// Copies a body that is whole to where its reader wants it.
    pub(super) fn copy_to(&self, parts: &[PartMut]) {
        // SAFETY: `NetOffered::start` was given parts of memory that its caller borrows mutably, disjoint and initialised,
        // until the body was copied there or nobody waits for it any more. No driver has them: it wrote `memory` instead.
        let mut scatter = unsafe { Scatter::new(parts) };
        scatter.copy_from(self.memory.bytes());
    }
}

impl Memory {
    /// From the arena, which has its pages already, or else from the heap: the protocol bounds it.
    fn new(links: Option<&Links>, len: usize) -> Self {
        let block = links.and_then(|links| {
            let block = links.try_take_block(len, Purpose::LongMessage);
            block.ok().flatten()
        });
        match block {
            Some(block) => Self::Block(block),
            None => Self::Heap(vec![0; len]),
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
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
        session: &mut NetSession,
        driver: &mut dyn Driver,
    ) {
        for offer in core::mem::take(&mut self.unwanted) {
            let way = (session as &mut _, driver as &mut _);
            if !self.keep(None, peer, link, way, offer, false) {
                self.unwanted.push_back(offer);
            }
        }
    }

    /// Has a body received into memory of our own. `false` if the driver has no room for it.
    pub(super) fn keep(
        &mut self,
        links: Option<&Links>,
        peer: ProcessId,
        link: &mut Link,
        (session, driver): (&mut NetSession, &mut dyn Driver),
        offer: OfferId,
        is_wanted: bool,
    ) -> bool {
        let (Some(&len), Ok(body)) = (self.announced.get(&offer), link.accept(offer)) else {
            return true;
        };
        let mut memory = Memory::new(links, len);
        let part = PartMut::of(memory.bytes_mut());
        // The memory is ours alone, initialised, and does not move: a block of the arena, or of the heap. It goes into `kept`,
        // which is not looked at or freed before `end_body`, which is called when the body is all there, or `lose_all`, which comes
        // after driver and session are done with it.
        if place_pushed(peer, session, driver, body, vec![part]).is_err() {
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
