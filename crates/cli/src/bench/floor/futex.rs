//! The floor of waking a receiver that sleeps: a word changes, and the kernel is told.

use std::sync::atomic::Ordering;

use mizzen_shm::futex;

use crate::bench::carrier::Carrier;
use crate::bench::layout::FUTEX;
use crate::bench::memory::Memory;

/// What the table calls it.
pub(crate) const NAME: &str = "futex wake";

const APART: usize = 256;
/// Where the mark is, beside the word to sleep on.
const MARK: usize = 8;

pub(crate) struct Futex {
    memory: Memory,
    mine: usize,
    theirs: usize,
    sent: u32,
    received: u32,
    mark: u64,
}

impl Futex {
    pub(crate) fn new(memory: Memory, side: usize) -> Self {
        Self {
            memory,
            mine: FUTEX + side * APART,
            theirs: FUTEX + (1 - side) * APART,
            sent: 0,
            received: 0,
            mark: 0,
        }
    }
}

impl Carrier for Futex {
    fn send(&mut self) -> anyhow::Result<()> {
        let mark = self.memory.word(self.mine + MARK);
        mark.store(self.mark, Ordering::Relaxed);
        self.sent = self.sent.wrapping_add(1);
        let word = self.memory.half(self.mine);
        // Pairs with the load in `receive`: who sees the number sees the mark.
        word.store(self.sent, Ordering::Release);
        futex::wake(word, 1);
        Ok(())
    }

    fn receive(&mut self) -> anyhow::Result<()> {
        let word = self.memory.half(self.theirs);
        while word.load(Ordering::Acquire) == self.received {
            futex::wait(word, self.received, None);
        }
        self.received = self.received.wrapping_add(1);
        let mark = self.memory.word(self.theirs + MARK);
        self.mark = mark.load(Ordering::Relaxed);
        Ok(())
    }

    fn mark(&mut self, mark: u64) {
        self.mark = mark;
    }

    fn marked(&self) -> u64 {
        self.mark
    }
}
