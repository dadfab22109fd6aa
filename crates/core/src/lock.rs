//! Locks that a panic does not take away.
//!
//! What our locks protect is whole between any two statements, so a thread that panicked with one has broken nothing: the
//! poison is ignored, and the panic stays the affair of its thread.

use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use crate::blocking::without_place;

/// Takes a lock.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes a lock unless another thread has it.
pub fn try_lock<T: ?Sized>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// Takes a lock for which others may wait for long, because they post with it. A worker gives its place away meanwhile.
pub fn lock_patiently<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    try_lock(mutex).unwrap_or_else(|| without_place(|| lock(mutex)))
}
