//! The two regions of a lane with their shape, and what both kinds of sender do with them.
#![allow(unsafe_code)]

use crate::layout::{Control, Extent, Kind, LINE, SLOT_MAX, SLOT_WORDS, Shape, WRITTEN, lead};
use crate::region::Region;
use crate::steps::step;
use crate::sync::{AtomicU64, Ordering, fence};

/// From how many bytes on a message is announced before all of it is written: the time that its receiver is ahead then is worth the
/// lines that tell it. A model follows every byte, and most of its messages are to be announced whole.
const GROWS_FROM: usize = if cfg!(loom) { 100 } else { 5 << 10 };
/// Bytes that are written before it is announced, and between two tellings after that.
const FIRST_STEP: usize = if cfg!(loom) { 96 } else { 2 << 10 };
const STEP: usize = if cfg!(loom) { 4 } else { 4 << 10 };

/// Why a lane did not take a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The receiver has not read far enough yet. Try again later.
    #[error("the lane is full")]
    Full,
    /// The message is longer than this kind of message may be.
    #[error("the message is too long for the lane")]
    TooLong,
    /// The receiver's position makes no sense: the lane cannot be used any more.
    #[error("the receiver wrote an impossible position")]
    Corrupt,
}

/// Why a lane cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LaneError {
    /// The sender wrote a control word or an extent that makes no sense.
    #[error("the sender wrote an impossible slot")]
    Corrupt,
    /// The memory given is too small for the shape.
    #[error("the memory is too small for the lane's shape")]
    TooSmall,
}

/// A message in parts, joined while it is copied into a lane.
pub trait Parts {
    /// Length of all parts together.
    fn len(&self) -> usize;
    /// Whether there is nothing in them.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Calls `take` with each part in order; together they are as long as [`len`](Self::len) says.
    fn each(&self, take: impl FnMut(&[u8]));
}

impl<P: Parts> Parts for &P {
    fn len(&self) -> usize {
        (**self).len()
    }

    fn each(&self, take: impl FnMut(&[u8])) {
        (**self).each(take);
    }
}

impl<T: AsRef<[u8]>, const N: usize> Parts for [T; N] {
    fn len(&self) -> usize {
        self.iter().map(|part| part.as_ref().len()).sum()
    }

    fn each(&self, take: impl FnMut(&[u8])) {
        self.iter().map(AsRef::as_ref).for_each(take);
    }
}

/// The memory of one lane, as one or both of its ends see it. It turns into a [`Producer`](crate::Producer) or a
/// [`SharedProducer`](crate::SharedProducer), a [`Consumer`](crate::Consumer), or one of each: a lane with two sending ends
/// would write the same bytes from two threads.
#[derive(Debug)]
pub struct Ring {
    pub(crate) sender: Region,
    pub(crate) receiver: Region,
    pub(crate) shape: Shape,
}

impl Ring {
    /// A lane in the given memory, which must be zeroed when the lane is new. For ends in different processes, where each
    /// makes a ring of its own; [`Ring::heap`] is for both ends in one.
    ///
    /// # Errors
    ///
    /// [`LaneError::TooSmall`] if a region does not hold the shape.
    ///
    /// # Safety
    ///
    /// Among all ends that this process ever makes in `sender`, at most one sends and at most one receives, and among those
    /// that live at once, at most one uses `receiver` for each direction. While an end of the lane lives, nothing else in
    /// this process stores to either region, except in a thread that uses the lane itself and not during its calls.
    /// Nothing need be promised of other processes.
    pub unsafe fn new(sender: Region, receiver: Region, shape: Shape) -> Result<Self, LaneError> {
        if sender.len() < shape.sender_bytes() || receiver.len() < Shape::RECEIVER_BYTES {
            return Err(LaneError::TooSmall);
        }
        Ok(Self {
            sender,
            receiver,
            shape,
        })
    }

    /// A new lane in heap memory.
    #[must_use]
    pub fn heap(shape: Shape) -> Self {
        let sender = Region::heap(shape.sender_bytes());
        Self {
            sender,
            receiver: Region::heap(Shape::RECEIVER_BYTES),
            shape,
        }
    }

