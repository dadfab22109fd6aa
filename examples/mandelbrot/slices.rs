//! The slices into which the picture is divided.

use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;

/// Rows of a slice: enough that a message is nothing against the work, few enough that all workers end together.
const SLICE: u32 = 2;

/// Some rows of the picture.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Slice {
    pub(crate) first: u32,
    pub(crate) rows: u32,
}

/// The slices of a picture of so many rows, from the top.
pub(crate) fn of(height: u32) -> Vec<Slice> {
    let slice = |first: u32| Slice {
        first,
        rows: SLICE.min(height - first),
    };
    (0..height).step_by(SLICE as usize).map(slice).collect()
}

/// The picture of the pixels of all its slices.
pub(crate) fn together(slices: &[ByteBuf]) -> Vec<u8> {
    let parts: Vec<&[u8]> = slices.iter().map(|slice| slice.as_slice()).collect();
    parts.concat()
}
