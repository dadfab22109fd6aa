//! What the user may ask for.

use std::path::{Path, PathBuf};

use clap::Parser;
use mizzen_examples::options::number;
use mizzen_examples::report;

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
    /// The picture [default: scene.png, or none with --json]
    #[arg(long, value_name = "FILE.png")]
    pub(crate) output: Option<PathBuf>,
    /// Print the time for programs
    #[arg(long)]
    pub(crate) json: bool,
}

impl Options {
    /// Where the picture goes, if anywhere.
    pub(crate) fn output(&self) -> Option<&Path> {
        report::file(self.output.as_deref(), self.json, "scene.png")
    }

    /// What was asked for.
    pub(crate) fn numbers(&self) -> [(&'static str, usize); 4] {
        [
            ("width", self.width as usize),
            ("height", self.height as usize),
            ("samples", self.samples as usize),
            ("threads", self.threads),
        ]
    }
}