    /// The memory that the sender writes: for tests of what a sender may do to it.
    #[doc(hidden)]
    #[must_use]
    pub fn sender_memory(&self) -> &Region {
        &self.sender
    }

    /// The same lane once more, for another part of the same end or for its other end.
    pub(crate) fn another(&self) -> Self {
        Self {
            sender: self.sender.clone(),
            receiver: self.receiver.clone(),
            shape: self.shape,
        }
    }

    /// The longest eager message of this lane.
    #[must_use]
    pub fn eager_max(&self) -> usize {
        self.shape.eager_max()
    }

    /// The word by which the sender says that it waits for room.
    #[must_use]
    pub fn room(&self) -> Room {
        Room(self.sender.clone())
    }

    /// Receiver, after telling its position: the bell of a sender that waits for room.
    pub(crate) fn waiting_sender(&self) -> Option<u32> {
        // Pairs with the fence in `Room::wait`.
        fence(Ordering::SeqCst);
        self.sender
            .word32_unchecked(0)
            .load(Ordering::Relaxed)
            .checked_sub(1)
    }

    /// Whether the slot at `position` is announced, and all of its message is there.
    #[inline]
    pub(crate) fn is_announced(&self, position: u32) -> bool {
        Control::announces_whole(self.control_word(position), position)
    }

    #[inline]
    pub(crate) fn control_word(&self, position: u32) -> u64 {
        let line = self.sender.line(self.shape.slot_line(position));
        // Acquire pairs with the release in `publish`.
        line[SLOT_WORDS].load(Ordering::Acquire)
    }

    /// How many slots the receiver has read, checked against the slots sent so far.
    #[inline]
    pub(crate) fn released(&self, head: u32) -> Result<u32, Refused> {
        // Acquire pairs with the receiver's release in `Holds::publish`: its reads of the slots are over.
        let released = self.receiver.load(0, Ordering::Acquire) as u32;
        if head.wrapping_sub(released) > self.shape.slots() {
            Err(Refused::Corrupt)
        } else {
            Ok(released)
        }
    }

    /// As `released`, for a `head` that another sender and the receiver may have passed: then `None`.
    #[inline]
    pub(crate) fn released_unless_stale(&self, head: u32) -> Result<Option<u32>, Refused> {
        let released = self.receiver.load(0, Ordering::Acquire) as u32;
        let behind = head.wrapping_sub(released);
        if behind <= self.shape.slots() {
            return Ok(Some(released));
        }
        // Ahead of an old head, by less than half the number space.
        if behind > u32::MAX / 2 {
            Ok(None)
        } else {
            Err(Refused::Corrupt)
        }
    }

    /// Writes and announces the slot at `position`, which the caller owns.
    #[inline]
    pub(crate) fn publish(&self, position: u32, control: Control, words: &[u64]) {
        step("lane.publish.before");
        let line = self.sender.line(self.shape.slot_line(position));
        for (to, from) in line.iter().zip(words) {
            to.store(*from, Ordering::Relaxed);
        }
        step("lane.publish.payload");
        // Release pairs with the receiver's acquire in `Consumer::poll`: payload before announcement.
        line[SLOT_WORDS].store(control.encode(position), Ordering::Release);
        step("lane.publish.after");
    }

    /// As `publish`, for a short message of one slot: `address`, if there is one, then the payload, which the caller has checked
    /// to fit behind it.
    #[inline(always)]
    pub(crate) fn publish_short(
        &self,
        position: u32,
        tag: u16,
        address: Option<u64>,
        payload: &[u8],
    ) {
        let len = lead(address) + payload.len();
        self.publish_first(position, tag, address, payload, len);
    }

    /// As `publish_short`, for `len` bytes that are at most so many.
    #[inline(always)]
    pub(crate) fn publish_slot(
        &self,
        position: u32,
        tag: u16,
        payload: &[u8; SLOT_MAX],
        len: usize,
    ) {
        self.publish_first(position, tag, None, payload, len);
    }

