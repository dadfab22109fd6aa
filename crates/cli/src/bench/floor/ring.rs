//! The floor of many short messages: a ring of 64-byte slots, each with its own control word. Only the receiver's news that
//! slots are free is batched.
//!
//! Whole lines are written and read, however short the message is.
//!
//! This floor has two speeds. On a virtual machine of two cores, runs of the same code reached 16 to 65 million messages per
//! second. Pauses in the waiting loop (none, 1, 8, 32, 128) and shorter payloads were tried and did not settle it; the cause
//! is not known. Most such results are marked as noisy, but not all: look at the range beside the ratio.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::bench::carrier::Carrier;
use crate::bench::layout::{RING_SLOTS as SLOTS, SLOTS as AT, SLOTS_EACH};
use crate::bench::memory::Memory;

/// What the table calls it.
pub(crate) const NAME: &str = "ring of 1024 cache lines";

const HEADER: usize = 4096;
const CONTROL: usize = 7;
/// How often the receiver says how far it is.
const SAY_EVERY: u64 = SLOTS as u64 / 4;

pub(crate) struct Ring {
    mine: &'static [[AtomicU64; 8]; SLOTS],
    theirs: &'static [[AtomicU64; 8]; SLOTS],
    /// How far the other side has read, and how far this one has.
    read_by_them: &'static AtomicU64,
    read_by_me: &'static AtomicU64,
    payload: [u64; CONTROL],
    sent: u64,
    received: u64,
    /// How many may be sent, as far as the receiver was asked.
    room_until: u64,
}

impl Ring {
    pub(crate) fn new(memory: Memory, side: usize) -> Self {
        let ring = |side: usize| AT + side * SLOTS_EACH;
        Self {
            mine: memory.lines(ring(side) + HEADER),
            theirs: memory.lines(ring(1 - side) + HEADER),
            read_by_them: memory.word(ring(side)),
            read_by_me: memory.word(ring(1 - side)),
            payload: [0; CONTROL],
            sent: 0,
            received: 0,
            room_until: SLOTS as u64,
        }
    }
}

impl Carrier for Ring {
    #[inline]
    fn send(&mut self) -> anyhow::Result<()> {
        while self.sent == self.room_until {
            // Pairs with the store in `receive`: the slots were read.
            self.room_until = self.read_by_them.load(Ordering::Acquire) + SLOTS as u64;
        }
        let slot = &self.mine[self.sent as usize % SLOTS];
        for (word, value) in slot.iter().zip(&self.payload) {
            word.store(*value, Ordering::Relaxed);
        }
        self.sent += 1;
        // Pairs with the load in `receive`: who sees the number sees the payload.
        slot[CONTROL].store(self.sent, Ordering::Release);
        Ok(())
    }

    #[inline]
    fn receive(&mut self) -> anyhow::Result<()> {
        let slot = &self.theirs[self.received as usize % SLOTS];
        self.received += 1;
        while slot[CONTROL].load(Ordering::Acquire) != self.received {}
        for (word, value) in slot.iter().zip(&mut self.payload) {
            *value = word.load(Ordering::Relaxed);
        }
        if self.received % SAY_EVERY == 0 {
            self.read_by_me.store(self.received, Ordering::Release);
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
