//! How a body ended.

use std::sync::atomic::{AtomicU8, Ordering};

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
pub(super) struct End(AtomicU8);

impl End {
    pub(super) fn set(&self, outcome: Outcome) {
        // Release pairs with the acquire in `get`: the driver's accesses are over.
        self.0.store(outcome as u8, Ordering::Release);
    }

    pub(super) fn get(&self) -> Option<Outcome> {
        match self.0.load(Ordering::Acquire) {
            0 => None,
            1 => Some(Outcome::Done),
            2 => Some(Outcome::Declined),
            3 => Some(Outcome::Lost),
            _ => Some(Outcome::Retracted),
        }
    }
}
