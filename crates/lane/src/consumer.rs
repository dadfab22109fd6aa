//! The receiving end of a lane.
#![allow(unsafe_code)]

use crate::layout::{
    Control, Extent, Kind, SHORT_MAX, SLOT_MAX, SLOT_WORDS, WRITTEN, lead, slots_of,
};
use crate::ring::{LaneError, Ring, whole_lines};
use crate::steps::step;
use crate::sync::{Arc, AtomicU64, Ordering, fence, spin_loop};

/// How often to look for more of a message whose sender is writing it: a step takes it less than a microsecond, unless it has lost its
/// core.
const GROWING_LOOKS: u32 = if cfg!(loom) { 1 } else { 256 };

/// The receiving end of a lane, owned by one thread at a time.
#[derive(Debug)]
pub struct Consumer {
    ring: Ring,
    /// Slots read so far.
    next: u64,
    /// Bytes of the byte ring read since the sender was told.
    untold: u32,
    holds: Arc<Holds>,
}

/// What came out of a lane.
#[derive(Debug)]
pub enum Arrival {
    /// A message that was inside its slot, copied out.
    Short(Short),
    /// A message that was in two slots, copied out.
    Double(Double),
    /// A message that still lies in the byte ring.
    Eager(Eager),
    /// The sender closed the lane: nothing follows.
    Closed,
}

/// What [`Consumer::poll_exact`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exact {
    /// The message, which is in the target now.
    Taken,
    /// Another message, which is still there.
    Other,
    /// No message.
    Nothing,
}

/// A short message.
#[derive(Clone, Copy, Debug)]
pub struct Short {
    /// The sender's tag.
    pub tag: u16,
    len: u8,
    words: Words,
}

/// A message of two slots.
#[derive(Debug)]
pub struct Double {
    /// The sender's tag.
    pub tag: u16,
    /// The payload; on a shared lane the address first.
    pub bytes: Vec<u8>,
}

/// Payload words that can also be seen as bytes.
#[derive(Clone, Copy, Debug)]
struct Words([[u8; 8]; SLOT_WORDS]);

/// An eager message, read in place. Its bytes stay in the ring until it is dropped.
#[derive(Debug)]
pub struct Eager {
    /// The sender's tag.
    pub tag: u16,
    /// The sender's address word.
    pub to: u64,
    extent: Extent,
    position: u64,
    holds: Arc<Holds>,
}

/// Which slots are still in use, so that the receiver's position can be told to the sender. No lock: the consumer marks the slot
/// of a message that it hands out, and whoever drops the message wipes the mark off.
///
/// | field | writer | reader | ordering |
/// | --- | --- | --- | --- |
/// | `next` | consumer | droppers of eager messages | release / acquire: the marks of the slots before it are there |
/// | `doubles` | consumer | whoever shows what was taken | relaxed: a count |
/// | `marks` | consumer sets, droppers wipe off | both | release / acquire: reads of the bytes are over. Fences before the looks: of two who wipe off at once, one sees that both did |
/// | `released` (receiver's region) | both, by max | sender | release / acquire |
struct Holds {
    ring: Ring,
    /// Calls a sender that waits for room, by the number of its bell.
    call: Box<dyn Fn(u32) + Send + Sync>,
    next: AtomicU64,
    /// Messages that took two slots.
    doubles: AtomicU64,
    /// One bit for each slot: set if an eager message begins there that is not dropped yet.
    marks: Box<[AtomicU64]>,
}

impl Ring {
    /// The receiving end, for senders that do not sleep when the lane is full.
    ///
    /// # Panics
    ///
    /// If the receiver's memory is read-only.
    #[must_use]
    pub fn consumer(self) -> Consumer {
        self.consumer_calling(|_| ())
    }

    /// The receiving end. `call` raises and wakes the bell of a sender that waits for room.
    ///
    /// # Panics
    ///
    /// If the receiver's memory is read-only.
    #[must_use]
    pub fn consumer_calling(self, call: impl Fn(u32) + Send + Sync + 'static) -> Consumer {
        Consumer::new(self, Box::new(call))
    }
}

