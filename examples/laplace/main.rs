//! Laplace's equation on a heated plate: red-black Gauss-Seidel with over-relaxation, by all threads of all processes.
//!
//! `mizzen run -n 2 -- target/release/laplace --size 800 --picture plate.png`
//!
//! README.md beside this file says how it works.

mod block;
mod gather;
mod kernel;
mod neighbours;
mod options;
mod picture;
mod plate;
mod report;
mod residuals;
mod schedule;
mod solve;
#[cfg(test)]
mod tests;

use clap::Parser;
use mizzen::Deck;
use mizzen_examples::Result;
use mizzen_examples::options::accept;
use options::Options;

fn main() {
    mizzen_examples::run("laplace", run);
}

fn run() -> Result<()> {
    let deck = Deck::join()?;
    let asked = Options::try_parse().map_err(Into::into);
    let asked = asked.and_then(|options| options.checked(deck.size()));
    let Some(options) = accept(&deck, asked)? else {
        return Ok(());
    };
    let (blocks, outcome) = solve::solve(&deck, &options)?;
    if let Some(file) = &options.picture {
        let rows = gather::gather(&deck, &blocks, options.size)?;
        if deck.rank() == 0 {
            picture::write(file, &rows)?;
        }
    }
    if deck.rank() != 0 {
        return Ok(());
    }
    if let Some(file) = &options.residuals {
        residuals::write(file, &options, &outcome.changes)?;
    }
    println!("{}", report::line(&deck, &options, &outcome));
    Ok(())
}