    /// The same for a message of two slots, the one at `position` and the next, which the caller owns both.
    pub(crate) fn publish_double(
        &self,
        position: u32,
        tag: u16,
        address: Option<u64>,
        payload: &[u8],
    ) {
        let lead = lead(address);
        let (first, second) = payload.split_at(SLOT_MAX - lead);
        let next = position.wrapping_add(1);
        let line = self.sender.line(self.shape.slot_line(next));
        store(second, line[..SLOT_WORDS].iter());
        // Relaxed: who looks at it has seen the announcement of the first slot.
        line[SLOT_WORDS].store(Control::SECOND.encode(next), Ordering::Relaxed);
        step("lane.publish.second");
        self.publish_first(position, tag, address, first, lead + payload.len());
    }

    /// Writes the first or only slot of a short message of `len` bytes, and announces it.
    #[inline(always)]
    fn publish_first(
        &self,
        position: u32,
        tag: u16,
        address: Option<u64>,
        payload: &[u8],
        len: usize,
    ) {
        step("lane.publish.before");
        let line = self.sender.line(self.shape.slot_line(position));
        let mut words = line[..SLOT_WORDS].iter();
        if let Some(address) = address {
            if let Some(to) = words.next() {
                to.store(address, Ordering::Relaxed);
            }
        }
        store(payload, words);
        let control = Control {
            kind: Kind::Short,
            len: len as u8,
            tag,
        };
        step("lane.publish.payload");
        // Release pairs with the receiver's acquire in `Consumer::poll`: payload before announcement.
        line[SLOT_WORDS].store(control.encode(position), Ordering::Release);
        step("lane.publish.after");
    }

    /// Copies `parts` into the byte ring, one after the other, and announces them in the slot at `position`, which the caller owns. A
    /// message that is long enough to be worth it is announced when its first bytes are there, so that its receiver copies them while
    /// the others are written. What is longer than the parts said does not fit into `extent`, and is left out.
    ///
    /// # Safety
    ///
    /// The caller has the bytes of `extent` to itself, among the threads of this process.
    pub(crate) unsafe fn publish_bytes(
        &self,
        position: u32,
        extent: Extent,
        tag: u16,
        to: u64,
        parts: impl Parts,
    ) {
        step("lane.bytes.before");
        if extent.len as usize >= GROWS_FROM {
            // SAFETY: as the caller promised.
            unsafe { self.grow(position, extent, tag, to, parts) };
        } else {
            let mut at = self.shape.bytes_offset() + extent.offset as usize;
            let end = at + extent.len as usize;
            parts.each(|part| {
                let part = &part[..part.len().min(end - at)];
                // SAFETY: this is inside `extent`, as the caller promised of it.
                unsafe { self.sender.copy_in(at, part) };
                at += part.len();
            });
        }
        step("lane.bytes.after");
        let control = Control {
            kind: Kind::Eager,
            len: 0,
            tag,
        };
        self.publish(position, control, &[to, extent.encode()]);
    }

    /// Copies `parts`, and tells after the first step of them, and after each further one, how far it is.
    ///
    /// # Safety
    ///
    /// As for [`publish_bytes`](Self::publish_bytes).
    unsafe fn grow(&self, position: u32, extent: Extent, tag: u16, to: u64, parts: impl Parts) {
        let (offset, len) = (
            self.shape.bytes_offset() + extent.offset as usize,
            extent.len as usize,
        );
        let (mut written, mut tell_at) = (0, FIRST_STEP);
        parts.each(|part| {
            let mut rest = &part[..part.len().min(len - written)];
            while !rest.is_empty() {
                let now;
                (now, rest) = rest.split_at(rest.len().min(tell_at - written));
                // SAFETY: this is inside `extent`, as the caller promised of it.
                unsafe { self.sender.copy_in(offset + written, now) };
                written += now.len();
                // The end is told by the control word of a whole message.
                if written == tell_at && written < len {
                    self.tell_written(position, extent, tag, to, written as u64);
                    tell_at = (tell_at + STEP).min(len);
                }
            }
        });
    }

