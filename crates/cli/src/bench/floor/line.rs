//! The floor of short messages: one cache line that moves between two cores, payload and control word together.
//!
//! How long that takes depends on where in the shared cache the line has its home, by a factor of up to two; so several pairs
//! of lines take turns, a few hundred messages each.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::bench::carrier::Carrier;
use crate::bench::layout::{LINE_PAIRS as PAIRS, LINES, LINES_APART as APART};
use crate::bench::memory::Memory;

/// What the table calls it.
pub(crate) const NAME: &str = "cache line between two cores";
/// The longest payload: the line without its control word.
pub(crate) const LONGEST: usize = 56;

/// For how many messages (as a power of two) each pair of lines is used.
const TURN: u32 = 8;
const CONTROL: usize = 7;

pub(crate) struct Line {
    mine: [&'static [AtomicU64; 8]; PAIRS],
    theirs: [&'static [AtomicU64; 8]; PAIRS],
    words: usize,
    payload: [u64; CONTROL],
    sent: u64,
    received: u64,
}

impl Line {
    pub(crate) fn new(memory: Memory, side: usize, size: usize) -> Self {
        let lines = |side: usize| {
            core::array::from_fn(|pair| &memory.lines::<1>(LINES + (2 * pair + side) * APART)[0])
        };
        Self {
            mine: lines(side),
            theirs: lines(1 - side),
            words: size.div_ceil(8).min(CONTROL),
            payload: [0; CONTROL],
            sent: 0,
            received: 0,
        }
    }
}

/// Which pair carries message number `number`.
#[inline]
fn turn(number: u64) -> usize {
    (number >> TURN) as usize % PAIRS
}

impl Carrier for Line {
    #[inline]
    fn send(&mut self) -> anyhow::Result<()> {
        let line = self.mine[turn(self.sent)];
        for (word, value) in line.iter().zip(&self.payload[..self.words]) {
            word.store(*value, Ordering::Relaxed);
        }
        self.sent += 1;
        // Pairs with the load in `receive`: who sees the number sees the payload.
        line[CONTROL].store(self.sent, Ordering::Release);
        Ok(())
    }

    #[inline]
    fn receive(&mut self) -> anyhow::Result<()> {
        let line = self.theirs[turn(self.received)];
        self.received += 1;
        // Without a pause, which would be a part of the time.
        while line[CONTROL].load(Ordering::Acquire) != self.received {}
        for (word, value) in line.iter().zip(&mut self.payload[..self.words]) {
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
