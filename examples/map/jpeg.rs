//! Tiles as JPEG files in memory.

use image::codecs::jpeg::{JpegDecoder, JpegEncoder};
use image::{ExtendedColorType, ImageDecoder, ImageError};
use mizzen::{Error, Result};
use std::io::Cursor;

use super::place::TILE;

/// Lines stay sharp, and a tile needs a tenth of its pixels' bytes.
const QUALITY: u8 = 85;

/// Bytes of a tile's pixels.
pub(crate) const PIXELS: usize = 3 * TILE[0] as usize * TILE[1] as usize;

/// Compresses the pixels of a tile, three bytes each.
pub(crate) fn encode(pixels: &[u8]) -> Result<Vec<u8>> {
    let mut file = Vec::new();
    JpegEncoder::new_with_quality(&mut file, QUALITY)
        .encode(pixels, TILE[0], TILE[1], ExtendedColorType::Rgb8)
        .map_err(|cause| unusable("compressed", cause))?;
    Ok(file)
}

/// The pixels of a tile.
pub(crate) fn decode(file: &[u8]) -> Result<Vec<u8>> {
    let read = || {
        let decoder = JpegDecoder::new(Cursor::new(file))?;
        let mut pixels = vec![0; PIXELS];
        decoder.read_image(&mut pixels)?;
        Ok(pixels)
    };
    read().map_err(|cause| unusable("decompressed", cause))
}

fn unusable(done: &str, cause: ImageError) -> Error {
    Error::Program(format!("a tile cannot be {done}: {cause}").into())
}
