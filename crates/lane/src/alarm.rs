//! How long a thread may sleep, when others may find that something is due earlier.
//!
//! | who finds it | the thread |
//! | --- | --- |
//! | 1. say when it is due | 1. say how long it sleeps |
//! | 2. fence | 2. fence |
//! | 3. if it sleeps beyond that, wake it | 3. look again when it is due: if that has changed, begin anew |

use crate::sync::{AtomicU64, Ordering, fence};

/// When something is due, in any unit that grows.
///
/// | field | writer | reader |
/// | --- | --- | --- |
/// | `due` | one at a time, who knows | all |
/// | `sleeps_until` | the thread | who knows |
#[derive(Debug)]
pub struct Alarm {
    due: AtomicU64,
    sleeps_until: AtomicU64,
}

impl Default for Alarm {
    fn default() -> Self {
        Self {
            due: AtomicU64::new(Self::NEVER),
            sleeps_until: AtomicU64::new(0),
        }
    }
}

impl Alarm {
    /// Nothing is due.
    pub const NEVER: u64 = u64::MAX;

    /// The next thing is due then. `true`: the thread would sleep beyond it, and must be woken.
    #[must_use]
    pub fn set(&self, due: u64) -> bool {
        self.due.store(due, Ordering::Release);
        // Pairs with the fence in `sleep`: the thread sees when it is due, or we see how long it sleeps.
        fence(Ordering::SeqCst);
        due < self.sleeps_until.load(Ordering::Relaxed)
    }

    /// When the next thing is due.
    #[inline]
    pub fn due(&self) -> u64 {
        self.due.load(Ordering::Relaxed)
    }

    /// The thread: until when it may sleep.
    pub fn sleep(&self) -> u64 {
        loop {
            let due = self.due.load(Ordering::Acquire);
            self.sleeps_until.store(due, Ordering::Relaxed);
            fence(Ordering::SeqCst);
            if self.due.load(Ordering::Relaxed) == due {
                return due;
            }
        }
    }

    /// The thread: it is awake.
    pub fn wake(&self) {
        self.sleeps_until.store(0, Ordering::Relaxed);
    }
}
