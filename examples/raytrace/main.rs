//! A small scene, rendered by all processes: a work pool of tiles, which have very different costs.
//!
//! `mizzen run -n 4 -- target/release/raytrace --width 960 --height 540 --samples 64 --output scene.png`
//!
//! README.md beside this file says how it works.

mod camera;
mod hit;
mod light;
mod options;
mod random;
mod scene;
#[cfg(test)]
mod tests;
mod tile;
mod trace;
mod vector;

use std::time::Instant;

use clap::Parser;
use mizzen::{Deck, Outcome};
use mizzen_examples::Result;
use mizzen_examples::options::accept;
use mizzen_examples::picture::write_png;
use mizzen_examples::report;
use options::Options;
use scene::Scene;
use serde_bytes::ByteBuf;
use tile::Tile;

fn main() {
    mizzen_examples::run("raytrace", run);
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
    let outcome = render(&deck, &options)?;
    if deck.rank() != 0 {
        return Ok(());
    }
    let pixels = tile::assemble(&options, &outcome.results);
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

/// The tiles' pixels at rank 0, in the order of the tiles; none elsewhere.
fn render(deck: &Deck, options: &Options) -> mizzen::Result<Outcome<ByteBuf>> {
    let scene = Scene::new();
    let tiles = match deck.rank().0 {
        0 => Tile::all(options),
        _ => Vec::new(),
    };
    deck.pool()
        .name("raytrace")
        .threads(options.threads)
        // As one piece of bytes, not as a list of numbers.
        .map_reported(tiles, |tile| ByteBuf::from(tile.render(&scene, options)))
}
