//! Whether the sender of a long message waits a moment for its receiver to read it where it lies, before it writes anything.
//!
//! A receiver that pulls begins within a microsecond, and what is written into chunks meanwhile was for nothing, and takes lines from
//! the receiver: some 7 % of the time of 256 KiB. So after a message that was pulled the next one is held. If that was in vain, none is until one is pulled again.
//!
//! In a stream the receiver is always some messages behind: all of each is written before it comes, and it never learns what pulling
//! would take. So now and then, and ever more rarely, one message is held for as long as it may need to read those before.
//! The other side is `pulling.rs`. Why: docs/design/one-copy-by-the-kernel.md.

use std::sync::Mutex;

use super::pulling::{CLASSES, LONGEST, class};
use crate::lock::lock;
use crate::looks::quick_looks;

/// How long a message is held after one that was pulled, in units of half a microsecond: a receiver that waits needs one or two.
const HELD: u32 = 6;
/// How long one is held for trial: about what a receiver takes for the messages before it, as far as they wait in chunks that go round.
const TRIED: u32 = 56;
/// Messages between two trials, at first and at last.
const SOON: u32 = 64;
const RARELY: u32 = 4096;
/// So many pulled in a row are more than a comparison: it is how they go.
const SETTLED: u32 = 16;

/// The long messages to one peer.
#[derive(Debug, Default)]
pub(crate) struct Pausing {
    classes: Mutex<[Class; CLASSES]>,
}

/// The messages of one length.
#[derive(Clone, Copy, Debug)]
struct Class {
    /// How many were pulled in a row up to now. If any, the next is held.
    pulled: u32,
    /// So many until one is held for trial.
    left: u32,
    pause: u32,
}

impl Default for Class {
    fn default() -> Self {
        Self {
            pulled: 0,
            left: SOON,
            pause: SOON,
        }
    }
}

impl Class {
    /// For how long the next message is held.
    fn next(&mut self) -> u32 {
        if self.pulled > 0 {
            return HELD;
        }
        if self.left > 0 {
            self.left -= 1;
            return 0;
        }
        self.pause = (self.pause * 4).min(RARELY);
        self.left = self.pause;
        TRIED
    }

    fn note(&mut self, was_pulled: bool) {
        self.pulled = match was_pulled {
            true => self.pulled.saturating_add(1),
            false => 0,
        };
        if self.pulled == SETTLED {
            // When that ends, it may be because the messages before it are read late.
            (self.left, self.pause) = (SOON, SOON);
        }
    }
}

impl Pausing {
    /// How many looks to wait for the receiver of a message of `len` bytes before it is written.
    pub(crate) fn looks(&self, len: usize) -> u32 {
        if len > LONGEST {
            return 0;
        }
        match lock(&self.classes)[class(len)].next() {
            0 => 0,
            time => time * quick_looks(),
        }
    }

    /// The message went, this way.
    pub(crate) fn note(&self, len: usize, was_pulled: bool) {
        if len <= LONGEST {
            lock(&self.classes)[class(len)].note(was_pulled);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_one_that_was_pulled_the_next_is_held_until_that_is_in_vain() {
        let mut class = Class::default();
        assert_eq!(class.next(), 0);
        class.note(true);
        for _ in 0..3 * RARELY {
            assert_eq!(class.next(), HELD);
            class.note(true);
        }
        assert_eq!(class.next(), HELD);
        class.note(false);
        assert_eq!(class.next(), 0);
    }

    #[test]
    fn one_is_held_for_trial_ever_more_rarely() {
        let mut class = Class::default();
        let tried = |class: &mut Class, messages: u32| {
            let held = (0..messages).filter(|_| {
                let held = class.next();
                class.note(false);
                held == TRIED
            });
            held.count()
        };
        assert_eq!(tried(&mut class, SOON), 0);
        assert_eq!(tried(&mut class, 1), 1);
        assert_eq!(tried(&mut class, 4 * SOON + 1), 1);
        assert!(tried(&mut class, 100 * RARELY) <= 101);
        // A comparison of the receiver's does not make it begin anew.
        (0..SETTLED - 1).for_each(|_| class.note(true));
        class.note(false);
        assert!(tried(&mut class, RARELY) <= 1);
    }
}
