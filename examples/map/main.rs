//! A viewer of a huge map whose tiles are spread over all processes: pCoR's application.
//!
//! `mizzen run -n 4 -- target/release/map --region 2600,2400,1920,1920 --scale 0.5 --output map.png`
//!
//! README.md beside this file says how it works.

mod ask;
mod census;
mod chart;
mod jpeg;
mod noise;
mod options;
mod place;
mod scale;
mod service;
mod terrain;
#[cfg(test)]
mod tests;
mod tiles;
mod view;
mod viewer;

use std::sync::Arc;
use std::time::Instant;

use mizzen::Deck;
use mizzen_examples::Result;
use mizzen_examples::options::accept;
use mizzen_examples::picture::write_png;
use options::Options;
use place::Map;
use tiles::Tiles;
use viewer::Viewer;

fn main() {
    mizzen_examples::run("map", run);
}

fn run() -> Result<()> {
    let deck = Deck::join()?;
    let asked = Options::read(std::env::args_os(), Map::WHOLE);
    let Some(options) = accept(&deck, asked)? else {
        return Ok(());
    };
    let started = Instant::now();
    let tiles = Arc::new(Tiles::draw(&deck, Map::WHOLE)?);
    let _service = service::serve(&deck, &tiles)?;
    let Some(census) = census::take(&deck, &tiles)? else {
        return Ok(());
    };
    println!("{census}, drawn in {:.2?}", started.elapsed());
    let mut viewer = Viewer::new(&deck)?;
    for asked in &options.views {
        let (pixels, cost) = viewer.show(Map::WHOLE, &asked.view)?;
        let [width, height] = asked.view.pixels();
        write_png(&asked.output, width, height, &pixels)?;
        println!("{}: {}, {cost}", asked.output.display(), asked.view);
    }
    Ok(census.dismiss()?)
}
