//! The floor of many threads: bare cache lines, one pair of them for each pair of threads, which wait as a mailbox waits.
//!
//! | word of a direction | writer | reader | ordering |
//! | --- | --- | --- | --- |
//! | `ball`: the number of the round | sender | receiver | release / acquire |
//! | `asleep`: 1 while the receiver sleeps or is about to | receiver | sender | fences: one of the two sees the other's store |
//! | `bell`: changed by each wake-up, to sleep on | sender | receiver | ordered by the kernel |

use std::sync::atomic::{Ordering, fence};

use mizzen::wait::{Contention, Patience, Step, spin};
use mizzen_shm::futex;

use crate::bench::layout::{TURNS, TURNS_EACH};
use crate::bench::memory::Memory;

/// What the table calls it.
pub(crate) const NAME: &str = "bare cache lines, waiting as we do";

const BALL: usize = 0;
const ASLEEP: usize = 128;
const BELL: usize = 192;
const DIRECTION: usize = TURNS_EACH / 2;

/// One end of a pair.
pub(crate) struct Turns {
    memory: Memory,
    mine: usize,
    theirs: usize,
    contention: Contention,
}

impl Turns {
    pub(crate) fn new(memory: Memory, side: usize, pair: usize) -> Self {
        let at = TURNS + pair * TURNS_EACH;
        Self {
            memory,
            mine: at + side * DIRECTION,
            theirs: at + (1 - side) * DIRECTION,
            contention: Contention::default(),
        }
    }

    pub(crate) fn send(&self, ball: u64) {
        // Pairs with the loads in `receive`.
        let word = self.memory.word(self.mine + BALL);
        word.store(ball, Ordering::Release);
        // Pairs with the fence in `receive`: if its look misses the ball, this load sees that it sleeps.
        fence(Ordering::SeqCst);
        if self.memory.half(self.mine + ASLEEP).load(Ordering::Relaxed) != 0 {
            let bell = self.memory.half(self.mine + BELL);
            bell.fetch_add(1, Ordering::Release);
            futex::wake(bell, 1);
        }
    }

    /// The next ball that is not `last`.
    pub(crate) fn receive(&self, last: u64) -> u64 {
        let word = self.memory.word(self.theirs + BALL);
        let mut patience = Patience::until(None, &self.contention);
        loop {
            let ball = word.load(Ordering::Acquire);
            if ball != last {
                return ball;
            }
            let ready = || word.load(Ordering::Acquire) != last;
            spin(patience.quick_looks(), ready);
            if let Step::Sleep(nap) = patience.step() {
                let asleep = self.memory.half(self.theirs + ASLEEP);
                let bell = self.memory.half(self.theirs + BELL);
                let before = bell.load(Ordering::Acquire);
                asleep.store(1, Ordering::Relaxed);
                fence(Ordering::SeqCst);
                if !ready() {
                    futex::wait(bell, before, Some(nap));
                }
                asleep.store(0, Ordering::Relaxed);
            }
        }
    }
}
