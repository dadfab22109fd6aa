//! A counting semaphore for threads of one process, as in DECK.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// A counting semaphore for threads of one process.
///
/// ```
/// use mizzen::Semaphore;
/// let free = Semaphore::new(2);
/// free.acquire();
/// assert!(free.try_acquire());
/// assert!(!free.try_acquire());
/// free.release();
/// free.acquire();
/// ```
#[derive(Debug)]
pub struct Semaphore {
    count: Mutex<usize>,
    raised: Condvar,
}

impl Semaphore {
    /// A semaphore that lets `count` threads pass.
    #[must_use]
    pub const fn new(count: usize) -> Self {
        Self {
            count: Mutex::new(count),
            raised: Condvar::new(),
        }
    }

    /// Waits until the count is above zero and takes one (P).
    pub fn acquire(&self) {
        let mut count = self.lock();
        while *count == 0 {
            count = self
                .raised
                .wait(count)
                .unwrap_or_else(PoisonError::into_inner);
        }
        *count -= 1;
    }

    /// Takes one if the count is above zero.
    #[must_use]
    pub fn try_acquire(&self) -> bool {
        let mut count = self.lock();
        let free = *count > 0;
        *count -= usize::from(free);
        free
    }

    /// Adds one and lets a waiting thread pass (V).
    pub fn release(&self) {
        *self.lock() += 1;
        self.raised.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, usize> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
