//! What a worker that opens a message and the mailbox's owner share.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::UnpackError;
use crate::incoming::Incoming;
use crate::lock::lock;
use crate::rank::ProcessId;

/// A message that a worker opened, or why it could not.
pub(crate) type Opened = Result<Incoming<'static>, UnpackError>;

/// A message that a worker opens.
pub(super) struct Held {
    pub(super) source: ProcessId,
    opened: Mutex<Option<Opened>>,
    /// Whether `opened` was written.
    is_done: AtomicBool,
}

impl Held {
    pub(super) fn new(source: ProcessId) -> Self {
        Self {
            source,
            opened: Mutex::default(),
            is_done: AtomicBool::new(false),
        }
    }

    /// The worker is done. The owner must be told.
    pub(super) fn finish(&self, opened: Opened) {
        *lock(&self.opened) = Some(opened);
        // Pairs with `is_done`.
        self.is_done.store(true, Ordering::Release);
    }

    pub(super) fn is_done(&self) -> bool {
        self.is_done.load(Ordering::Acquire)
    }

    pub(super) fn take(&self) -> Option<Opened> {
        lock(&self.opened).take()
    }
}
