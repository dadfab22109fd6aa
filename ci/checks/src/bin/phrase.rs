//! Two processes that tell each other a phrase: `phrase SECONDS PHRASE`, the other way round, since command lines are seen by many. The script beside it searches the
//! memory of the gateway between them for it.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use mizzen::Deck;

/// Times that the phrase is in a message: one that goes as a frame, one that is pushed, and one that is offered.
const TIMES: [usize; 3] = [1, 1 << 12, 1 << 17];

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let seconds: f64 = arguments.next().context("how long?")?.parse()?;
    let phrase: String = arguments.next().context("what?")?.chars().rev().collect();
    let deck = Deck::join()?;
    let inbox = deck.mailbox()?;
    deck.bind(&format!("in {}", deck.rank()), &inbox)?;
    let other = deck.fetch(&format!("in {}", 1 - deck.rank().0))?;
    let until = Instant::now() + Duration::from_secs_f64(seconds);
    let mut told = 0_u64;
    loop {
        for times in TIMES {
            let text = phrase.repeat(times);
            let is_last = deck.rank() == 0 && Instant::now() >= until;
            if deck.rank() == 0 {
                other.send(match is_last {
                    true => &[][..],
                    false => text.as_bytes(),
                })?;
            }
            if is_last {
                println!("told {told} times");
                deck.finish()?;
                return Ok(());
            }
            let heard = inbox.retrieve()?.unpack_vec::<u8>()?;
            if heard.is_empty() {
                deck.finish()?;
                return Ok(());
            }
            ensure!(heard == text.as_bytes(), "it is not what was said");
            told += 1;
            if deck.rank() == 1 {
                other.send(text.as_bytes())?;
            }
        }
    }
}
