//! What is to be seen: a region of the map at a scale, and which tiles have which part of it.
//!
//! A pixel of the picture is the mean of the pixels of the map under it. It belongs to the tile that has its middle, and is
//! computed from that tile alone: no part of a picture needs two tiles, and a picture does not depend on who holds them.

use core::fmt;

use mizzen_examples::Result;

use super::place::{Map, Place, TILE};

/// A region of the map at a scale. Two numbers are those of columns and of rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct View {
    pub(crate) start: [u32; 2],
    pub(crate) length: [u32; 2],
    /// Pixels of the picture for each of the map.
    pub(crate) scale: f64,
}

/// Pixels of the picture that one tile has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Part {
    pub(crate) place: Place,
    /// The first column and row of the picture, and how many.
    pub(crate) first: [u32; 2],
    pub(crate) count: [u32; 2],
}

/// At the smallest, a tile has a few pixels; at the largest, its part of a picture some megabytes.
pub(crate) const MIN_SCALE: f64 = 0.01;
pub(crate) const MAX_SCALE: f64 = 4.0;
/// A picture is kept in memory as a whole: 3 bytes a pixel.
const MAX_PIXELS: u64 = 100_000_000;

impl View {
    /// Refuses what is not on the map, or no picture.
    pub(crate) fn check(&self, map: Map) -> Result<()> {
        let (start, length, size) = (self.start, self.length, map.size());
        let fits = |axis: usize| {
            let end = u64::from(start[axis]) + u64::from(length[axis]);
            length[axis] > 0 && end <= u64::from(size[axis])
        };
        if !fits(0) || !fits(1) {
            return Err(format!(
                "the region {},{},{},{} is not on the map, which has {} × {} pixels; a region is X,Y,WIDTH,HEIGHT",
                start[0], start[1], length[0], length[1], size[0], size[1]
            )
            .into());
        }
        let [width, height] = self.pixels();
        if width == 0 || height == 0 {
            return Err(format!(
                "at a scale of {} nothing is left of {} × {} pixels; give a larger one",
                self.scale, length[0], length[1]
            )
            .into());
        }
        if u64::from(width) * u64::from(height) > MAX_PIXELS {
            return Err(format!(
                "a picture of {width} × {height} pixels is too large; give a smaller --scale than {}",
                self.scale
            )
            .into());
        }
        Ok(())
    }

    /// Columns and rows of the picture.
    pub(crate) fn pixels(&self) -> [u32; 2] {
        self.length
            .map(|length| (f64::from(length) * self.scale).round() as u32)
    }

    /// The parts of the picture, from its top. Together they are all of it.
    pub(crate) fn parts(&self, map: Map) -> Vec<Part> {
        let columns = self.spans(0, map);
        let part = |across: Span, down: Span| Part {
            place: Place([across.tile, down.tile]),
            first: [across.first, down.first],
            count: [across.count, down.count],
        };
        let rows = self.spans(1, map).into_iter();
        rows.flat_map(|down| columns.iter().map(move |across| part(*across, down)))
            .collect()
    }

    /// Which pixels of the picture belong to which tiles, along an axis.
    fn spans(&self, axis: usize, map: Map) -> Vec<Span> {
        let mut spans: Vec<Span> = Vec::new();
        for pixel in 0..self.pixels()[axis] {
            let middle = f64::from(self.start[axis]) + (f64::from(pixel) + 0.5) / self.scale;
            // Rounded up, the last pixel may have its middle on the edge of the map.
            let tile = ((middle / f64::from(TILE[axis])) as u32).min(map.tiles[axis] - 1);
            match spans.last_mut() {
                Some(span) if span.tile == tile => span.count += 1,
                _ => spans.push(Span {
                    tile,
                    first: pixel,
                    count: 1,
                }),
            }
        }
        spans
    }
}

/// Pixels of the picture that a tile has, along an axis.
#[derive(Clone, Copy)]
struct Span {
    tile: u32,
    first: u32,
    count: u32,
}

impl fmt::Display for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ([x, y], [width, height], [across, down]) = (self.start, self.length, self.pixels());
        write!(
            f,
            "{width} × {height} at {x},{y} as {across} × {down} pixels"
        )
    }
}
