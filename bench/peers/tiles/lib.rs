//! The tiles of `examples/map` for a program in C: who holds which, how they are drawn, and what a part of one looks like.
//!
//! `bench/peers/c/map.c` sends the same parts over MPI. Drawing and compressing is not what is compared, and libraries for
//! JPEG round differently: so it takes this code for it, by the functions of `bench/peers/c/tiles.h`.
#![allow(unsafe_code)] // A border to C is what this is about.

// Each is used in part: what a service or options need of them is not needed here.
#[allow(dead_code)]
#[path = "../../../examples/map/ask.rs"]
mod ask;
#[path = "../../../examples/map/chart.rs"]
mod chart;
#[path = "../../../examples/map/jpeg.rs"]
mod jpeg;
#[path = "../../../examples/map/noise.rs"]
mod noise;
#[allow(dead_code)]
#[path = "../../../examples/map/place.rs"]
mod place;
#[path = "../../../examples/map/scale.rs"]
mod scale;
#[path = "../../../examples/map/terrain.rs"]
mod terrain;
#[allow(dead_code)]
#[path = "../../../examples/map/view.rs"]
mod view;

use ask::Ask;
use place::{Map, Place};
use view::View;

/// A region of the map at a scale: `struct view`.
#[repr(C)]
struct ViewOfC {
    scale: f64,
    start: [u32; 2],
    length: [u32; 2],
}

impl ViewOfC {
    fn view(&self) -> View {
        View {
            start: self.start,
            length: self.length,
            scale: self.scale,
        }
    }
}

/// Columns and rows of tiles of the map.
///
/// # Safety
///
/// `columns` and `rows` may be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn tiles_of_map(columns: *mut u32, rows: *mut u32) {
    let [across, down] = Map::WHOLE.tiles;
    // SAFETY: the caller says so.
    unsafe {
        columns.write(across);
        rows.write(down);
    }
}

/// Which of so many ranks, at least one, holds a tile.
#[unsafe(no_mangle)]
extern "C" fn tiles_owner(column: u32, row: u32, ranks: u32) -> u32 {
    Place([column, row]).owner(ranks).0
}

/// Columns and rows of pixels of a picture.
///
/// # Safety
///
/// `view` may be read, `pixels` is an array of two that may be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn tiles_pixels(view: *const ViewOfC, pixels: *mut [u32; 2]) {
    // SAFETY: the caller says so.
    unsafe { pixels.write((*view).view().pixels()) };
}

/// Writes the first `most` parts of a picture, and returns how many it has. A part is what its holder is asked for.
///
/// # Safety
///
/// `view` may be read, and `asks` is an array of `most` that may be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn tiles_parts(view: *const ViewOfC, asks: *mut Ask, most: usize) -> usize {
    // SAFETY: the caller says so.
    let view = unsafe { (*view).view() };
    let parts = view.parts(Map::WHOLE);
    for (index, part) in parts.iter().take(most).enumerate() {
        // SAFETY: the array has `most` places, and `index` is below that.
        unsafe { asks.add(index).write(Ask::new(&view, part)) };
    }
    parts.len()
}

/// Draws and compresses a tile. Its file is never given back. Null if it cannot be compressed.
///
/// # Safety
///
/// `bytes` may be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn tiles_draw(column: u32, row: u32, bytes: *mut usize) -> *const u8 {
    let Ok(file) = jpeg::encode(&chart::draw(Place([column, row]))) else {
        return core::ptr::null();
    };
    // SAFETY: the caller says so.
    unsafe { bytes.write(file.len()) };
    file.leak().as_ptr()
}

/// Decompresses a tile's file and writes the part that is asked for, three bytes a pixel; 0 if that makes no sense.
///
/// # Safety
///
/// `file` has `bytes` bytes, `ask` may be read, and `pixels` has place for the part.
#[unsafe(no_mangle)]
unsafe extern "C" fn tiles_part(
    file: *const u8,
    bytes: usize,
    ask: *const Ask,
    pixels: *mut u8,
) -> i32 {
    // SAFETY: the caller says so.
    let (file, ask) = unsafe { (core::slice::from_raw_parts(file, bytes), &*ask) };
    let part = match jpeg::decode(file) {
        Ok(tile) if ask.is_sound() => scale::part(&tile, ask),
        _ => None,
    };
    let Some(part) = part else { return 0 };
    // SAFETY: a part has three bytes for each of its pixels, for which the caller has place; it is no memory of ours.
    unsafe { core::ptr::copy_nonoverlapping(part.as_ptr(), pixels, part.len()) };
    1
}
