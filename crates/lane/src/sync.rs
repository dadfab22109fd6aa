//! Atomics, fences and locks: those of `core` and `std`, or loom's when models run.

#[cfg(loom)]
pub(crate) use loom::hint::spin_loop;
#[cfg(loom)]
pub use loom::sync::atomic::{AtomicU32, AtomicU64};
#[cfg(loom)]
pub(crate) use loom::sync::{
    Arc, Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicUsize, Ordering, fence},
};

#[cfg(not(loom))]
pub(crate) use core::hint::spin_loop;
#[cfg(not(loom))]
pub(crate) use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
#[cfg(not(loom))]
pub use core::sync::atomic::{AtomicU32, AtomicU64};
pub(crate) use std::sync::TryLockError;
#[cfg(not(loom))]
pub(crate) use std::sync::{Arc, Mutex, MutexGuard};

/// By which a thread sleeps until another wakes it; waking comes first or not.
#[cfg(not(loom))]
#[derive(Debug)]
pub(crate) struct Parker(std::thread::Thread);

#[cfg(not(loom))]
impl Parker {
    /// For the calling thread.
    pub(crate) fn new() -> Self {
        Self(std::thread::current())
    }

    pub(crate) fn park_timeout(&self, most: core::time::Duration) {
        std::thread::park_timeout(most);
    }

    pub(crate) fn unpark(&self) {
        self.0.unpark();
    }
}

/// The same in models, whose own `unpark` is forgotten by a thread that waits for a lock. They have no clock: who is not
/// woken waits for ever, and the model fails.
#[cfg(loom)]
#[derive(Debug)]
pub(crate) struct Parker(Mutex<bool>, loom::sync::Condvar);

#[cfg(loom)]
impl Parker {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(false), loom::sync::Condvar::new())
    }

    pub(crate) fn park_timeout(&self, _: core::time::Duration) {
        let mut woken = self.0.lock().unwrap();
        while !core::mem::take(&mut *woken) {
            woken = self.1.wait(woken).unwrap();
        }
    }

    pub(crate) fn unpark(&self) {
        *self.0.lock().unwrap() = true;
        self.1.notify_one();
    }
}
