//! The floor of long messages: a ring of chunks in shared memory. The sender copies from its memory into a chunk, the
//! receiver from the chunk into its own, both at once on different chunks.
//!
//! | word of a ring | writer | reader | ordering |
//! | --- | --- | --- | --- |
//! | `filled`: chunks written so far | sender | receiver | release / acquire |
//! | `emptied`: chunks read so far | receiver | sender | release / acquire |
#![allow(unsafe_code)]

use std::sync::atomic::Ordering;

use crate::bench::buffers::Buffers;
use crate::bench::carrier::Carrier;
use crate::bench::layout::{CHUNK, CHUNK_COUNT as CHUNKS, CHUNKS as AT, CHUNKS_EACH};
use crate::bench::memory::Memory;

/// What the table calls it.
pub(crate) const NAME: &str = "two copies through shared memory";

const FILLED: usize = 0;
const EMPTIED: usize = 256;
const HEADER: usize = 4096;

pub(crate) struct Copy {
    memory: Memory,
    mine: usize,
    theirs: usize,
    buffers: Buffers,
    filled: u64,
    emptied: u64,
}

impl Copy {
    pub(crate) fn new(memory: Memory, side: usize, buffers: Buffers) -> Self {
        Self {
            memory,
            mine: AT + side * CHUNKS_EACH,
            theirs: AT + (1 - side) * CHUNKS_EACH,
            buffers,
            filled: 0,
            emptied: 0,
        }
    }
}

fn chunk(ring: usize, number: u64) -> usize {
    ring + HEADER + number as usize % CHUNKS * CHUNK
}

impl Carrier for Copy {
    fn send(&mut self) -> anyhow::Result<()> {
        for part in self.buffers.outgoing().chunks(CHUNK) {
            let emptied = self.memory.word(self.mine + EMPTIED);
            while self.filled - emptied.load(Ordering::Acquire) >= CHUNKS as u64 {}
            let target = self.memory.bytes(chunk(self.mine, self.filled), part.len());
            // SAFETY: `target` has room for the part, which is memory of ours elsewhere. `emptied` was loaded with Acquire and
            // says that the receiver is done with this chunk; it looks again only after the Release store below.
            unsafe {
                part.as_ptr()
                    .copy_to_nonoverlapping(target.as_ptr(), part.len())
            };
            self.filled += 1;
            let filled = self.memory.word(self.mine + FILLED);
            filled.store(self.filled, Ordering::Release);
        }
        Ok(())
    }

    fn receive(&mut self) -> anyhow::Result<()> {
        for part in self.buffers.incoming().chunks_mut(CHUNK) {
            let filled = self.memory.word(self.theirs + FILLED);
            while filled.load(Ordering::Acquire) == self.emptied {}
            let source = self
                .memory
                .bytes(chunk(self.theirs, self.emptied), part.len());
            // SAFETY: `source` has as many bytes as the part, which is memory of ours elsewhere. `filled` was loaded with
            // Acquire and says that the sender wrote this chunk; it writes it again only after the Release store below.
            unsafe {
                part.as_mut_ptr()
                    .copy_from_nonoverlapping(source.as_ptr(), part.len())
            };
            self.emptied += 1;
            let emptied = self.memory.word(self.theirs + EMPTIED);
            emptied.store(self.emptied, Ordering::Release);
        }
        Ok(())
    }

    fn mark(&mut self, mark: u64) {
        self.buffers.mark(mark);
    }

    fn marked(&self) -> u64 {
        self.buffers.marked()
    }
}
