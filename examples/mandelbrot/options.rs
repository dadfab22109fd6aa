//! What the user may ask for.

use std::path::PathBuf;

use mizzen_examples::Result;
use mizzen_examples::options::number;

const USAGE: &str = "the options are --width PIXELS, --height PIXELS, --iterations COUNT, --threads COUNT (of each \
                     process), --output FILE.png and --json";
/// The picture is kept in memory as a whole: 3 bytes a pixel.
const MAX_SIDE: u32 = 32_768;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Options {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) iterations: u32,
    /// Of each process.
    pub(crate) threads: usize,
    pub(crate) output: Option<PathBuf>,
    pub(crate) json: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            width: 1600,
            height: 1200,
            iterations: 2000,
            threads: 1,
            output: None,
            json: false,
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
                "--iterations" => options.iterations = number(&option, &value()?, 1..=u32::MAX)?,
                "--threads" => options.threads = number(&option, &value()?, 1..=1024)?,
                "--output" => options.output = Some(value()?.into()),
                "--json" => options.json = true,
                _ => return Err(format!("there is no option {option:?}; {USAGE}").into()),
            }
        }
        if !options.json {
            options.output.get_or_insert("mandelbrot.png".into());
        }
        Ok(options)
    }
}
