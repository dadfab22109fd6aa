//! The sending end of a lane for many threads of one process.
//!
//! A thread claims a slot, or two, and bytes if it needs them, by one compare-and-swap on a private word; it
//! then writes and announces its slot as a single sender would. The receiver takes slots in the order in which they
//! were claimed, so a slot that is announced late holds back those behind it: see [`Published::following`].
#![allow(unsafe_code)]

use crate::consumer::Consumer;
use crate::layout::{Extent, SHORT_MAX, begins_block, lead, slots_of};
use crate::ring::{Parts, Refused, Ring, place};
use crate::sync::{Arc, AtomicU32, AtomicU64, Ordering};

/// The sending end of a lane, shared by threads of one process.
///
/// The first payload word of every slot is the caller's address word `to`.
#[derive(Debug)]
pub struct SharedProducer {
    ring: Ring,
    claims: Arc<Claims>,
}

/// | field | writer | reader | ordering |
/// | --- | --- | --- | --- |
/// | `heads` | any sender, by compare-and-swap | any sender | acquire / release: a claim sees the claims before it |
/// | `doubles` | any sender, by addition | whoever shows what was sent | relaxed: a count |
/// | `byte_ends[i]` | the sender that claimed slot i | senders that see slot i released | relaxed: ordered by announce (release), the receiver's acquire, its release and our acquire of `released` |
#[derive(Debug)]
struct Claims {
    /// Slots claimed (upper half) and bytes claimed (lower half), both modulo 2³².
    heads: AtomicU64,
    /// Messages that took two slots.
    doubles: AtomicU64,
    byte_ends: Box<[AtomicU32]>,
}

/// What a message needs.
#[derive(Clone, Copy)]
enum Need {
    Slot,
    /// Two slots, or so many bytes.
    Double(u32),
    Bytes(u32),
}

/// A message that was just announced.
#[derive(Debug)]
pub struct Published<'a> {
    lane: &'a SharedProducer,
    /// Its slot, the second if it has two.
    position: u32,
}

impl Ring {
    /// The sending end for many threads of a process.
    ///
    /// # Panics
    ///
    /// If the sender's memory is read-only.
    #[must_use]
    pub fn shared_producer(self) -> SharedProducer {
        SharedProducer::new(self)
    }

    /// As [`ends_calling`](Self::ends_calling), with a sending end for many threads of a process.
    ///
    /// # Panics
    ///
    /// If the memory is read-only.
    #[must_use]
    pub fn shared_ends_calling(
        self,
        call: impl Fn(u32) + Send + Sync + 'static,
    ) -> (SharedProducer, Consumer) {
        (
            self.another().shared_producer(),
            self.consumer_calling(call),
        )
    }
}

impl Clone for SharedProducer {
    fn clone(&self) -> Self {
        Self {
            // Not a second sending end: both claim their slots in `claims`.
            ring: self.ring.another(),
            claims: Arc::clone(&self.claims),
        }
    }
}

impl SharedProducer {
    /// Bytes of a short message on a shared lane: two slots less the address word.
    pub const SHORT_MAX: usize = SHORT_MAX - size_of::<u64>();

    pub(crate) fn new(ring: Ring) -> Self {
        ring.sender.assert_writable();
        let byte_ends = (0..ring.shape.slots()).map(|_| AtomicU32::new(0)).collect();
        Self {
            ring,
            claims: Arc::new(Claims {
                heads: AtomicU64::new(0),
                doubles: AtomicU64::new(0),
                byte_ends,
            }),
        }
    }

