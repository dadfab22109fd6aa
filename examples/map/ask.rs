//! What a viewer asks the holder of a tile for.

use mizzen::zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::place::TILE;
use super::view::{MAX_SCALE, MIN_SCALE, Part, View};

/// A part of a picture that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[zerocopy(crate = "mizzen::zerocopy")]
#[repr(C)]
pub(crate) struct Ask {
    pub(crate) scale: f64,
    /// Where on the map the picture begins.
    pub(crate) start: [u32; 2],
    pub(crate) tile: [u32; 2],
    /// Columns and rows of the picture.
    pub(crate) first: [u32; 2],
    pub(crate) count: [u32; 2],
}

impl Ask {
    pub(crate) fn new(view: &View, part: &Part) -> Self {
        Self {
            scale: view.scale,
            start: view.start,
            tile: part.place.0,
            first: part.first,
            count: part.count,
        }
    }

    /// Whether the answer has a bounded size.
    pub(crate) fn is_sound(&self) -> bool {
        let most = |axis: usize| (f64::from(TILE[axis]) * self.scale).ceil() as u32 + 1;
        (MIN_SCALE..=MAX_SCALE).contains(&self.scale)
            && (0..2).all(|axis| (1..=most(axis)).contains(&self.count[axis]))
    }
}
