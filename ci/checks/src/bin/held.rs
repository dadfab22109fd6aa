//! What a gateway holds: `held whole BYTES` sends one message through it; `held many SECONDS` has each rank of the first half send to each of the second. The
//! script beside it reads the memory of the gateway's agent meanwhile.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use mizzen::{Deck, Mailbox};

/// Of a message among many.
const LONG: usize = 256 << 10;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [what, how_much] = &arguments[..] else {
        bail!("held whole BYTES, or held many SECONDS");
    };
    let deck = Deck::join()?;
    let inbox = deck.mailbox()?;
    deck.bind(&format!("in {}", deck.rank()), &inbox)?;
    // Who watches the gateway has to be there first.
    std::thread::sleep(Duration::from_secs(1));
    match &what[..] {
        "whole" => whole(&deck, &inbox, how_much.parse()?)?,
        "many" => many(&deck, &inbox, Duration::from_secs_f64(how_much.parse()?))?,
        other => bail!("held does not know {other}"),
    }
    deck.finish()?;
    Ok(())
}

fn whole(deck: &Deck, inbox: &Mailbox, bytes: usize) -> Result<()> {
    let mut memory = vec![deck.rank().0 as u8 + 1; bytes];
    if deck.rank() == 0 {
        deck.fetch("in 1")?.send(&memory[..])?;
        return Ok(());
    }
    let mut message = inbox.retrieve()?;
    message.unpack_express_into(&mut memory[..])?;
    message.finish()?;
    ensure!(memory.iter().all(|byte| *byte == 1), "the message is torn");
    println!("{bytes} bytes came");
    Ok(())
}

fn many(deck: &Deck, inbox: &Mailbox, time: Duration) -> Result<()> {
    let half = deck.size() / 2;
    if deck.rank() < half {
        let receivers = (half..deck.size()).map(|rank| deck.fetch(&format!("in {rank}"))?.sender());
        let mut receivers = receivers.collect::<Result<Vec<_>, _>>()?;
        let bytes = vec![7_u8; LONG];
        let until = Instant::now() + time;
        while Instant::now() < until {
            for receiver in &mut receivers {
                receiver.send(&bytes[..])?;
            }
        }
        for receiver in &mut receivers {
            receiver.send(&[0_u8][..])?;
        }
        return Ok(());
    }
    let (mut ended, mut came) = (0, vec![0_u64; half as usize]);
    while ended < half {
        let mut message = inbox.retrieve()?;
        let source = message.source().index();
        match message.unpack_vec::<u8>()?.len() {
            LONG => came[source] += 1,
            _ => ended += 1,
        }
    }
    ensure!(
        came.iter().all(|count| *count > 0),
        "a flow stood still all the time"
    );
    if deck.rank() == half {
        let (least, most) = (came.iter().min(), came.iter().max());
        let (least, most) = (least.context("flows")?, most.context("flows")?);
        println!(
            "{} flows; to one receiver between {least} and {most} messages of {LONG} bytes each",
            half * half
        );
    }
    Ok(())
}