    /// Sends up to [`Self::SHORT_MAX`] bytes in one slot, or in two.
    ///
    /// # Errors
    ///
    /// As [`Producer::try_short`](crate::Producer::try_short).
    #[inline]
    pub fn try_short(&self, tag: u16, to: u64, payload: &[u8]) -> Result<Published<'_>, Refused> {
        if payload.len() > Self::SHORT_MAX {
            return Err(Refused::TooLong);
        }
        self.send_short(tag, Some(to), payload)
    }

    /// The same without the address word, and up to [`SHORT_MAX`](crate::SHORT_MAX) bytes: for a lane whose messages are all for one
    /// mailbox. They look as those of a [`Producer`](crate::Producer).
    ///
    /// # Errors
    ///
    /// As [`Producer::try_short`](crate::Producer::try_short).
    #[inline]
    pub fn try_short_alone(&self, tag: u16, payload: &[u8]) -> Result<Published<'_>, Refused> {
        if payload.len() > SHORT_MAX {
            return Err(Refused::TooLong);
        }
        self.send_short(tag, None, payload)
    }

    #[inline(always)]
    fn send_short(
        &self,
        tag: u16,
        to: Option<u64>,
        payload: &[u8],
    ) -> Result<Published<'_>, Refused> {
        if slots_of(lead(to) + payload.len()) > 1 {
            return self.send_double(tag, to, payload);
        }
        let (position, _) = self.claim(Need::Slot)?;
        self.ring.publish_short(position, tag, to, payload);
        Ok(self.published(position))
    }

    /// The same for a message of two slots. Not inlined, so that the way of one slot stays short.
    #[inline(never)]
    fn send_double(
        &self,
        tag: u16,
        to: Option<u64>,
        payload: &[u8],
    ) -> Result<Published<'_>, Refused> {
        let (position, extent) = self.claim(Need::Double(payload.len() as u32))?;
        if let Some(extent) = extent {
            let to = to.unwrap_or_default();
            return Ok(self.send_bytes(position, extent, tag, to, [payload]));
        }
        self.ring.publish_double(position, tag, to, payload);
        Ok(self.published(position.wrapping_add(1)))
    }

    /// Sends `parts`, joined, through the byte ring.
    ///
    /// # Errors
    ///
    /// As [`Producer::try_eager`](crate::Producer::try_eager).
    pub fn try_eager(
        &self,
        tag: u16,
        to: u64,
        parts: impl Parts,
    ) -> Result<Published<'_>, Refused> {
        let len = parts.len();
        if len > self.ring.eager_max() {
            return Err(Refused::TooLong);
        }
        let (position, extent) = self.claim(Need::Bytes(len as u32))?;
        let extent = extent.unwrap_or(Extent { offset: 0, len: 0 });
        Ok(self.send_bytes(position, extent, tag, to, parts))
    }

    /// Writes and announces a message of the byte ring, whose slot and bytes were claimed.
    fn send_bytes(
        &self,
        position: u32,
        extent: Extent,
        tag: u16,
        to: u64,
        parts: impl Parts,
    ) -> Published<'_> {
        // SAFETY: this is the one sending end, and the claim gave these bytes to this thread alone: the receiver released what
        // was there.
        unsafe { self.ring.publish_bytes(position, extent, tag, to, parts) };
        self.ring.claim_after(extent);
        self.published(position)
    }

    /// Messages sent so far. To be shown only: the receiver, which has a part in it, may lie.
    #[must_use]
    pub fn sent(&self) -> u64 {
        // The receiver's position first: the heads are never behind it.
        let released = self.ring.receiver.word_unchecked(0).load(Ordering::Acquire);
        let head = (self.claims.heads.load(Ordering::Acquire) >> 32) as u32;
        let slots = released.wrapping_add(u64::from(head.wrapping_sub(released as u32)));
        slots.wrapping_sub(self.claims.doubles.load(Ordering::Relaxed))
    }

    /// The lane's memory.
    #[must_use]
    pub fn ring(&self) -> &Ring {
        &self.ring
    }

    /// Claims what is needed: the first slot, and bytes if any. A message of two slots takes one and bytes instead where the first
    /// would not begin a block.
    #[inline(always)]
    fn claim(&self, need: Need) -> Result<(u32, Option<Extent>), Refused> {
        // The heads are read before the receiver's position and `byte_ends`: if another sender reuses the
        // slot whose end we read below, it moved the heads first and our exchange fails.
        let mut heads = self.claims.heads.load(Ordering::Acquire);
        loop {
            let (head, byte_head) = ((heads >> 32) as u32, heads as u32);
            let Some(released) = self.ring.released_unless_stale(head)? else {
                // The head is read anew; if it did not move, the receiver claims to have read the future.
                let now = self.claims.heads.load(Ordering::Acquire);
                if now == heads {
                    return Err(Refused::Corrupt);
                }
                heads = now;
                continue;
            };
            let (slots, bytes) = match need {
                Need::Slot => (1, None),
                Need::Double(_) if begins_block(head) => (2, None),
                Need::Double(len) | Need::Bytes(len) => (1, Some(len)),
            };
            if head.wrapping_sub(released) > self.ring.shape.slots() - slots {
                return Err(Refused::Full);
            }
            let (extent, byte_head) = match bytes {
                None => (None, byte_head),
                Some(len) => {
                    let tail = self.byte_tail(released, head, byte_head);
                    let placed = place(self.ring.shape, byte_head, tail, len);
                    let (extent, byte_head) = placed.ok_or(Refused::Full)?;
                    (Some(extent), byte_head)
                }
            };
            let next = u64::from(head.wrapping_add(slots)) << 32 | u64::from(byte_head);
            match self.claims.heads.compare_exchange_weak(
                heads,
                next,
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => {
                    self.set_byte_end(head, byte_head);
                    if slots > 1 {
                        self.set_byte_end(head.wrapping_add(1), byte_head);
                        self.claims.doubles.fetch_add(1, Ordering::Relaxed);
                    }
                    return Ok((head, extent));
                }
                Err(now) => heads = now,
            }
        }
    }

    #[inline]
    fn set_byte_end(&self, position: u32, byte_head: u32) {
        self.claims.byte_ends[self.index(position)].store(byte_head, Ordering::Relaxed);
    }

    fn byte_tail(&self, released: u32, head: u32, byte_head: u32) -> u32 {
        if released == head {
            return byte_head;
        }
        self.claims.byte_ends[self.index(released.wrapping_sub(1))].load(Ordering::Relaxed)
    }

    /// The number of the slot that will be claimed next, modulo 2³²: all before it are announced, or about to be.
    #[must_use]
    pub fn claimed(&self) -> u32 {
        (self.claims.heads.load(Ordering::Acquire) >> 32) as u32
    }

    #[inline]
    fn published(&self, position: u32) -> Published<'_> {
        Published {
            lane: self,
            position,
        }
    }

    #[inline]
    fn index(&self, position: u32) -> usize {
        (position & (self.ring.shape.slots() - 1)) as usize
    }
}