impl Consumer {
    pub(crate) fn new(ring: Ring, call: Box<dyn Fn(u32) + Send + Sync>) -> Self {
        ring.receiver.assert_writable();
        let words = ring.shape.slots().div_ceil(u64::BITS);
        let holds = Arc::new(Holds {
            ring: ring.another(),
            call,
            next: AtomicU64::new(0),
            doubles: AtomicU64::new(0),
            marks: (0..words).map(|_| AtomicU64::new(0)).collect(),
        });
        Self {
            ring,
            next: 0,
            untold: 0,
            holds,
        }
    }

    /// Takes the next message if there is one.
    ///
    /// # Errors
    ///
    /// [`LaneError::Corrupt`] if the sender wrote nonsense. The lane stays at that slot for ever.
    #[inline]
    pub fn poll(&mut self) -> Result<Option<Arrival>, LaneError> {
        let line = self
            .ring
            .sender
            .line(self.ring.shape.slot_line(self.next as u32));
        // Acquire pairs with the release in `Ring::publish`.
        let word = line[SLOT_WORDS].load(Ordering::Acquire);
        if !Control::announces(word, self.next as u32) {
            return Ok(None);
        }
        step("lane.consume.seen");
        let control = Control::decode(word).ok_or(LaneError::Corrupt)?;
        let load = |index: usize| line[index].load(Ordering::Relaxed);
        let arrival = match control.kind {
            Kind::Short => {
                if slots_of(control.len as usize) > 1 {
                    let mut bytes = vec![0; control.len as usize];
                    self.copy_double(0, &mut bytes).ok_or(LaneError::Corrupt)?;
                    self.advance_double();
                    let tag = control.tag;
                    return Ok(Some(Arrival::Double(Double { tag, bytes })));
                }
                let mut words = Words([[0; 8]; SLOT_WORDS]);
                for index in 0..(control.len as usize).div_ceil(8) {
                    words.0[index] = load(index).to_ne_bytes();
                }
                Arrival::Short(Short {
                    tag: control.tag,
                    len: control.len,
                    words,
                })
            }
            Kind::Eager => {
                let extent = Extent::decode(load(1), self.ring.shape).ok_or(LaneError::Corrupt)?;
                Arrival::Eager(self.hold(control.tag, load(0), extent))
            }
            Kind::Close => Arrival::Closed,
            // As if it were not announced yet.
            Kind::Growing => return Ok(None),
            Kind::Second => return Err(LaneError::Corrupt),
        };
        step("lane.consume.copied");
        self.advance();
        step("lane.consume.advanced");
        Ok(Some(arrival))
    }

    /// Takes the next message into `target`, if it has this tag and exactly this length. If `address` is given, which is the first
    /// word on a shared lane, the message must begin with it.
    #[inline(always)]
    pub fn poll_exact(&mut self, tag: u16, address: Option<u64>, target: &mut [u8]) -> Exact {
        let position = self.next as u32;
        let line = self.ring.sender.line(self.ring.shape.slot_line(position));
        // Acquire pairs with the release in `Ring::publish`.
        let word = line[SLOT_WORDS].load(Ordering::Acquire);
        if !Control::announces(word, position) {
            return Exact::Nothing;
        }
        let lead = lead(address);
        let len = lead + target.len();
        if len > SLOT_MAX {
            return self.take_exact_long(word, tag, address, target);
        }
        let expected = Control {
            kind: Kind::Short,
            len: len as u8,
            tag,
        };
        if word != expected.encode(position)
            || address.is_some_and(|address| line[0].load(Ordering::Relaxed) != address)
        {
            return Exact::Other;
        }
        step("lane.consume.seen");
        let line = self.ring.shape.slot_line(position);
        let first = lead / size_of::<u64>();
        self.ring.sender.copy_from_line(line, first, target);
        step("lane.consume.copied");
        self.advance();
        step("lane.consume.advanced");
        Exact::Taken
    }

