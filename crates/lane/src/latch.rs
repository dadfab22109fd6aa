//! A lock for what threads look at again and again, and hold for moments.
//!
//! Taking it is one atomic exchange, and giving it up is a store: a mutex exchanges there too, to find out whether somebody sleeps
//! until then. Here nobody does. Who must have it looks again, and those who only try it leave it to those who must.
//!
//! | field | writer | reader | ordering |
//! | --- | --- | --- | --- |
//! | `taken` | who takes it, by exchange; who has it | all | acquire / release: what it guards is as its last holder left it |
//! | `waiting` | who waits | who tries, who has it | relaxed: a hint |
//! | `value` | who has it | who has it | ordered by `taken` |
#![allow(unsafe_code)]

use core::cell::UnsafeCell;
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};

use crate::sync::{AtomicBool, AtomicUsize, Ordering, Witness, pause};

/// A lock that is held for moments, by threads that look at what it guards again and again.
///
/// ```
/// use mizzen_lane::Latch;
///
/// let latch = Latch::new(7);
/// let mut held = latch.try_lock().unwrap();
/// *held += 1;
/// assert!(latch.try_lock().is_none());
/// drop(held);
/// assert_eq!(*latch.lock(), 8);
/// ```
pub struct Latch<T> {
    taken: AtomicBool,
    waiting: AtomicUsize,
    witness: Witness,
    value: UnsafeCell<T>,
}

/// What a latch guards, for who has taken it. Dropping this gives it up.
pub struct Held<'a, T> {
    latch: &'a Latch<T>,
    /// It is shared between threads, or sent to another, as what it refers to may be.
    _value: PhantomData<&'a mut T>,
}

// SAFETY: the value goes to another thread with it.
unsafe impl<T: Send> Send for Latch<T> {}
// SAFETY: one thread at a time has the value, the one whose exchange of `taken` succeeded, until it stores there; and what one thread
// did before that store is seen by the next whose exchange does.
unsafe impl<T: Send> Sync for Latch<T> {}

impl<T> Latch<T> {
    /// A latch that nobody has.
    pub fn new(value: T) -> Self {
        Self {
            taken: AtomicBool::new(false),
            waiting: AtomicUsize::new(0),
            witness: Witness::default(),
            value: UnsafeCell::new(value),
        }
    }

    /// Takes it, unless somebody has it or waits for it.
    #[inline]
    pub fn try_lock(&self) -> Option<Held<'_, T>> {
        if self.waiting.load(Ordering::Relaxed) > 0 {
            return None;
        }
        self.take()
    }

    /// Takes it, waiting until nobody has it.
    #[inline]
    pub fn lock(&self) -> Held<'_, T> {
        self.take().unwrap_or_else(|| self.wait())
    }

    #[cold]
    fn wait(&self) -> Held<'_, T> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let mut round = 0;
        let held = loop {
            if let Some(held) = self.take() {
                break held;
            }
            pause(round);
            round += 1;
        };
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        held
    }

    #[inline]
    fn take(&self) -> Option<Held<'_, T>> {
        // Not in models, where a waiter might be shown the same old value for ever: it saves the exchange of one that would fail.
        if !cfg!(loom) && self.taken.load(Ordering::Relaxed) {
            return None;
        }
        // Acquire pairs with the release in `Held::drop`.
        self.taken
            .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed)
            .ok()?;
        self.witness.touch();
        Some(Held {
            latch: self,
            _value: PhantomData,
        })
    }
}

impl<T> Held<'_, T> {
    /// Whether another thread waits for it: who holds it while looking for something gives it up then.
    #[inline]
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        self.latch.waiting.load(Ordering::Relaxed) > 0
    }
}

impl<T> Deref for Held<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this thread has the latch until `self` is dropped, so nobody else refers to the value; borrows of `self` keep our own
        // references apart.
        unsafe { &*self.latch.value.get() }
    }
}

impl<T> DerefMut for Held<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`; `self` is borrowed for this alone.
        unsafe { &mut *self.latch.value.get() }
    }
}

impl<T> Drop for Held<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.latch.witness.touch();
        // Release pairs with the acquire in `Latch::take`.
        self.latch.taken.store(false, Ordering::Release);
    }
}

impl<T: fmt::Debug> fmt::Debug for Latch<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut latch = f.debug_tuple("Latch");
        match self.try_lock() {
            Some(held) => latch.field(&*held).finish(),
            None => latch.finish_non_exhaustive(),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::Latch;

    #[test]
    fn who_waits_comes_before_those_who_try_again_and_again() {
        let latch = Latch::new(0u32);
        let stop = AtomicBool::new(false);
        std::thread::scope(|threads| {
            let looker = threads.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    if let Some(held) = latch.try_lock() {
                        while !held.is_wanted() && !stop.load(Ordering::Relaxed) {
                            core::hint::spin_loop();
                        }
                    }
                }
            });
            for _ in 0..1000 {
                *latch.lock() += 1;
            }
            stop.store(true, Ordering::Relaxed);
            looker.join().unwrap();
        });
        assert_eq!(*latch.lock(), 1000);
    }

    #[test]
    fn a_panic_gives_it_up() {
        let latch = Latch::new(0u32);
        let panicked = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| {
            let mut held = latch.lock();
            *held = 1;
            panic!("on purpose");
        }));
        assert!(panicked.is_err());
        assert_eq!(*latch.try_lock().unwrap(), 1);
    }
}
