//! The sending end of a lane for one thread: no lock, no atomic read-modify-write.
#![allow(unsafe_code)]

use core::fmt;

use crate::consumer::Consumer;
use crate::layout::{Control, Kind, SHORT_MAX, SLOT_MAX, begins_block, slots_of};
use crate::ring::{Parts, Refused, Ring, place};

/// Messages after which a lane counts as used: they fit into the first page of its memory.
const FEW: u32 = 16;

/// The sending end of a lane, owned by one thread.
///
/// Nothing here waits: a full lane is [`Refused::Full`], and the message stays with the caller.
#[derive(Debug)]
pub struct Producer {
    ring: Ring,
    /// Slots sent so far, modulo 2³².
    head: u32,
    /// Bytes of the byte ring used so far, modulo 2³².
    byte_head: u32,
    /// The receiver's position as last seen; the truth may be further on.
    released: u32,
    /// For each slot, `byte_head` after its message: releasing a slot releases the bytes up to there.
    byte_ends: Box<[u32]>,
    once_used: OnceUsed,
}

/// What to do when the lane has taken a few messages.
struct OnceUsed(Option<Box<dyn FnOnce() + Send>>);

impl fmt::Debug for OnceUsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OnceUsed").field(&self.0.is_some()).finish()
    }
}

impl Ring {
    /// The sending end for one thread.
    ///
    /// # Panics
    ///
    /// If the sender's memory is read-only.
    #[must_use]
    pub fn producer(self) -> Producer {
        Producer::new(self)
    }

    /// Both ends, for senders that do not sleep when the lane is full.
    ///
    /// # Panics
    ///
    /// As [`ends_calling`](Self::ends_calling).
    #[must_use]
    pub fn ends(self) -> (Producer, Consumer) {
        self.ends_calling(|_| ())
    }

    /// Both ends. `call` raises and wakes the bell of a sender that waits for room.
    ///
    /// # Panics
    ///
    /// If the memory is read-only.
    #[must_use]
    pub fn ends_calling(self, call: impl Fn(u32) + Send + Sync + 'static) -> (Producer, Consumer) {
        (self.another().producer(), self.consumer_calling(call))
    }
}

impl Producer {
    pub(crate) fn new(ring: Ring) -> Self {
        ring.sender.assert_writable();
        let byte_ends = vec![0; ring.shape.slots() as usize].into();
        Self {
            ring,
            head: 0,
            byte_head: 0,
            released: 0,
            byte_ends,
            once_used: OnceUsed(None),
        }
    }

    /// Has `act` called once, when this lane, to which nothing was sent yet, has taken a few messages: it may then get its memory
    /// ready for more. That costs sending nothing, because the lane seems full at that moment, and is looked at again.
    ///
    /// # Panics
    ///
    /// If something was sent.
    #[must_use]
    pub fn once_used(mut self, act: impl FnOnce() + Send + 'static) -> Self {
        assert_eq!(self.head, 0, "nothing was sent yet");
        let slots = self.ring.shape.slots();
        // All but a few slots seem to be in use. No bytes do: `byte_ends` says so for every slot that was not used.
        self.released = FEW.min(slots).wrapping_sub(slots);
        self.once_used = OnceUsed(Some(Box::new(act)));
        self
    }

    /// Sends up to [`SHORT_MAX`](crate::SHORT_MAX) bytes in one slot, or in two.
    ///
    /// # Errors
    ///
    /// [`Refused::Full`] when the receiver is behind by the whole lane, [`Refused::TooLong`] beyond the limit.
    #[inline]
    pub fn try_short(&mut self, tag: u16, payload: &[u8]) -> Result<(), Refused> {
        if payload.len() > SHORT_MAX {
            return Err(Refused::TooLong);
        }
        if slots_of(payload.len()) > 1 {
            return self.try_double(tag, payload);
        }
        self.reserve(1)?;
        self.ring.publish_short(self.head, tag, None, payload);
        self.advance();
        Ok(())
    }

