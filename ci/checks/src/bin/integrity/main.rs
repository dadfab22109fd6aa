//! Sends many messages of all kinds and sizes, in every way there is, and checks each: none lost, doubled, out of order or torn.
//!
//! `integrity heap MESSAGES` runs ranks as threads; `mizzen run -n 4 -- integrity job MESSAGES` as processes. Rank 0
//! receives; each other rank has two sending threads, one with a `Sender`, one that posts.

mod plan;
mod receiving;
mod sending;

use anyhow::{Context, bail, ensure};
use mizzen::Deck;

use plan::THREADS;

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mode = arguments
        .next()
        .context("usage: integrity heap|job MESSAGES")?;
    let messages: u64 = arguments.next().context("how many messages?")?.parse()?;
    match mode.as_str() {
        "heap" => {
            let run = |deck: Deck| {
                play_aloud(&deck, messages).map_err(|error| mizzen::Error::Program(error.into()))
            };
            mizzen::local(4, run)?;
        }
        "job" => play_aloud(&Deck::join()?, messages)?,
        other => bail!("{other:?} is neither heap nor job"),
    }
    Ok(())
}

/// Says at once what went wrong: of several errors one is the cause, and its process may be ended because of another.
fn play_aloud(deck: &Deck, messages: u64) -> anyhow::Result<()> {
    play(deck, messages).inspect_err(|error| eprintln!("rank {}: {error:#}", deck.rank()))
}

fn play(deck: &Deck, messages: u64) -> anyhow::Result<()> {
    ensure!(deck.size() >= 2, "integrity needs at least two ranks");
    let pool = plan::pool();
    let senders = u64::from(deck.size() - 1) * THREADS;
    let each = messages / senders;
    if deck.rank() == 0 {
        return receiving::receive(deck, &pool, senders, each);
    }
    std::thread::scope(|threads| {
        let first = u64::from(deck.rank().0 - 1) * THREADS;
        let running: Vec<_> = (first..first + THREADS)
            .map(|sender| {
                let pool = &pool;
                threads.spawn(move || sending::send(deck, pool, sender, each))
            })
            .collect();
        running
            .into_iter()
            .try_for_each(|thread| thread.join().expect("senders do not panic"))
    })
}
