//! Atomics, fences and locks: those of `core` and `std`, or loom's when models run.

#[cfg(loom)]
pub use loom::sync::atomic::{AtomicU32, AtomicU64};
#[cfg(loom)]
pub(crate) use loom::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering, fence},
};

#[cfg(not(loom))]
pub use core::sync::atomic::{AtomicU32, AtomicU64};
#[cfg(not(loom))]
pub(crate) use core::sync::atomic::{AtomicUsize, Ordering, fence};
#[cfg(not(loom))]
pub(crate) use std::sync::{Arc, Mutex};
