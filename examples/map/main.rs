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
mod report;
mod scale;
mod service;
mod terrain;
#[cfg(test)]
mod tests;
mod tiles;
mod view;
mod viewer;

use std::sync::Arc;
use std::time::{Duration, Instant};

use mizzen::Deck;
use mizzen_examples::Result;
use mizzen_examples::options::accept;
use mizzen_examples::picture::write_png;
use options::Options;
use place::Map;
use tiles::Tiles;
use view::View;
use viewer::{Cost, Viewer};

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
    if !options.json {
        println!("{census}, drawn in {:.2?}", started.elapsed());
    }
    let mut viewer = Viewer::new(&deck)?;
    for asked in &options.views {
        let (pixels, cost) = show(&mut viewer, &asked.view, options.repeat)?;
        if let Some(file) = &asked.output {
            let [width, height] = asked.view.pixels();
            write_png(file, width, height, &pixels)?;
        }
        let line = match options.json {
            true => report::for_programs(&deck, &asked.view, &cost, &pixels),
            false => report::for_people(asked, &cost),
        };
        println!("{line}");
    }
    Ok(census.dismiss()?)
}

/// The picture made so often, and what one of them took. If it is made again, the first does not count: it finds the services.
fn show(viewer: &mut Viewer, view: &View, times: u32) -> Result<(Vec<u8>, Cost)> {
    let (mut pixels, mut cost) = viewer.show(Map::WHOLE, view)?;
    let mut took = Duration::ZERO;
    for _ in 1..times {
        drop(pixels);
        (pixels, cost) = viewer.show(Map::WHOLE, view)?;
        took += cost.took;
    }
    if times > 1 {
        cost.took = took / (times - 1);
    }
    Ok((pixels, cost))
}
