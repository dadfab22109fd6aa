//! The Mandelbrot set, computed by all processes: a work pool of slices of rows.
//!
//! `mizzen run -n 4 -- target/release/mandelbrot --width 1600 --height 1200 --output mandelbrot.png`
//!
//! README.md beside this file says how it works.

mod fractal;
mod options;
mod palette;
mod slices;
#[cfg(test)]
mod tests;

use std::time::Instant;

use clap::Parser;
use mizzen::{Deck, Outcome};
use mizzen_examples::Result;
use mizzen_examples::options::accept;
use mizzen_examples::picture::write_png;
use mizzen_examples::report;
use options::Options;
use serde_bytes::ByteBuf;

fn main() {
    mizzen_examples::run("mandelbrot", run);
}

fn run() -> Result<()> {
    let deck = Deck::join()?;
    let asked = Options::try_parse().map_err(Into::into);
    let Some(options) = accept(&deck, asked)? else {
        return Ok(());
    };
    if options.json {
        // All are there when this returns: what is timed is the picture, not how long processes take to start.
        deck.barrier()?;
    }
    let started = Instant::now();
    let outcome = compute(&deck, &options)?;
    if deck.rank() != 0 {
        return Ok(());
    }
    let pixels = slices::together(&outcome.results);
    let seconds = started.elapsed().as_secs_f64();
    if let Some(file) = options.output() {
        write_png(file, options.width, options.height, &pixels)?;
    }
    let line = match options.json {
        true => report::for_programs(&deck, &options.numbers(), seconds, &pixels),
        false => report::for_people(options.output(), &outcome.report),
    };
    println!("{line}");
    Ok(())
}

/// The pixels of the slices at rank 0, from the top; none elsewhere.
fn compute(deck: &Deck, options: &Options) -> mizzen::Result<Outcome<ByteBuf>> {
    let slices = match deck.rank().0 {
        0 => slices::of(options.height),
        _ => Vec::new(),
    };
    deck.pool()
        .name("mandelbrot")
        .threads(options.threads)
        // As one piece of bytes, not as a list of numbers.
        .map_reported(slices, |slice| {
            ByteBuf::from(fractal::render(slice, options))
        })
}
