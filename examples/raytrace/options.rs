//! What the user may ask for.

use std::path::PathBuf;

use mizzen_examples::Result;
use mizzen_examples::options::number;

const USAGE: &str = "the options are --width PIXELS, --height PIXELS, --samples COUNT (rays through each pixel), --threads COUNT \
                     (of each process) and --output FILE.png";
/// The picture is kept in memory as a whole: 3 bytes a pixel.
const MAX_SIDE: u32 = 16_384;
const MAX_SAMPLES: u32 = 65_536;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Options {
    pub(crate) width: u32,
    pub(crate) height: u32,
    /// Rays through each pixel.
    pub(crate) samples: u32,
    /// Of each process.
    pub(crate) threads: usize,
    pub(crate) output: PathBuf,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            width: 960,
            height: 540,
            samples: 16,
            threads: 1,
            output: "scene.png".into(),
        }
    }
}

impl Options {
    pub(crate) fn parse(mut args: impl Iterator<Item = String>) -> Result<Self> {
        let mut options = Self::default();
        while let Some(option) = args.next() {
            let mut value = || {
                args.next()
                    .ok_or_else(|| format!("{option} needs a value; {USAGE}"))
            };
            match option.as_str() {
                "--width" => options.width = number(&option, &value()?, 1..=MAX_SIDE)?,
                "--height" => options.height = number(&option, &value()?, 1..=MAX_SIDE)?,
                "--samples" => options.samples = number(&option, &value()?, 1..=MAX_SAMPLES)?,
                "--threads" => options.threads = number(&option, &value()?, 1..=1024)?,
                "--output" => options.output = value()?.into(),
                _ => return Err(format!("there is no option {option:?}; {USAGE}").into()),
            }
        }
        Ok(options)
    }
}
