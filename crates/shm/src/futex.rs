//! Sleeping on a word of shared memory.
//!
//! These are the shared futexes, found by file and offset: they work between processes, and between two mappings of one
//! segment at different addresses. The private ones of `std` do not. Both calls only read the word, so both
//! work through a [`View`](crate::View) that may not be written.

use std::sync::atomic::AtomicU32;
use std::time::Duration;

use rustix::io::Errno;
use rustix::thread::futex::{self, Flags, Timespec};

/// Why [`wait`] returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Someone woke us, or a signal or the kernel did: look at the word again.
    Woken,
    /// The word was not as expected, so there was no sleep.
    Changed,
    /// The time has passed.
    TimedOut,
}

/// Sleeps until woken, if `word` is `expected`; for at most `timeout`, if there is one.
///
/// The kernel compares and falls asleep in one step, so a [`wake`] after a change of the word is not missed.
pub fn wait(word: &AtomicU32, expected: u32, timeout: Option<Duration>) -> Wait {
    // More seconds than the kernel can count are for ever.
    let timeout = timeout.and_then(|t| Timespec::try_from(t).ok());
    match futex::wait(word, Flags::empty(), expected, timeout.as_ref()) {
        Ok(()) | Err(Errno::INTR) => Wait::Woken,
        Err(Errno::AGAIN) => Wait::Changed,
        Err(Errno::TIMEDOUT) => Wait::TimedOut,
        Err(_) => {
            // Only a sandbox without futexes gets here: the word is aligned and mapped, as it is a reference. The
            // caller's loop stays right, and is a little less of a spin.
            std::thread::yield_now();
            Wait::Woken
        }
    }
}

/// Wakes up to `count` sleepers on `word`, and says how many there were.
pub fn wake(word: &AtomicU32, count: u32) -> usize {
    // The kernel's count is signed.
    let count = count.min(i32::MAX.unsigned_abs());
    futex::wake(word, Flags::empty(), count).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    const LONG: Option<Duration> = Some(Duration::from_secs(20));

    #[test]
    fn a_changed_word_does_not_sleep() {
        assert_eq!(wait(&AtomicU32::new(1), 0, LONG), Wait::Changed);
    }

    #[test]
    fn an_unchanged_word_times_out() {
        let word = AtomicU32::new(0);
        for timeout in [Duration::ZERO, Duration::from_millis(2)] {
            assert_eq!(wait(&word, 0, Some(timeout)), Wait::TimedOut);
        }
    }

    #[test]
    fn an_endless_timeout_sleeps_until_woken() {
        let word = AtomicU32::new(0);
        std::thread::scope(|s| {
            let sleeper = s.spawn(|| {
                while word.load(Ordering::Acquire) == 0 {
                    assert_ne!(wait(&word, 0, Some(Duration::MAX)), Wait::TimedOut);
                }
            });
            word.store(1, Ordering::Release);
            wake(&word, u32::MAX);
            sleeper.join().unwrap();
        });
    }

    #[test]
    fn nobody_is_woken_where_nobody_sleeps() {
        assert_eq!(wake(&AtomicU32::new(0), 1), 0);
    }
}
