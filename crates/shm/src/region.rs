//! Segments and views as regions that lanes live in.
#![allow(unsafe_code)]

use std::sync::Arc;

use mizzen_lane::Region;
use rustix::mm::{Advice, madvise};

use crate::{Access, Segment, View};

/// The whole segment as a region, which keeps the segment alive.
#[must_use]
pub fn region_of_segment(segment: &Arc<Segment>) -> Region {
    let keep = Arc::clone(segment);
    // SAFETY: the mapping is aligned to a page, readable and writable, and lives as long as the segment, which the
    // region keeps. A segment gives out no references to its memory.
    unsafe { Region::from_raw(segment.as_ptr(), segment.len(), keep) }
}

/// The whole view as a region, which keeps the view alive. Storing to the region of a read-only view panics.
#[must_use]
pub fn region_of_view(view: View) -> Region {
    let (base, len) = (view.as_ptr(), view.len());
    match view.access() {
        // SAFETY: the mapping is aligned to a page, readable, and lives as long as the view, which the region keeps; its
        // address does not change when the view is moved.
        Access::ReadOnly => unsafe { Region::from_raw_read_only(base, len, Arc::new(view)) },
        // SAFETY: the same, and it is writable.
        Access::ReadWrite => unsafe { Region::from_raw(base, len, Arc::new(view)) },
    }
}

/// Has the memory of a segment, all of which `region` is, made and entered in the page table now: for one that was sparse and
/// has proved to be used, so that it meets no page fault from now on. `false` if the kernel did not: those before 5.14 cannot.
/// Then all goes on as before.
pub fn fault_in(region: &Region) -> bool {
    let (base, len) = (region.base().as_ptr(), region.len());
    if !region.is_writable() || base.addr() % PAGE != 0 {
        return false;
    }
    // SAFETY: the range is mapped as long as `region` lives; the advice changes no byte of it.
    unsafe { madvise(base.cast(), len, Advice::LinuxPopulateWrite) }.is_ok()
}

/// What the kernel's advice must begin at.
const PAGE: usize = 4096;
