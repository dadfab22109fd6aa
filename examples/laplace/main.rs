//! Laplace's equation on a heated plate: red-black Gauss-Seidel with over-relaxation, by all threads of all processes.
//!
//! `mizzen run -n 2 -- target/release/laplace --size 800 --picture plate.png`
//!
//! README.md beside this file says how it works.

mod agreement;
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

use mizzen::Deck;
use mizzen_examples::Result;
use options::Options;

fn main() {
    mizzen_examples::run("laplace", run);
}

fn run() -> Result<()> {
    let deck = Deck::join()?;
    let options = Options::parse(std::env::args().skip(1));
    let options = match options.and_then(|options| options.check(deck.size()).map(|()| options)) {
        Ok(options) => options,
        // All processes got the same arguments: one complaint is enough.
        Err(error) if deck.rank() == 0 => return Err(error),
        Err(_) => return Ok(()),
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
