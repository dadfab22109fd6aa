//! What the user may ask for.

use std::path::PathBuf;

use mizzen_examples::Result;
use mizzen_examples::options::number;

const USAGE: &str = "the options are --size CELLS (of a side), --iterations COUNT (at most), --tolerance CHANGE (below which \
                     to stop), --check-every ITERATIONS, --omega FACTOR (1: no over-relaxation), --threads COUNT (of each \
                     process), --pin (each thread to a core), --picture FILE.png, --residuals FILE.svg and --json";
/// A border row of one colour then has less than 64 KiB, and goes on its way before its receiver asks over every network.
const MAX_SIZE: usize = 16_000;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Options {
    /// Inner cells of a side.
    pub(crate) size: usize,
    pub(crate) iterations: usize,
    /// Over when no cell changes by this in an iteration.
    pub(crate) tolerance: f64,
    pub(crate) check_every: usize,
    pub(crate) omega: f64,
    /// Of each process.
    pub(crate) threads: usize,
    /// Each thread stays on a core.
    pub(crate) pin: bool,
    pub(crate) picture: Option<PathBuf>,
    pub(crate) residuals: Option<PathBuf>,
    pub(crate) json: bool,
}

impl Options {
    pub(crate) fn new(size: usize) -> Self {
        Self {
            size,
            iterations: 100_000,
            tolerance: 1e-3,
            check_every: 50,
            omega: best_omega(size),
            threads: 1,
            pin: false,
            picture: None,
            residuals: None,
            json: false,
        }
    }

    pub(crate) fn parse(mut args: impl Iterator<Item = String>) -> Result<Self> {
        let mut options = Self::new(2000);
        let mut omega = None;
        while let Some(option) = args.next() {
            let mut value = || {
                args.next()
                    .ok_or_else(|| format!("{option} needs a value; {USAGE}"))
            };
            match option.as_str() {
                "--size" => options.size = number(&option, &value()?, 1..=MAX_SIZE)?,
                "--iterations" => {
                    options.iterations = number(&option, &value()?, 1..=1_000_000_000)?;
                }
                "--tolerance" => options.tolerance = number(&option, &value()?, 0.0..=100.0)?,
                "--check-every" => {
                    options.check_every = number(&option, &value()?, 1..=1_000_000)?;
                }
                // From 2 on it does not converge.
                "--omega" => omega = Some(number(&option, &value()?, 0.01..=1.9999)?),
                "--threads" => options.threads = number(&option, &value()?, 1..=1024)?,
                "--pin" => options.pin = true,
                "--picture" => options.picture = Some(value()?.into()),
                "--residuals" => options.residuals = Some(value()?.into()),
                "--json" => options.json = true,
                _ => return Err(format!("there is no option {option:?}; {USAGE}").into()),
            }
        }
        options.omega = omega.unwrap_or_else(|| best_omega(options.size));
        Ok(options)
    }

    /// Refuses a job in which some thread would have nothing to do.
    pub(crate) fn check(&self, ranks: u32) -> Result<()> {
        let workers = ranks as usize * self.threads;
        if workers <= self.size {
            return Ok(());
        }
        let (size, threads) = (self.size, self.threads);
        Err(format!(
            "a plate of {size} rows cannot be divided among {workers} workers ({ranks} processes, --threads {threads}): \
             give --size {workers} or more, or start fewer"
        )
        .into())
    }

    /// Whether the largest change is asked for after this iteration. It always is after the last.
    pub(crate) fn is_checked(&self, iteration: usize) -> bool {
        iteration % self.check_every == 0 || iteration == self.iterations
    }
}

/// The factor with which a square of this size converges fastest (Young, 1954), in some 2 × `size` iterations; to four
/// digits, so that it can be given to other programs exactly.
fn best_omega(size: usize) -> f64 {
    let best = 2.0 / (1.0 + (std::f64::consts::PI / (size + 1) as f64).sin());
    (best * 1e4).floor() / 1e4
}
