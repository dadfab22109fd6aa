//! The lane suite over heap memory.
#![cfg(not(loom))]

use mizzen_lane::{Ring, Shape};

mod suite;

/// A fresh lane: sender's and receiver's view of the same memory.
fn lane(shape: Shape) -> (Ring, Ring) {
    let ring = Ring::heap(shape);
    (ring.clone(), ring)
}
