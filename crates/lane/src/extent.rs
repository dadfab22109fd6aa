//! Memory of the arena for long messages: chunks and manifests. Unlike a block it has no number in the arena, because what
//! returns it is the message that it is part of.
#![allow(unsafe_code)]

use crate::region::Region;

/// A part of a slab. Whoever has it gives it back to the arena, or leaves it with a message that a peer may still read.
#[derive(Debug)]
pub(crate) struct Extent {
    pub(crate) region: Region,
    pub(crate) slab: u32,
    pub(crate) offset: usize,
    pub(crate) order: u32,
}

impl Extent {
    /// Length in bytes.
    pub(crate) fn len(&self) -> usize {
        1 << self.order
    }

    /// Writes at `offset`. The receiver of the message may look at other parts meanwhile. What is written after the end of this extent
    /// goes to `next`, if that is known.
    ///
    /// # Panics
    ///
    /// If that reaches beyond the end.
    pub(crate) fn write(&self, offset: usize, bytes: &[u8], next: Option<&Self>) {
        assert!(
            bytes.len() <= self.len() && offset <= self.len() - bytes.len(),
            "a chunk holds the bytes"
        );
        let (at, end) = (self.offset + offset, offset + bytes.len());
        let next = match next {
            _ if end < self.len() => self.region.address(self.offset + end),
            Some(next) => next.region.address(next.offset),
            // What lies behind is somebody else's.
            None => self.region.address(at),
        };
        // SAFETY: this is inside of what the arena gave to us alone; its receiver, if it has one yet, looks at these bytes
        // only after they were told as filled, and they are written before.
        unsafe { self.region.copy_in_before(at, bytes, next) };
    }
}
