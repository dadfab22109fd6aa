//! Processes that wait must not use the processor.
//!
//! `mizzen run -n 8 -- idle SECONDS`: all block in `retrieve`; rank 0 tells the most that one of them used.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use mizzen::{Deck, RetrieveError};
use mizzen_checks::cpu_time;

fn main() -> anyhow::Result<()> {
    let seconds: f64 = std::env::args()
        .nth(1)
        .context("usage: idle SECONDS")?
        .parse()?;
    let deck = Deck::join()?;
    let inbox = deck.mailbox()?;
    deck.bind(&format!("idler {}", deck.rank()), &inbox)?;
    let reports = deck.mailbox()?;
    if deck.rank() == 0 {
        deck.bind("reports", &reports)?;
    }
    let report = deck.fetch("reports")?;
    // Everyone has met everyone's neighbour, so that links exist.
    let next = deck.fetch(&format!("idler {}", (deck.rank().0 + 1) % deck.size()))?;
    next.send(&0.0f64)?;
    inbox.receive::<f64>()?;
    let (started, before) = (Instant::now(), cpu_time());
    let outcome = inbox.retrieve_timeout(Duration::from_secs_f64(seconds));
    ensure!(
        matches!(outcome, Err(RetrieveError::TimedOut { .. })),
        "nobody sends: {outcome:?}"
    );
    let share = (cpu_time() - before).as_secs_f64() / started.elapsed().as_secs_f64() * 100.0;
    if deck.rank() != 0 {
        report.send(&share)?;
        return Ok(());
    }
    let mut worst = share;
    for _ in 1..deck.size() {
        worst = worst.max(reports.receive::<f64>()?);
    }
    println!(
        "idle: {} processes blocked for {seconds} s; the most that one used was {worst:.3} % of a core",
        deck.size()
    );
    ensure!(worst < 0.5, "more than 0.5 %");
    Ok(())
}