    /// So many bytes of the message at `position` are written.
    fn tell_written(&self, position: u32, extent: Extent, tag: u16, to: u64, written: u64) {
        if written == FIRST_STEP as u64 {
            let control = Control {
                kind: Kind::Growing,
                len: 0,
                tag,
            };
            self.publish(position, control, &[to, extent.encode(), written]);
        } else {
            let line = self.sender.line(self.shape.slot_line(position));
            // Release pairs with the acquire in `Consumer::copy_growing`: the bytes before the count.
            line[WRITTEN].store(written, Ordering::Release);
            step("lane.bytes.grown");
        }
    }

    /// Asks for the lines behind `extent`, whose message was announced: the next one will mostly go there, and be as long.
    #[inline]
    pub(crate) fn claim_after(&self, extent: Extent) {
        let end = extent.offset.wrapping_add(whole_lines(extent.len));
        let next = end & (self.shape.bytes() - 1);
        self.sender.claim(
            self.shape.bytes_offset() + next as usize,
            extent.len as usize,
        );
    }

    /// Copies from byte `at` of `extent`. The caller has checked that it reaches so far.
    ///
    /// # Safety
    ///
    /// No other thread of this process writes these bytes meanwhile.
    #[inline]
    pub(crate) unsafe fn read_bytes(&self, extent: Extent, at: usize, target: &mut [u8]) {
        let offset = self.shape.bytes_offset() + extent.offset as usize;
        // SAFETY: as the caller promised.
        unsafe { self.sender.copy_out(offset + at, target) };
    }
}

/// Stores `bytes` into as many words.
#[inline(always)]
fn store<'a>(bytes: &[u8], mut words: impl Iterator<Item = &'a AtomicU64>) {
    let whole = bytes.chunks_exact(size_of::<u64>());
    let rest = whole.remainder();
    // The bytes first: `zip` would otherwise take one word too many.
    for (from, to) in whole.zip(&mut words) {
        let word = from.try_into().map_or(0, u64::from_ne_bytes);
        to.store(word, Ordering::Relaxed);
    }
    if !rest.is_empty() {
        let mut padded = [0; size_of::<u64>()];
        padded[..rest.len()].copy_from_slice(rest);
        if let Some(to) = words.next() {
            to.store(u64::from_ne_bytes(padded), Ordering::Relaxed);
        }
    }
}

/// The word by which the sender of a lane says that it waits for room.
#[derive(Clone, Debug)]
pub struct Room(Region);

impl Room {
    /// Sender: the receiver is to ring `bell` when there is room. Try again after this, before sleeping.
    ///
    /// # Panics
    ///
    /// If this is the receiver's view of the lane.
    pub fn wait(&self, bell: u32) {
        self.0.word32(0).store(bell + 1, Ordering::Relaxed);
        // Pairs with the fence in `Ring::waiting_sender`.
        fence(Ordering::SeqCst);
    }

    /// Sender: the receiver need not ring any more.
    ///
    /// # Panics
    ///
    /// If this is the receiver's view of the lane.
    pub fn stop_waiting(&self) {
        self.0.word32(0).store(0, Ordering::Relaxed);
    }
}

/// Where an eager message of `len` bytes goes when the byte ring is used from `tail` to `head`: its extent
/// and the new head. A message never wraps: it starts anew at the front when the rest is too short.
#[inline]
pub(crate) fn place(shape: Shape, head: u32, tail: u32, len: u32) -> Option<(Extent, u32)> {
    let start = head & (shape.bytes() - 1);
    let rest = shape.bytes() - start;
    let taken = whole_lines(len);
    let skip = if taken > rest { rest } else { 0 };
    // A thread that shares the lane may hold an old head with a new tail; its claim fails in any case.
    let used = head.wrapping_sub(tail);
    if used.saturating_add(skip + taken) > shape.bytes() {
        return None;
    }
    let offset = if skip == 0 { start } else { 0 };
    Some((Extent { offset, len }, head.wrapping_add(skip + taken)))
}

/// How many bytes of the byte ring a message of `len` bytes takes: it begins at a cache line, so that it touches as few as it can.
#[inline]
pub(crate) fn whole_lines(len: u32) -> u32 {
    len.next_multiple_of(LINE as u32)
}
