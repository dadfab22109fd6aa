//! Sends and receives eight bytes many times in one thread, to be counted: `valgrind --tool=callgrind short_path WAY ROUNDS`.
//! WAY is `sender` or `post`.

use anyhow::{Context, bail, ensure};

fn main() -> anyhow::Result<()> {
    const USAGE: &str = "usage: short_path sender|post ROUNDS";
    let mut arguments = std::env::args().skip(1);
    let by_post = match arguments.next().as_deref() {
        Some("sender") => false,
        Some("post") => true,
        _ => bail!(USAGE),
    };
    let rounds: u64 = arguments.next().context(USAGE)?.parse()?;
    let deck = mizzen::Deck::join()?;
    let inbox = deck.mailbox()?;
    let address = inbox.address();
    let mut sender = address.sender()?;
    for round in 0..rounds {
        if by_post {
            address.send(&round)?;
        } else {
            sender.send(&round)?;
        }
        let received = inbox.receive::<u64>()?;
        ensure!(received == round, "what was sent is received");
    }
    Ok(())
}
