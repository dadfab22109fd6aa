//! Sends and receives eight bytes many times in one thread, to be counted: `valgrind --tool=callgrind short_path ROUNDS`.

use anyhow::{Context, ensure};

fn main() -> anyhow::Result<()> {
    let rounds: u64 = std::env::args()
        .nth(1)
        .context("usage: short_path ROUNDS")?
        .parse()?;
    let deck = mizzen::Deck::join()?;
    let inbox = deck.mailbox()?;
    let mut sender = inbox.address().sender()?;
    for round in 0..rounds {
        sender.send(&round)?;
        ensure!(
            inbox.receive::<u64>()? == round,
            "what was sent is received"
        );
    }
    Ok(())
}
