//! How a body ended.

use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

/// How a body ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Its bytes are where they should be, or with the network.
    Done = 1,
    /// Nobody wants it.
    Declined = 2,
    /// The link ended before it did.
    Lost = 3,
    /// Its poster took it back.
    Retracted = 4,
}

/// Whether a body has ended, and how.
#[derive(Debug, Default)]
pub(super) struct End {
    outcome: AtomicU8,
    /// How many bytes went, if it goes in parts.
    moved: AtomicUsize,
}

impl End {
    pub(super) fn set(&self, outcome: Outcome) {
        // Release pairs with the acquire in `get`: the driver's accesses are over.
        self.outcome.store(outcome as u8, Ordering::Release);
    }

    /// Some more bytes went.
    pub(super) fn moved(&self, bytes: usize) {
        self.moved.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn bytes_moved(&self) -> usize {
        self.moved.load(Ordering::Relaxed)
    }

    pub(super) fn get(&self) -> Option<Outcome> {
        match self.outcome.load(Ordering::Acquire) {
            0 => None,
            1 => Some(Outcome::Done),
            2 => Some(Outcome::Declined),
            3 => Some(Outcome::Lost),
            _ => Some(Outcome::Retracted),
        }
    }
}
