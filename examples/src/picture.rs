//! Pictures: as PNG files, and told apart.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use crate::failure::Result;

/// Writes a picture: three bytes a pixel (red, green, blue, as screens expect them), row by row from the top.
///
/// # Errors
///
/// A sentence that names the file, if it cannot be written or `pixels` is not a picture of that size.
pub fn write_png(file: &Path, width: u32, height: u32, pixels: &[u8]) -> Result<()> {
    encode(file, width, height, pixels)
        .map_err(|cause| format!("cannot write {}: {cause}", file.display()).into())
}

/// What tells two pictures apart: FNV-1a of their bytes, which differs if a byte does.
///
/// ```
/// use mizzen_examples::picture::fingerprint;
///
/// assert_eq!(fingerprint(b"a"), 0xaf63_dc4c_8601_ec8c);
/// assert_ne!(fingerprint(&[1, 2]), fingerprint(&[2, 1]));
/// ```
#[must_use]
pub fn fingerprint(pixels: &[u8]) -> u64 {
    pixels.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

fn encode(
    file: &Path,
    width: u32,
    height: u32,
    pixels: &[u8],
) -> std::result::Result<(), png::EncodingError> {
    let mut encoder = png::Encoder::new(BufWriter::new(File::create(file)?), width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_compression(png::Compression::High);
    encoder.set_source_srgb(png::SrgbRenderingIntent::Perceptual);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(pixels)?;
    writer.finish()
}
