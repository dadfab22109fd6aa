//! Locks that a panic elsewhere does not close.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Nothing that panics is done while one of ours is locked.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
