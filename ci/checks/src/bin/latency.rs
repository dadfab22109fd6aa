//! One-way time of 8 bytes between two pinned processes through a `Sender`, beside the bare cache line in the same run.
//!
//! `mizzen run -n 2 -- latency REPETITIONS FILE`. FILE is mapped by both for the bare line.
use std::sync::atomic::Ordering;
use std::time::Instant;

use anyhow::{Context, ensure};
use mizzen::{Deck, Mailbox, Sender};
use mizzen_checks::{Mapped, median, pin};

/// Round trips of one measurement.
const ROUNDS: u64 = 20_000;

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let repetitions: u64 = arguments
        .next()
        .context("usage: latency REPETITIONS FILE")?
        .parse()?;
    let lines = Mapped::open(&arguments.next().context("which file?")?, 64)?;
    let deck = Deck::join()?;
    ensure!(deck.size() == 2, "start it with `mizzen run -n 2`");
    let me = deck.rank().0;
    pin(me as usize);
    let inbox = deck.mailbox()?;
    deck.bind(&format!("player {me}"), &inbox)?;
    let mut other = deck.fetch(&format!("player {}", 1 - me))?.sender()?;
    let (mut bare, mut ours, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    ours_once(&inbox, &mut other, me, 1000)?;
    for repetition in 0..repetitions {
        let line = bare_once(&lines, me, repetition * ROUNDS);
        let lane = ours_once(&inbox, &mut other, me, ROUNDS)?;
        bare.push(line);
        ours.push(lane);
        ratios.push(lane / line);
    }
    if me == 0 {
        let spread = |values: &mut [f64]| {
            let middle = median(values);
            format!(
                "{middle:.0} ns ({:.0} to {:.0})",
                values[0],
                values[values.len() - 1]
            )
        };
        println!(
            "latency: 8 B one way, {repetitions} alternating runs: bare line {}, sender {}, ratio {:.2} (median)",
            spread(&mut bare),
            spread(&mut ours),
            median(&mut ratios),
        );
    }
    Ok(())
}

/// Nanoseconds one way.
fn ours_once(inbox: &Mailbox, other: &mut Sender, me: u32, rounds: u64) -> anyhow::Result<f64> {
    let started = Instant::now();
    for round in 0..rounds {
        if me == 0 {
            other.send(&round)?;
            ensure!(inbox.receive::<u64>()? == round, "the ball comes back");
        } else {
            let ball = inbox.receive::<u64>()?;
            other.send(&ball)?;
        }
    }
    Ok(started.elapsed().as_nanos() as f64 / rounds as f64 / 2.0)
}

/// Nanoseconds one way of a bare hand-over, from round number `first` on. The two lines are far enough apart that no
/// prefetcher joins them.
fn bare_once(lines: &Mapped, me: u32, first: u64) -> f64 {
    let (there, back) = (lines.word(0), lines.word(32));
    let started = Instant::now();
    for round in first + 1..=first + ROUNDS {
        let (mine, theirs) = if me == 0 {
            (there, back)
        } else {
            (back, there)
        };
        if me == 0 {
            mine.store(round, Ordering::Release);
        }
        while theirs.load(Ordering::Acquire) != round {
            std::hint::spin_loop();
        }
        if me == 1 {
            mine.store(round, Ordering::Release);
        }
    }
    started.elapsed().as_nanos() as f64 / ROUNDS as f64 / 2.0
}
