//! Leaves while nobody can be reached: what was accepted before must arrive all the same.
//!
//! `mizzen run --hosts h1,h2 -n 2 -- parting MESSAGES FILE`. Rank 1 waits until FILE is there, posts, and leaves; rank 0 reads.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, ensure};
use mizzen::Deck;

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: parting MESSAGES FILE";
    let messages: u64 = arguments.next().context(usage)?.parse()?;
    let file = arguments.next().context(usage)?;
    let deck = Deck::join()?;
    ensure!(deck.size() == 2, "start it with `mizzen run -n 2`");
    if deck.rank() == 0 {
        let inbox = deck.mailbox()?;
        deck.bind("reader", &inbox)?;
        for number in 0..messages {
            let came = inbox.receive::<u64>()?;
            ensure!(came == number, "message {came} came, {number} was next");
        }
        println!("all of {messages} messages came");
        return Ok(());
    }
    let reader = deck.fetch("reader")?;
    reader.send(&0u64)?;
    deck.flush()?;
    println!("ready");
    while !Path::new(&file).exists() {
        std::thread::sleep(Duration::from_millis(10));
    }
    for number in 1..messages {
        reader.send(&number)?;
    }
    println!("leaves");
    Ok(())
}
