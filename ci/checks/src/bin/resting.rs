//! A job that has nothing to do: `resting SECONDS [connected]`, run by `ci/resting`.
//!
//! Each process waits for a message that does not come; if they are to be connected, it has sent one to the next before, and got one.

use std::time::Duration;

use anyhow::{Context, ensure};
use mizzen::Deck;

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let seconds = arguments
        .next()
        .context("usage: resting SECONDS [connected]")?;
    let rest = Duration::from_secs(seconds.parse()?);
    let deck = Deck::join()?;
    let inbox = deck.mailbox()?;
    if arguments.next().is_some() {
        let (rank, size) = (u32::from(deck.rank()), deck.size());
        deck.bind(&format!("rank {rank}"), &inbox)?;
        let next = deck.fetch(&format!("rank {}", (rank + 1) % size))?;
        next.send(&rank)?;
        let before = inbox.receive::<u32>()?;
        ensure!((before + 1) % size == rank, "heard of {before}");
    }
    println!("rests");
    ensure!(
        inbox.retrieve_timeout(rest).is_err(),
        "a message that nobody sent"
    );
    Ok(())
}
