//! More threads than cores: threads of two processes play ping-pong in pairs, all at once.
//!
//! `mizzen run -n 2 -- threads PAIRS SECONDS`

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use mizzen::Deck;
use mizzen_checks::median;

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let pairs: u32 = arguments
        .next()
        .context("usage: threads PAIRS SECONDS")?
        .parse()?;
    let seconds: f64 = arguments.next().context("how many seconds?")?.parse()?;
    let deck = Deck::join()?;
    ensure!(deck.size() == 2, "start it with `mizzen run -n 2`");
    let stop = AtomicBool::new(false);
    let (mut rounds, elapsed) = std::thread::scope(|threads| {
        let players: Vec<_> = (0..pairs)
            .map(|pair| {
                let (deck, stop) = (&deck, &stop);
                threads.spawn(move || play(deck, pair, stop))
            })
            .collect();
        let started = Instant::now();
        std::thread::sleep(Duration::from_secs_f64(seconds));
        stop.store(true, Ordering::Release);
        let elapsed = started.elapsed();
        let rounds = players
            .into_iter()
            .map(|player| player.join().expect("players do not panic"));
        rounds
            .collect::<anyhow::Result<Vec<f64>>>()
            .map(|rounds| (rounds, elapsed))
    })?;
    if deck.rank() == 0 {
        let messages = 2.0 * rounds.iter().sum::<f64>() / elapsed.as_secs_f64();
        let middle = median(&mut rounds);
        let worst = middle / rounds[0].max(1.0);
        println!(
            "threads: 2 processes x {pairs} threads on {} cores: {:.2} million messages/s; the slowest pair {worst:.2} times \
             slower than the median",
            std::thread::available_parallelism()?,
            messages / 1e6,
        );
    }
    Ok(())
}

/// Plays until rank 0 has had enough: round trips made.
fn play(deck: &Deck, pair: u32, stop: &AtomicBool) -> anyhow::Result<f64> {
    let me = deck.rank().0;
    let inbox = deck.mailbox()?;
    deck.bind(&format!("player {me} of pair {pair}"), &inbox)?;
    let mut other = deck
        .fetch(&format!("player {} of pair {pair}", 1 - me))?
        .sender()?;
    let mut rounds = 0u64;
    loop {
        if me == 0 {
            let last = stop.load(Ordering::Acquire);
            other.send(&if last { u64::MAX } else { rounds })?;
            if last {
                return Ok(rounds as f64);
            }
            ensure!(inbox.receive::<u64>()? == rounds, "the ball comes back");
        } else {
            let ball = inbox.receive::<u64>()?;
            if ball == u64::MAX {
                return Ok(rounds as f64);
            }
            other.send(&ball)?;
        }
        rounds += 1;
    }
}
