//! How much is allocated: the system's allocator, counted.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicIsize, Ordering};

static ALLOCATED: AtomicIsize = AtomicIsize::new(0);

/// Bytes that are allocated at this moment, where [`Counting`] is the allocator.
#[must_use]
pub fn bytes() -> isize {
    ALLOCATED.load(Ordering::Relaxed)
}

/// The system's allocator. Programs make it theirs by `#[global_allocator]`.
#[derive(Debug)]
pub struct Counting;

// SAFETY: passes everything on to the system's allocator, whose promises it keeps.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.fetch_add(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: as the caller promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        ALLOCATED.fetch_sub(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: as the caller promised.
        unsafe { System.dealloc(memory, layout) }
    }
}
