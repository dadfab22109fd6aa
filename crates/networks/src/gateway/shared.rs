//! What the thread of a gateway and others see.

use std::sync::atomic::{AtomicBool, AtomicU64};

/// Whether to stop, and what was counted.
#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) stop: AtomicBool,
    /// Fragments that went on.
    pub(super) sent: AtomicU64,
    /// The most bytes that were held at a time.
    pub(super) held: AtomicU64,
}