    /// The same for the first `len` bytes of `slot`. Those that fit into one slot are written with all that are behind them, which is
    /// quicker than to count.
    ///
    /// # Errors
    ///
    /// As [`try_short`](Self::try_short).
    #[inline]
    pub fn try_slot(
        &mut self,
        tag: u16,
        slot: &[u8; SHORT_MAX],
        len: usize,
    ) -> Result<(), Refused> {
        let (Some(first), ..=SLOT_MAX) = (slot.first_chunk(), len) else {
            return self.try_short(tag, slot.get(..len).ok_or(Refused::TooLong)?);
        };
        self.reserve(1)?;
        self.ring.publish_slot(self.head, tag, first, len);
        self.advance();
        Ok(())
    }

    /// The same for a message of two slots. Not inlined, so that the way of one slot stays short.
    #[inline(never)]
    fn try_double(&mut self, tag: u16, payload: &[u8]) -> Result<(), Refused> {
        if !begins_block(self.head) {
            return self.try_eager(tag, 0, [payload]);
        }
        self.reserve(2)?;
        self.ring.publish_double(self.head, tag, None, payload);
        self.advance();
        self.advance();
        Ok(())
    }

    /// Sends `parts`, joined, through the byte ring. `to` is a word for the receiver's use.
    ///
    /// # Errors
    ///
    /// [`Refused::Full`] when there is no room now, [`Refused::TooLong`] beyond
    /// [`Shape::eager_max`](crate::Shape::eager_max).
    pub fn try_eager(&mut self, tag: u16, to: u64, parts: impl Parts) -> Result<(), Refused> {
        let len = parts.len();
        if len > self.ring.eager_max() {
            return Err(Refused::TooLong);
        }
        self.reserve(1)?;
        let (extent, byte_head) = match self.place(len as u32) {
            Some(placed) => placed,
            None => {
                self.look_again()?;
                self.place(len as u32).ok_or(Refused::Full)?
            }
        };
        // SAFETY: this is the one sending end, and `place` found the bytes free: the receiver released what was there.
        unsafe { self.ring.publish_bytes(self.head, extent, tag, to, parts) };
        self.byte_head = byte_head;
        self.advance();
        self.ring.claim_after(extent);
        Ok(())
    }

    /// Says that nothing more will come. The receiver sees it after everything sent before.
    ///
    /// # Errors
    ///
    /// [`Refused::Full`] when there is no slot for it now.
    pub fn try_close(&mut self) -> Result<(), Refused> {
        self.reserve(1)?;
        let control = Control {
            kind: Kind::Close,
            len: 0,
            tag: 0,
        };
        self.ring.publish(self.head, control, &[]);
        self.advance();
        Ok(())
    }

    /// The lane's memory.
    #[must_use]
    pub fn ring(&self) -> &Ring {
        &self.ring
    }

    /// Makes sure there are so many free slots.
    #[inline]
    fn reserve(&mut self, slots: u32) -> Result<(), Refused> {
        if self.has_free(slots) {
            return Ok(());
        }
        self.look_for_room(slots)
    }

    #[inline]
    fn has_free(&self, slots: u32) -> bool {
        self.head.wrapping_sub(self.released) <= self.ring.shape.slots() - slots
    }

    #[cold]
    fn look_for_room(&mut self, slots: u32) -> Result<(), Refused> {
        self.look_again()?;
        if self.has_free(slots) {
            Ok(())
        } else {
            Err(Refused::Full)
        }
    }

    /// Looks how far the receiver is.
    fn look_again(&mut self) -> Result<(), Refused> {
        if let Some(act) = self.once_used.0.take() {
            act();
        }
        self.released = self.ring.released(self.head)?;
        Ok(())
    }

    fn place(&self, len: u32) -> Option<(crate::layout::Extent, u32)> {
        place(self.ring.shape, self.byte_head, self.byte_tail(), len)
    }

    /// Where the bytes still in use begin.
    fn byte_tail(&self) -> u32 {
        if self.released == self.head {
            return self.byte_head;
        }
        let last_released = self.released.wrapping_sub(1);
        self.byte_ends[self.index(last_released)]
    }

    #[inline]
    fn advance(&mut self) {
        let index = self.index(self.head);
        self.byte_ends[index] = self.byte_head;
        self.head = self.head.wrapping_add(1);
    }

    #[inline]
    fn index(&self, position: u32) -> usize {
        (position & (self.ring.shape.slots() - 1)) as usize
    }
}
