//! The picture, and the slices into which it is divided.

use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;

use indicatif::{ProgressBar, ProgressStyle};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::Result;
use super::options::Options;

/// Rows of a slice: enough that a message is nothing against the work, few enough that all workers end together.
const SLICE: u32 = 16;

/// Some rows of the picture. It goes into messages as it is.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct Slice {
    pub(crate) first: u32,
    pub(crate) rows: u32,
}

pub(crate) struct Picture {
    width: u32,
    height: u32,
    output: PathBuf,
    pixels: Vec<u8>,
    handed_out: u32,
    bar: ProgressBar,
}

impl Slice {
    pub(crate) fn is_empty(self) -> bool {
        self.rows == 0
    }

    pub(crate) fn bytes(self, options: &Options) -> usize {
        3 * options.width as usize * self.rows as usize
    }
}

impl Picture {
    pub(crate) fn new(options: &Options) -> Self {
        let style = ProgressStyle::with_template("{bar:40.cyan/blue} {percent}% {eta} left");
        let bar = ProgressBar::new(options.height.into());
        bar.set_style(style.expect("the template is constant and right"));
        Self {
            width: options.width,
            height: options.height,
            output: options.output.clone(),
            pixels: vec![0; 3 * options.width as usize * options.height as usize],
            handed_out: 0,
            bar,
        }
    }

    /// The next rows to compute; empty when all are handed out.
    pub(crate) fn next_slice(&mut self) -> Slice {
        let first = self.handed_out;
        let rows = SLICE.min(self.height - first);
        self.handed_out += rows;
        Slice { first, rows }
    }

    pub(crate) fn paint(&mut self, slice: Slice, pixels: &[u8]) -> Result<()> {
        let start = 3 * self.width as usize * slice.first as usize;
        let place = self.pixels.get_mut(start..start + pixels.len());
        place
            .ok_or("a worker sent rows that the picture does not have")?
            .copy_from_slice(pixels);
        self.bar.inc(slice.rows.into());
        Ok(())
    }

    pub(crate) fn save(&self) -> Result<()> {
        self.bar.finish_and_clear();
        let cannot = |cause: String| format!("cannot write {}: {cause}", self.output.display());
        let file = File::create(&self.output).map_err(|error| cannot(error.to_string()))?;
        let mut encoder = png::Encoder::new(BufWriter::new(file), self.width, self.height);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.set_source_srgb(png::SrgbRenderingIntent::Perceptual);
        let mut writer = encoder
            .write_header()
            .map_err(|error| cannot(error.to_string()))?;
        writer
            .write_image_data(&self.pixels)
            .map_err(|error| cannot(error.to_string()))?;
        writer.finish().map_err(|error| cannot(error.to_string()))?;
        Ok(())
    }
}
