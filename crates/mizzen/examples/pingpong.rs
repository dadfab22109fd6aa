//! Two processes send eight bytes back and forth and tell how long one way takes.
//!
//! `mizzen run -n 2 -- target/release/examples/pingpong`

use std::time::Instant;

use mizzen::Deck;

const ROUNDS: u32 = 100_000;
const WARM_UP: u32 = 1_000;

fn main() -> mizzen::Result<()> {
    let deck = Deck::join()?;
    deck.at_least(2)?;
    let me = deck.rank().0;
    if me > 1 {
        // Two players are enough.
        return Ok(());
    }
    let inbox = deck.mailbox()?;
    deck.bind(&format!("player {me}"), &inbox)?;
    // A sender is the fastest way for one thread to send often to one mailbox.
    let mut other = deck.fetch(&format!("player {}", 1 - me))?.sender()?;
    let mut started = Instant::now();
    for round in 0..WARM_UP + ROUNDS {
        if round == WARM_UP {
            started = Instant::now();
        }
        if me == 0 {
            other.send(&u64::from(round))?;
        }
        let ball = inbox.receive::<u64>()?;
        assert_eq!(ball, u64::from(round), "the ball that was sent comes back");
        if me == 1 {
            other.send(&ball)?;
        }
    }
    if me == 0 {
        let one_way = started.elapsed() / (2 * ROUNDS);
        println!("{ROUNDS} round trips of 8 bytes: {one_way:?} one way");
    }
    Ok(())
}
