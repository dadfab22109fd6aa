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

    /// Writes at `offset`. The receiver of the message may look at other parts meanwhile.
    ///
    /// # Panics
    ///
    /// If that reaches beyond the end.
    pub(crate) fn write(&self, offset: usize, bytes: &[u8]) {
        assert!(
            bytes.len() <= self.len() && offset <= self.len() - bytes.len(),
            "a chunk holds the bytes"
        );
        // SAFETY: this is inside of what the arena gave to us alone; its receiver, if it has one yet, looks at these bytes
        // only after they were told as filled, and they are written before.
        unsafe { self.region.copy_in(self.offset + offset, bytes) };
    }
}
