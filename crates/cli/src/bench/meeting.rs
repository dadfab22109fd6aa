//! How participants keep in step between measurements, through the shared memory.
//!
//! All of them run the same program of steps. Where a number must be decided, the first participant decides it.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::layout::{MEETING, TOLD};
use super::memory::Memory;

const ARRIVED: usize = MEETING;
const AGREED: usize = MEETING + 256;

/// Looks before a participant that waits gives way: others may need its core to arrive.
const SPINS: u32 = 2000;
/// How long one that leaves the cores to others does not look.
const NAP: Duration = Duration::from_micros(200);

pub(crate) struct Meeting {
    memory: Memory,
    number: usize,
    participants: usize,
    /// How often this participant has been at a meeting.
    meetings: u64,
}

impl Meeting {
    pub(crate) fn new(memory: Memory, number: usize, participants: usize) -> Self {
        Self {
            memory,
            number,
            participants,
            meetings: 0,
        }
    }

    /// Returns when all are here.
    pub(crate) fn meet(&mut self) {
        self.meetings += 1;
        let arrived = self.memory.word(ARRIVED);
        arrived.fetch_add(1, Ordering::AcqRel);
        let mut spins = 0;
        while arrived.load(Ordering::Acquire) < self.meetings * self.participants as u64 {
            spins += 1;
            if spins > SPINS {
                std::thread::yield_now();
            }
        }
    }

    /// As [`meet`](Self::meet), for one that has nothing to do meanwhile, and leaves the cores to the others.
    pub(crate) fn meet_asleep(&mut self) {
        self.meetings += 1;
        let arrived = self.memory.word(ARRIVED);
        arrived.fetch_add(1, Ordering::AcqRel);
        while arrived.load(Ordering::Acquire) < self.meetings * self.participants as u64 {
            std::thread::sleep(NAP);
        }
    }

    /// What the first participant says.
    pub(crate) fn agree(&mut self, value: u64) -> u64 {
        if self.number == 0 {
            self.memory.word(AGREED).store(value, Ordering::Relaxed);
        }
        self.meet();
        let agreed = self.memory.word(AGREED).load(Ordering::Relaxed);
        self.meet();
        agreed
    }

    /// What each participant says, in their order.
    pub(crate) fn gather(&mut self, value: f64) -> Vec<f64> {
        let told = |number: usize| self.memory.word(TOLD + 8 * number);
        told(self.number).store(value.to_bits(), Ordering::Relaxed);
        self.meet();
        let told = |number: usize| self.memory.word(TOLD + 8 * number);
        let all = (0..self.participants)
            .map(|number| f64::from_bits(told(number).load(Ordering::Relaxed)))
            .collect();
        self.meet();
        all
    }
}