    /// The same for an announced message that is longer than a slot: it is copied out and gone. One of two slots may have come
    /// through the byte ring instead.
    fn take_exact_long(
        &mut self,
        word: u64,
        tag: u16,
        address: Option<u64>,
        target: &mut [u8],
    ) -> Exact {
        let position = self.next as u32;
        let lead = lead(address);
        let len = lead + target.len();
        let expected = Control {
            kind: Kind::Short,
            // Longer ones than a word can say are longer than a short message may be.
            len: len.min(SHORT_MAX + 1) as u8,
            tag,
        };
        if word != expected.encode(position) {
            return self.take_exact_eager(word, tag, address, target);
        }
        let line = self.ring.sender.line(self.ring.shape.slot_line(position));
        if len > SHORT_MAX
            || address.is_some_and(|address| line[0].load(Ordering::Relaxed) != address)
        {
            return Exact::Other;
        }
        step("lane.consume.seen");
        if self.copy_double(lead, target).is_none() {
            return Exact::Other;
        }
        step("lane.consume.copied");
        self.advance_double();
        step("lane.consume.advanced");
        Exact::Taken
    }

    /// The same for one in the byte ring.
    fn take_exact_eager(
        &mut self,
        word: u64,
        tag: u16,
        address: Option<u64>,
        target: &mut [u8],
    ) -> Exact {
        let position = self.next as u32;
        let line = self.ring.sender.line(self.ring.shape.slot_line(position));
        let load = |index: usize| line[index].load(Ordering::Relaxed);
        let kind = |kind| Control { kind, len: 0, tag }.encode(position);
        let (whole, growing) = (kind(Kind::Eager), kind(Kind::Growing));
        let extent = Extent::decode(load(1), self.ring.shape);
        let Some(extent) = extent.filter(|extent| extent.len as usize == target.len()) else {
            return Exact::Other;
        };
        if ![whole, growing].contains(&word) || address.is_some_and(|address| load(0) != address) {
            return Exact::Other;
        }
        step("lane.consume.seen");
        if word == whole {
            // SAFETY: the bytes were announced, and the one sending end writes them again only when the slot is released, below.
            unsafe { self.ring.read_bytes(extent, 0, target) };
        } else if !self.copy_growing(extent, whole, target) {
            return Exact::Nothing;
        }
        step("lane.consume.copied");
        self.advance_eager(extent);
        step("lane.consume.advanced");
        Exact::Taken
    }

    /// Copies a message while its sender still writes it, until its control word is `whole`. `false`: the sender does not go on; the
    /// message is there as before, and is copied from its beginning the next time.
    fn copy_growing(&self, extent: Extent, whole: u64, target: &mut [u8]) -> bool {
        let position = self.next as u32;
        let line = self.ring.sender.line(self.ring.shape.slot_line(position));
        let (mut here, mut looks) = (0, 0);
        loop {
            let is_whole = self.ring.control_word(position) == whole;
            let written = if is_whole {
                target.len()
            } else {
                // Acquire pairs with the release in `Ring::publish_bytes`.
                let written = line[WRITTEN].load(Ordering::Acquire);
                target.len().min(written as usize)
            };
            if written > here {
                let now = &mut target[here..written];
                // SAFETY: these bytes were told of, and the one sending end writes them again only when the slot is released.
                unsafe { self.ring.read_bytes(extent, here, now) };
                (here, looks) = (written, 0);
            }
            if is_whole {
                return true;
            }
            looks += 1;
            if looks > GROWING_LOOKS {
                return false;
            }
            spin_loop();
        }
    }

    /// Takes the next message into `target` and returns its length, if it is a short one with this tag. `None` if it is
    /// another one, or there is none.
    #[inline(always)]
    pub fn poll_short(&mut self, tag: u16, target: &mut [u8; SHORT_MAX]) -> Option<usize> {
        let position = self.next as u32;
        let slot = self.ring.shape.slot_line(position);
        // Acquire pairs with the release in `Ring::publish`.
        let word = self.ring.sender.line(slot)[SLOT_WORDS].load(Ordering::Acquire);
        if !Control::announces(word, position) {
            return None;
        }
        let control = Control::decode(word)?;
        if control.kind != Kind::Short || control.tag != tag {
            return None;
        }
        step("lane.consume.seen");
        let len = control.len as usize;
        if slots_of(len) > 1 {
            self.copy_double(0, &mut target[..len])?;
            self.advance_double();
            return Some(len);
        }
        self.ring
            .sender
            .copy_from_line(slot, 0, &mut target[..SLOT_MAX]);
        step("lane.consume.copied");
        self.advance();
        step("lane.consume.advanced");
        Some(len)
    }

