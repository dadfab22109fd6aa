//! The plate in colours, with isotherms.

use std::path::Path;

use mizzen_examples::Result;
use mizzen_examples::picture::write_png;

use super::plate::{COLDEST, HOTTEST};

/// From cold to hot in equal steps: the colour map "inferno" of matplotlib, in which equal differences look equal.
const COLOURS: [[u8; 3]; 10] = [
    [0x00, 0x00, 0x04],
    [0x1b, 0x0c, 0x41],
    [0x4a, 0x0c, 0x6b],
    [0x78, 0x1c, 0x6d],
    [0xa5, 0x2c, 0x60],
    [0xcf, 0x44, 0x46],
    [0xed, 0x69, 0x25],
    [0xfb, 0x9b, 0x06],
    [0xf7, 0xd1, 0x3d],
    [0xfc, 0xff, 0xa4],
];
/// Degrees between two isotherms.
const ISOTHERMS: f64 = 5.0;
/// How much of a line's pixel is the line's.
const LINE: f64 = 0.55;

/// Writes a picture of the rows, a pixel each cell.
pub(crate) fn write(file: &Path, rows: &[Vec<f64>]) -> Result<()> {
    let size = rows.len();
    let mut pixels = Vec::with_capacity(3 * size * size);
    for row in 0..size {
        for column in 1..=size {
            pixels.extend(pixel(rows, row, column));
        }
    }
    write_png(file, size as u32, size as u32, &pixels)
}

fn pixel(rows: &[Vec<f64>], row: usize, column: usize) -> [u8; 3] {
    let here = rows[row][column];
    let (above, below) = (row.saturating_sub(1), (row + 1).min(rows.len() - 1));
    let down = (rows[below][column] - rows[above][column]) / (below - above).max(1) as f64;
    let right = (rows[row][column + 1] - rows[row][column - 1]) / 2.0;
    let slope = down.hypot(right);
    let off = (here / ISOTHERMS - (here / ISOTHERMS).round()).abs() * ISOTHERMS;
    // How far the next isotherm is, in pixels; where it is flat it is everywhere and nowhere.
    let distance = if slope > 1e-9 {
        off / slope
    } else {
        f64::INFINITY
    };
    let line = LINE * (1.0 - distance).clamp(0.0, 1.0);
    // Light on dark and dark on light, changing between two isotherms.
    let ink = if here < (COLDEST + HOTTEST + ISOTHERMS) / 2.0 {
        255.0
    } else {
        0.0
    };
    colour(here).map(|part| (part + (ink - part) * line).round() as u8)
}

fn colour(temperature: f64) -> [f64; 3] {
    let steps = (COLOURS.len() - 1) as f64;
    let place = ((temperature - COLDEST) / (HOTTEST - COLDEST)).clamp(0.0, 1.0) * steps;
    let below = (place as usize).min(COLOURS.len() - 2);
    let part = place - below as f64;
    core::array::from_fn(|i| {
        let (from, to) = (
            f64::from(COLOURS[below][i]),
            f64::from(COLOURS[below + 1][i]),
        );
        from + (to - from) * part
    })
}
