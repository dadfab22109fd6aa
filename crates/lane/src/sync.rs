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

/// What a thread does that looks for the `round`th time in vain.
#[cfg(not(loom))]
pub(crate) fn pause(round: u32) {
    /// Most waits are over before: what is waited for is held for moments.
    const SPINS: u32 = 100;
    const YIELDS: u32 = 20;
    const NAP: core::time::Duration = core::time::Duration::from_micros(50);
    match round {
        ..SPINS => spin_loop(),
        SPINS.. if round < SPINS + YIELDS => std::thread::yield_now(),
        _ => std::thread::sleep(NAP),
    }
}

#[cfg(loom)]
pub(crate) fn pause(_: u32) {
    loom::thread::yield_now();
}

/// Something that only one thread at a time may touch, in an order that all threads see: models fail otherwise.
#[cfg(loom)]
#[derive(Debug, Default)]
pub(crate) struct Witness(loom::cell::UnsafeCell<()>);

#[cfg(loom)]
impl Witness {
    pub(crate) fn touch(&self) {
        self.0.with_mut(|_| ());
    }
}

/// Nothing, outside of models.
#[cfg(not(loom))]
#[derive(Debug, Default)]
pub(crate) struct Witness();

#[cfg(not(loom))]
impl Witness {
    #[inline(always)]
    pub(crate) fn touch(&self) {}
}

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