    /// Takes the next message, if it is all here and has a tag that is wanted: its tag, its first `N` bytes, a multiple of 8, and the memory
    /// that `room` makes with the bytes behind them, and how many these are. `None` if it is another one, or shorter, or longer than that
    /// memory; or there is none.
    #[inline]
    pub fn poll_split<const N: usize, M: AsMut<[u8]>>(
        &mut self,
        is_wanted: impl Fn(u16) -> bool,
        room: impl FnOnce() -> M,
    ) -> Option<(u16, [u8; N], M, usize)> {
        const { assert!(N % size_of::<u64>() == 0 && N <= SLOT_MAX) };
        let position = self.next as u32;
        let word = self.ring.control_word(position);
        if !Control::announces(word, position) {
            return None;
        }
        let control = Control::decode(word).filter(|control| is_wanted(control.tag))?;
        let (mut first, mut memory) = ([0; N], room());
        let rest = memory.as_mut();
        let len = match control.kind {
            Kind::Short => self.split_short(control.len as usize, &mut first, rest)?,
            Kind::Eager => self.split_eager(&mut first, rest)?,
            _ => return None,
        };
        step("lane.consume.advanced");
        Some((control.tag, first, memory, len))
    }

    #[inline]
    fn split_short(&mut self, len: usize, first: &mut [u8], rest: &mut [u8]) -> Option<usize> {
        let (lead, line) = (first.len(), self.ring.shape.slot_line(self.next as u32));
        let behind = len.checked_sub(lead)?;
        step("lane.consume.seen");
        if slots_of(len) > 1 {
            self.copy_double(lead, rest.get_mut(..behind)?)?;
            self.ring.sender.copy_from_line(line, 0, first);
            self.advance_double();
        } else {
            self.ring.sender.copy_from_line(line, 0, first);
            let first_word = lead / size_of::<u64>();
            let all = rest.get_mut(..SLOT_MAX - lead)?;
            self.ring.sender.copy_from_line(line, first_word, all);
            step("lane.consume.copied");
            self.advance();
        }
        Some(behind)
    }

    fn split_eager(&mut self, first: &mut [u8], rest: &mut [u8]) -> Option<usize> {
        let line = self.ring.shape.slot_line(self.next as u32);
        let word = self.ring.sender.line(line)[1].load(Ordering::Relaxed);
        let extent = Extent::decode(word, self.ring.shape)?;
        let behind = (extent.len as usize).checked_sub(first.len())?;
        let rest = rest.get_mut(..behind)?;
        step("lane.consume.seen");
        // SAFETY: the bytes were announced, and the one sending end writes them again only when the slot is released, below.
        unsafe { self.ring.read_bytes(extent, 0, first) };
        // SAFETY: as above.
        unsafe { self.ring.read_bytes(extent, first.len(), rest) };
        step("lane.consume.copied");
        self.advance_eager(extent);
        Some(behind)
    }

