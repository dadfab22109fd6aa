//! The lane suite over heap memory.
#![cfg(not(loom))]
#![allow(unsafe_code)]

use mizzen_lane::{Region, Ring, Shape};

mod suite;

/// A fresh lane: sender's and receiver's view of the same memory, and that memory.
fn lane_and_memory(shape: Shape) -> (Ring, Ring, Region, Region) {
    let sender = Region::heap(shape.sender_bytes());
    let receiver = Region::heap(Shape::RECEIVER_BYTES);
    // SAFETY: the suite makes one sending end of the first and one receiving end of the second, and writes into their
    // memory only where one thread has all of it.
    let ring = || unsafe { Ring::new(sender.clone(), receiver.clone(), shape) };
    let fits = "the memory has the size of the shape";
    let (to, from) = (ring().expect(fits), ring().expect(fits));
    (to, from, sender, receiver)
}
