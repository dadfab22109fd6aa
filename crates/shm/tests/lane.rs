//! The lane suite over shared memory: each side sees the other's segment through a read-only mapping of its own.
#![allow(unsafe_code)]

use std::sync::Arc;

use mizzen_lane::{Region, Ring, Shape};
use mizzen_shm::{Access, Fault, Segment, View, region_of_segment, region_of_view};

#[path = "../../lane/tests/suite/mod.rs"]
mod suite;

/// A fresh lane: sender's and receiver's view of the same memory, and that memory.
fn lane_and_memory(shape: Shape) -> (Ring, Ring, Region, Region) {
    let (senders, seen_by_receiver) = segment(shape.sender_bytes());
    let (receivers, seen_by_sender) = segment(Shape::RECEIVER_BYTES);
    let fits = "the segments have the size of the shape";
    // SAFETY: the suite makes one sending end of the first and one receiving end of the second, and writes into their
    // memory only where one thread has all of it.
    let sender = unsafe { Ring::new(senders.clone(), seen_by_sender, shape) }.expect(fits);
    // SAFETY: as above.
    let receiver = unsafe { Ring::new(seen_by_receiver, receivers.clone(), shape) }.expect(fits);
    (sender, receiver, senders, receivers)
}

/// A segment as its maker sees it, and as a peer does.
fn segment(bytes: usize) -> (Region, Region) {
    let segment = Arc::new(Segment::create("lane", bytes, Fault::Now).expect("there is memory"));
    let fd = segment
        .fd()
        .try_clone_to_owned()
        .expect("there is a descriptor");
    let view =
        View::attach(fd, bytes, Access::ReadOnly, Fault::Now).expect("a segment of ours attaches");
    (region_of_segment(&segment), region_of_view(view))
}