    /// Whether a message is waiting.
    #[inline]
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.ring.is_announced(self.next as u32)
    }

    /// A view that lets other threads ask whether a message is waiting.
    #[must_use]
    pub fn peek(&self) -> Peek {
        Peek(Arc::clone(&self.holds))
    }

    /// The lane's memory.
    #[must_use]
    pub fn ring(&self) -> &Ring {
        &self.ring
    }

    fn hold(&self, tag: u16, to: u64, extent: Extent) -> Eager {
        self.holds.mark(self.next);
        Eager {
            tag,
            to,
            extent,
            position: self.next,
            holds: Arc::clone(&self.holds),
        }
    }

    /// Copies the announced message of two slots behind `lead` bytes. `None`: the sender wrote something else into the second.
    fn copy_double(&self, lead: usize, target: &mut [u8]) -> Option<()> {
        let position = self.next as u32;
        let after = position.wrapping_add(1);
        let (line, second) = (
            self.ring.shape.slot_line(position),
            self.ring.shape.slot_line(after),
        );
        // Relaxed: the announcement of the first slot, which was seen, is ordered after it.
        let word = self.ring.sender.line(second)[SLOT_WORDS].load(Ordering::Relaxed);
        if word != Control::SECOND.encode(after) {
            return None;
        }
        let (near, far) = target.split_at_mut(SLOT_MAX - lead);
        let first = lead / size_of::<u64>();
        self.ring.sender.copy_from_line(line, first, near);
        self.ring.sender.copy_from_line(second, 0, far);
        Some(())
    }

    /// Of a shared lane whose sender is dead: steps over slots that one of its threads had claimed and not announced, to the next message
    /// that another thread did announce. `false`: there is none. While the sender lives, what was claimed is about to be announced.
    pub fn step_over_gap(&mut self) -> bool {
        if self.is_ready() {
            return false;
        }
        let begins = |ahead: &u32| {
            let position = (self.next as u32).wrapping_add(*ahead);
            let line = self.ring.sender.line(self.ring.shape.slot_line(position));
            // Acquire pairs with the release in `Ring::publish`.
            let word = line[SLOT_WORDS].load(Ordering::Acquire);
            let is_second = matches!(
                Control::decode(word),
                Some(Control {
                    kind: Kind::Second,
                    ..
                })
            );
            Control::announces_whole(word, position) && !is_second
        };
        let Some(ahead) = (1..self.ring.shape.slots()).find(begins) else {
            return false;
        };
        (0..ahead).for_each(|_| self.advance());
        true
    }

    /// Both slots of a message were read.
    fn advance_double(&mut self) {
        self.advance();
        let doubles = self.holds.doubles.load(Ordering::Relaxed);
        self.holds.doubles.store(doubles + 1, Ordering::Relaxed);
        self.advance();
    }

    /// A message in the byte ring was copied out.
    #[inline]
    fn advance_eager(&mut self, extent: Extent) {
        self.advance();
        self.untold += whole_lines(extent.len);
        if self.untold >= self.ring.shape.bytes() / 4 {
            self.tell();
        }
    }

    #[inline]
    fn advance(&mut self) {
        self.next += 1;
        // Release pairs with the acquire in `Holds::settle`: the mark was set before.
        self.holds.next.store(self.next, Ordering::Release);
        // Telling the sender costs it a cache miss, so it is told a quarter of the lane at a time.
        let quarter = u64::from(self.ring.shape.slots() / 4).max(1);
        if self.next & (quarter - 1) == 0 {
            self.tell();
        }
    }

    #[cold]
    fn tell(&mut self) {
        self.untold = 0;
        self.holds.settle();
    }
}

/// Lets any thread ask whether a lane has a message that nobody has taken yet.
#[derive(Clone, Debug)]
pub struct Peek(Arc<Holds>);

impl Peek {
    /// Whether a message was waiting a moment ago.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        let next = self.0.next.load(Ordering::Acquire);
        self.0.ring.is_announced(next as u32)
    }

    /// Slots taken so far.
    #[must_use]
    pub fn passed(&self) -> u64 {
        self.0.next.load(Ordering::Acquire)
    }

    /// Messages taken so far. To be shown only: it is read beside others who count.
    #[must_use]
    pub fn taken(&self) -> u64 {
        let doubles = self.0.doubles.load(Ordering::Relaxed);
        self.passed().saturating_sub(doubles)
    }
}

impl Short {
    /// The payload.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.words.0.as_flattened()[..self.len as usize]
    }

    /// The first payload word: the address on a shared lane.
    #[inline]
    #[must_use]
    pub fn to(&self) -> u64 {
        u64::from_ne_bytes(self.words.0[0])
    }

    /// The payload behind the address word, on a shared lane.
    #[inline]
    #[must_use]
    pub fn bytes_after_address(&self) -> &[u8] {
        self.bytes().get(8..).unwrap_or_default()
    }
}

