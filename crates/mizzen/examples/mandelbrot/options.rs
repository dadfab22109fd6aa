//! What the user may ask for.

use std::path::PathBuf;

use super::Result;

const USAGE: &str = "the options are --width PIXELS, --height PIXELS, --iterations COUNT, --threads COUNT (of each \
                     process) and --output FILE.png";
/// The picture is kept in memory as a whole: 3 bytes a pixel.
const MAX_SIDE: u32 = 32_768;

#[derive(Debug, PartialEq)]
pub(crate) struct Options {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) iterations: u32,
    pub(crate) threads: u32,
    pub(crate) output: PathBuf,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            width: 1600,
            height: 1200,
            iterations: 2000,
            threads: 1,
            output: "mandelbrot.png".into(),
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
                "--width" => options.width = number(&option, &value()?, MAX_SIDE)?,
                "--height" => options.height = number(&option, &value()?, MAX_SIDE)?,
                "--iterations" => options.iterations = number(&option, &value()?, u32::MAX)?,
                "--threads" => options.threads = number(&option, &value()?, 1024)?,
                "--output" => options.output = value()?.into(),
                _ => return Err(format!("there is no option {option:?}; {USAGE}").into()),
            }
        }
        Ok(options)
    }
}

fn number(option: &str, value: &str, max: u32) -> Result<u32> {
    match value.parse() {
        Ok(number) if (1..=max).contains(&number) => Ok(number),
        _ => Err(format!("{option} needs a number from 1 to {max}, not {value:?}").into()),
    }
}
