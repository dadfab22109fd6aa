//! What the user may ask for.

use std::path::PathBuf;

use clap::Parser;
use mizzen_examples::options::number;

/// The picture is kept in memory as a whole: 3 bytes a pixel.
const MAX_SIDE: u32 = 16_384;
const MAX_SAMPLES: u32 = 65_536;

/// A scene of spheres, rendered by all processes.
#[derive(Clone, Debug, PartialEq, Parser)]
#[command(name = "raytrace")]
pub(crate) struct Options {
    /// Width of the picture
    #[arg(long, value_name = "PIXELS", default_value_t = 960, value_parser = number(1..=MAX_SIDE))]
    pub(crate) width: u32,
    /// Height of the picture
    #[arg(long, value_name = "PIXELS", default_value_t = 540, value_parser = number(1..=MAX_SIDE))]
    pub(crate) height: u32,
    /// Rays through each pixel
    #[arg(long, value_name = "COUNT", default_value_t = 16, value_parser = number(1..=MAX_SAMPLES))]
    pub(crate) samples: u32,
    /// Threads of each process
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = number(1..=1024_usize))]
    pub(crate) threads: usize,
    /// The picture
    #[arg(long, value_name = "FILE.png", default_value = "scene.png")]
    pub(crate) output: PathBuf,
}