impl Double {
    /// The address word and the payload behind it, on a shared lane.
    #[must_use]
    pub fn split_address(mut self) -> (u64, Vec<u8>) {
        let address = self.bytes.first_chunk();
        let address = address.map_or(0, |word| u64::from_ne_bytes(*word));
        let rest = self.bytes.split_off(size_of::<u64>().min(self.bytes.len()));
        (address, rest)
    }
}

impl Eager {
    /// Length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.extent.len as usize
    }

    /// Whether it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies from `offset` of the message into `target`.
    ///
    /// # Panics
    ///
    /// If that reaches beyond the message.
    pub fn copy_out(&self, offset: usize, target: &mut [u8]) {
        let len = self.len();
        assert!(
            offset <= len && target.len() <= len - offset,
            "the copy lies inside the message"
        );
        // SAFETY: the bytes were announced, and the one sending end writes them again only when the slot is released,
        // which happens when this message is dropped.
        unsafe { self.holds.ring.read_bytes(self.extent, offset, target) };
    }
}

impl Drop for Eager {
    fn drop(&mut self) {
        self.holds.wipe_off(self.position);
        self.holds.settle();
    }
}

impl Holds {
    /// The word of `marks` in which a slot has its bit, and that bit.
    #[inline]
    fn bit(&self, position: u64) -> (&AtomicU64, u64) {
        let slot = position & u64::from(self.ring.shape.slots() - 1);
        let bit = slot % u64::from(u64::BITS);
        (
            &self.marks[(slot / u64::from(u64::BITS)) as usize],
            1 << bit,
        )
    }

    fn mark(&self, position: u64) {
        let (word, bit) = self.bit(position);
        word.fetch_or(bit, Ordering::Relaxed);
    }

    fn wipe_off(&self, position: u64) {
        let (word, bit) = self.bit(position);
        // Release pairs with the acquire in `oldest`: our reads of the bytes are over.
        word.fetch_and(!bit, Ordering::Release);
    }

    /// Tells the sender about the slots that nobody reads any more.
    fn settle(&self) {
        // Of two who wipe off marks, or one who does and the consumer, at least one comes after both here, and sees that.
        fence(Ordering::SeqCst);
        // Acquire pairs with the release in `Consumer::advance`.
        let next = self.next.load(Ordering::Acquire);
        let told = self.ring.receiver.word_unchecked(0).load(Ordering::Acquire);
        let free = self.oldest(told, next);
        if free > told {
            self.publish(free);
        }
    }

    /// The first of these positions that is marked, or the end. A mark may belong to a message one lap later, if another has told
    /// the sender of more meanwhile: then whoever wipes that off tells the rest.
    fn oldest(&self, from: u64, until: u64) -> u64 {
        let mut at = from;
        while at < until {
            let (word, bit) = self.bit(at);
            // Acquire pairs with the release in `wipe_off`.
            let marks = word.load(Ordering::Acquire) & !(bit - 1);
            if marks != 0 {
                let marked = at + u64::from(marks.trailing_zeros() - bit.trailing_zeros());
                return marked.min(until);
            }
            // The next word, or the first one again.
            let slots = u64::from(self.ring.shape.slots().min(u64::BITS));
            at += slots - at % slots;
        }
        until
    }

    /// Tells the sender that the slots before `position` are free. The largest position told counts: the
    /// consumer and the droppers of eager messages may tell theirs in any order.
    fn publish(&self, position: u64) {
        step("lane.release");
        self.ring
            .receiver
            .word_unchecked(0)
            .fetch_max(position, Ordering::AcqRel);
        if let Some(bell) = self.ring.waiting_sender() {
            (self.call)(bell);
        }
    }
}

impl core::fmt::Debug for Holds {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Holds")
            .field("ring", &self.ring)
            .finish_non_exhaustive()
    }
}
