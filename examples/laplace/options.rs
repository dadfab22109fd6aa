//! What the user may ask for.

use std::path::PathBuf;

use clap::Parser;
use mizzen_examples::Result;
use mizzen_examples::options::number;

/// A border row of one colour then has less than 64 KiB, and goes on its way before its receiver asks over every network.
const MAX_SIZE: usize = 16_000;

/// Laplace's equation on a heated plate, by all threads of all processes.
#[derive(Clone, Debug, PartialEq, Parser)]
#[command(name = "laplace")]
pub(crate) struct Options {
    /// Inner cells of a side of the plate
    #[arg(long, value_name = "CELLS", default_value_t = 2000, value_parser = number(1..=MAX_SIZE))]
    pub(crate) size: usize,
    /// Stop after so many iterations
    #[arg(long, value_name = "COUNT", default_value_t = 100_000, value_parser = number(1..=1_000_000_000_usize))]
    pub(crate) iterations: usize,
    /// Stop when no cell changes by this many degrees in an iteration
    #[arg(long, value_name = "CHANGE", default_value_t = 1e-3, value_parser = number(0.0..=100.0))]
    pub(crate) tolerance: f64,
    /// How often to look at the largest change
    #[arg(long, value_name = "ITERATIONS", default_value_t = 50, value_parser = number(1..=1_000_000_usize))]
    pub(crate) check_every: usize,
    /// Factor of over-relaxation, 1 for none [default: the best for this size]
    // From 2 on it does not converge.
    #[arg(long, value_name = "FACTOR", value_parser = number(0.01..=1.9999))]
    pub(crate) omega: Option<f64>,
    /// Threads of each process
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = number(1..=1024_usize))]
    pub(crate) threads: usize,
    /// Keep each thread on a core
    #[arg(long)]
    pub(crate) pin: bool,
    /// Draw the plate, a pixel for each cell
    #[arg(long, value_name = "FILE.png")]
    pub(crate) picture: Option<PathBuf>,
    /// Draw the largest change over the iterations
    #[arg(long, value_name = "FILE.svg")]
    pub(crate) residuals: Option<PathBuf>,
    /// Print the result for programs
    #[arg(long)]
    pub(crate) json: bool,
}

impl Options {
    /// Refuses a job in which some thread would have nothing to do.
    pub(crate) fn checked(self, ranks: u32) -> Result<Self> {
        let workers = ranks as usize * self.threads;
        if workers <= self.size {
            return Ok(self);
        }
        let (size, threads) = (self.size, self.threads);
        Err(format!(
            "a plate of {size} rows cannot be divided among {workers} workers ({ranks} processes, --threads {threads}): \
             give --size {workers} or more, or start fewer"
        )
        .into())
    }

    /// The factor of over-relaxation.
    pub(crate) fn omega(&self) -> f64 {
        self.omega.unwrap_or_else(|| best_omega(self.size))
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
