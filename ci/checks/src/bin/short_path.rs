//! Sends and receives many times in one thread, to be counted: `valgrind --tool=callgrind short_path WAY ROUNDS`. WAY is `sender` or
//! `post` for eight bytes, or `kib` for a kibibyte by `Sender`.

use anyhow::{Context, bail, ensure};
use mizzen::{Deck, Mailbox, Sender};

fn main() -> anyhow::Result<()> {
    const USAGE: &str = "usage: short_path sender|post|kib ROUNDS";
    let mut arguments = std::env::args().skip(1);
    let way = arguments.next().context(USAGE)?;
    let rounds: u64 = arguments.next().context(USAGE)?.parse()?;
    let deck = Deck::join()?;
    let inbox = deck.mailbox()?;
    let address = inbox.address();
    let mut sender = address.sender()?;
    let by_post = match way.as_str() {
        "sender" => false,
        "post" => true,
        "kib" => return send_kib(&mut sender, &inbox, rounds),
        _ => bail!(USAGE),
    };
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

fn send_kib(sender: &mut Sender, inbox: &Mailbox, rounds: u64) -> anyhow::Result<()> {
    let (sent, mut received) = ([7u64; 128], [0u64; 128]);
    for _ in 0..rounds {
        sender.send(&sent[..])?;
        inbox.receive_into(&mut received[..])?;
    }
    ensure!(received == sent, "what was sent is received");
    Ok(())
}
