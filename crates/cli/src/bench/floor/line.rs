//! The floor of short messages: one cache line that moves between two cores, payload and control word together.

use std::sync::atomic::{AtomicU64, Ordering};

use super::memory::{LINES, Memory};
use crate::bench::carrier::Carrier;

/// What the table calls it.
pub(crate) const NAME: &str = "cache line between two cores";
/// The longest payload: the line without its control word.
pub(crate) const LONGEST: usize = 56;

/// Far enough apart that no prefetcher joins them.
const APART: usize = 256;
const CONTROL: usize = 7;

pub(crate) struct Line {
    mine: &'static [AtomicU64; 8],
    theirs: &'static [AtomicU64; 8],
    words: usize,
    payload: [u64; CONTROL],
    sent: u64,
    received: u64,
}

impl Line {
    pub(crate) fn new(memory: Memory, side: usize, size: usize) -> Self {
        let line = |side: usize| &memory.lines::<1>(LINES + side * APART)[0];
        Self {
            mine: line(side),
            theirs: line(1 - side),
            words: size.div_ceil(8).min(CONTROL),
            payload: [0; CONTROL],
            sent: 0,
            received: 0,
        }
    }
}

impl Carrier for Line {
    #[inline]
    fn send(&mut self) -> anyhow::Result<()> {
        for (word, value) in self.mine.iter().zip(&self.payload[..self.words]) {
            word.store(*value, Ordering::Relaxed);
        }
        self.sent += 1;
        // Pairs with the load in `receive`: who sees the number sees the payload.
        self.mine[CONTROL].store(self.sent, Ordering::Release);
        Ok(())
    }

    #[inline]
    fn receive(&mut self) -> anyhow::Result<()> {
        self.received += 1;
        // Without a pause, which would be a part of the time.
        while self.theirs[CONTROL].load(Ordering::Acquire) != self.received {}
        for (word, value) in self.theirs.iter().zip(&mut self.payload[..self.words]) {
            *value = word.load(Ordering::Relaxed);
        }
        Ok(())
    }

    fn mark(&mut self, mark: u64) {
        self.payload[0] = mark;
    }

    fn marked(&self) -> u64 {
        self.payload[0]
    }
}