impl Published<'_> {
    /// The number of its last slot, counted from the first one sent, modulo 2³².
    #[must_use]
    pub fn position(&self) -> u32 {
        self.position
    }

    /// Whether nobody has claimed a slot after this one yet.
    #[inline]
    pub(crate) fn is_last(&self) -> bool {
        let head = self.lane.claims.heads.load(Ordering::Relaxed) >> 32;
        head as u32 == self.position.wrapping_add(1)
    }

    /// The address word of the next slot, if a thread that claimed later has announced it already.
    ///
    /// Its sender may have woken a receiver that then found our slot still missing and slept again: whoever
    /// closes such a gap wakes the receivers behind it. Call after the fence of
    /// [`call_after_publish`](crate::call_after_publish), until `None`.
    #[inline]
    #[must_use]
    pub fn following(&mut self) -> Option<u64> {
        let next = self.position.wrapping_add(1);
        let ring = &self.lane.ring;
        // Acquire pairs with the release of the thread that announced it. One that still grows is announced by its own thread.
        if !ring.is_announced(next) {
            return None;
        }
        self.position = next;
        let line = ring.sender.line(ring.shape.slot_line(next));
        Some(line[0].load(Ordering::Relaxed))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::consumer::Arrival;
    use crate::layout::Shape;

    /// Of each claim that is never announced: whether its slots are one or two, and what came before and behind it is read once.
    #[test]
    fn what_others_announced_behind_the_gap_of_a_dead_thread_is_read() {
        for dead in [Need::Slot, Need::Double(100), Need::Bytes(300)] {
            for before in 0..5u8 {
                let (lane, mut consumer) =
                    Ring::heap(Shape::new(64, 1 << 14)).shared_ends_calling(|_| ());
                let post = |number: u8| {
                    let payload = vec![number; [8, 90, 300][usize::from(number) % 3]];
                    match payload.len() {
                        300 => lane.try_eager(0, 7, [&payload]).map(drop),
                        _ => lane.try_short(0, 7, &payload).map(drop),
                    }
                    .unwrap();
                };
                (0..before).for_each(post);
                lane.claim(dead).unwrap();
                (before..before + 6).for_each(post);
                // Another one dies at the end.
                lane.claim(dead).unwrap();
                let mut numbers = Vec::new();
                loop {
                    match consumer.poll().unwrap() {
                        Some(Arrival::Short(short)) => numbers.push(short.bytes()[8]),
                        Some(Arrival::Double(double)) => numbers.push(double.split_address().1[0]),
                        Some(Arrival::Eager(eager)) => {
                            let mut first = [0];
                            eager.copy_out(0, &mut first);
                            numbers.push(first[0]);
                        }
                        Some(Arrival::Closed) => panic!("nobody closed it"),
                        None if consumer.step_over_gap() => (),
                        None => break,
                    }
                }
                assert_eq!(numbers, (0..before + 6).collect::<Vec<_>>());
            }
        }
    }
}
