//! A part of a tile, made smaller or larger.

use super::ask::Ask;
use super::place::TILE;

/// Which pixels of the tile a pixel of the picture is the mean of, along an axis: the first, and how much each counts.
type Taps = (usize, Vec<f32>);

/// The part of the picture that was asked for, three bytes a pixel; `None` if it is not of this tile.
pub(crate) fn part(tile: &[u8], ask: &Ask) -> Option<Vec<u8>> {
    let (across, down) = (taps(ask, 0)?, taps(ask, 1)?);
    let line_bytes = 3 * TILE[0] as usize;
    let mut pixels = Vec::with_capacity(3 * across.len() * down.len());
    let mut line = vec![0.0f32; line_bytes];
    for (top, weights) in &down {
        line.fill(0.0);
        for (row, weight) in tile[top * line_bytes..]
            .chunks_exact(line_bytes)
            .zip(weights)
        {
            for (sum, value) in line.iter_mut().zip(row) {
                *sum += weight * f32::from(*value);
            }
        }
        for (left, weights) in &across {
            let mut colour = [0.0f32; 3];
            for (pixel, weight) in line[3 * left..].chunks_exact(3).zip(weights) {
                for (sum, value) in colour.iter_mut().zip(pixel) {
                    *sum += weight * value;
                }
            }
            pixels.extend(colour.map(|part| (part + 0.5) as u8));
        }
    }
    Some(pixels)
}

fn taps(ask: &Ask, axis: usize) -> Option<Vec<Taps>> {
    let origin = f64::from(ask.start[axis]) - f64::from(ask.tile[axis] * TILE[axis]);
    let edge = |pixel: u32| origin + f64::from(pixel) / ask.scale;
    let size = f64::from(TILE[axis]);
    let last = ask.first[axis].checked_add(ask.count[axis])?;
    (ask.first[axis]..last)
        .map(|pixel| {
            let (from, to) = (edge(pixel).max(0.0), edge(pixel + 1).min(size));
            (from < to).then(|| between(from, to))
        })
        .collect()
}

/// The mean of what lies between two places.
fn between(from: f64, to: f64) -> Taps {
    let (first, last) = (from.floor(), to.ceil());
    let pixels = (first as usize..last as usize).map(|pixel| pixel as f64);
    let covered = pixels.map(|pixel| (to.min(pixel + 1.0) - from.max(pixel)) / (to - from));
    (first as usize, covered.map(|part| part as f32).collect())
}
