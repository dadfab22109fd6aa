//! Locks that survive a panic.
//!
//! What our locks protect is consistent between any two statements, so a thread that panicked while it held one has broken
//! nothing: the poison is ignored, and the panic concerns only its thread.

use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use crate::blocking::block_in_place;

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

/// Takes a lock that others may hold for long, because they post while they hold it. A worker gives its place away meanwhile.
pub fn lock_patiently<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    try_lock(mutex).unwrap_or_else(|| block_in_place(|| lock(mutex)))
}
