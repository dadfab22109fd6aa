//! Flows through one gateway, one of which nobody reads for a while: `flows SECONDS`, with half of the ranks on each side of it.
//!
//! Each rank of the first half sends messages of 1 MiB to one of the second. The first receiver does not read in the middle half of the time. Prints what the others
//! got meanwhile, each beside their mean, and what the first one got when it read again; fails if another had less than nine tenths of its share.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use mizzen::{Deck, Mailbox};

const LONG: usize = 1 << 20;

fn main() -> Result<()> {
    let seconds = std::env::args().nth(1).context("flows SECONDS")?;
    let whole = Duration::from_secs_f64(seconds.parse()?);
    let deck = Deck::join()?;
    let half = deck.size() / 2;
    let rank = deck.rank().0;
    let (inbox, gate) = (deck.mailbox()?, deck.mailbox()?);
    deck.bind(&format!("in {rank}"), &inbox)?;
    deck.bind(&format!("gate {rank}"), &gate)?;
    // Everybody is here before the clock starts.
    let first = deck.fetch("gate 0")?;
    if rank == 0 {
        for _ in 1..deck.size() {
            gate.receive::<u8>()?;
        }
        for other in 1..deck.size() {
            deck.fetch(&format!("gate {other}"))?.send(&0_u8)?;
        }
    } else {
        first.send(&0_u8)?;
        gate.receive::<u8>()?;
    }
    let start = Instant::now();
    if rank < half {
        send(&deck, rank + half, start + whole)?;
        if rank == 0 {
            report(&gate, half)?;
        }
    } else {
        let taken = take(&inbox, start, whole, rank == half)?;
        let values = [u64::from(rank - half), taken[0], taken[1]];
        first.send(&values)?;
    }
    deck.finish()?;
    Ok(())
}

fn send(deck: &Deck, to: u32, until: Instant) -> Result<()> {
    let address = deck.fetch(&format!("in {to}"))?;
    let bytes = vec![7_u8; LONG];
    while Instant::now() < until {
        address.send(&bytes[..])?;
    }
    address.send(&[0_u8][..])?;
    Ok(())
}

/// Takes all, until the short one at the end: how many bytes came while the first did not read, and after that.
fn take(inbox: &Mailbox, start: Instant, whole: Duration, is_first: bool) -> Result<[u64; 2]> {
    let mut memory = vec![0_u8; LONG];
    let (stops, reads) = (whole / 4, whole * 3 / 4);
    let mut taken = [0, 0];
    loop {
        let at = start.elapsed();
        if is_first && (stops..reads).contains(&at) {
            std::thread::sleep(reads - at);
        }
        let mut message = inbox.retrieve()?;
        let length = message.next_len().unwrap_or(0);
        message.unpack_express_into(&mut memory[..length])?;
        message.finish()?;
        if length < LONG {
            return Ok(taken);
        }
        let at = start.elapsed();
        // A moment until the others have taken over what the first one leaves.
        let settled = stops + whole / 8;
        if (settled..reads).contains(&at) {
            taken[0] += LONG as u64;
        } else if (reads..whole).contains(&at) {
            taken[1] += LONG as u64;
        }
    }
}

fn report(inbox: &Mailbox, flows: u32) -> Result<()> {
    let mut all = Vec::new();
    for _ in 0..flows {
        all.push(inbox.receive::<[u64; 3]>()?);
    }
    all.sort_unstable();
    let others = &all[1..];
    let mean = others.iter().map(|flow| flow[1]).sum::<u64>() as f64 / others.len() as f64;
    let shares: Vec<f64> = others.iter().map(|flow| flow[1] as f64 / mean).collect();
    let least = shares.iter().copied().fold(f64::INFINITY, f64::min);
    let texts: Vec<String> = shares.iter().map(|share| format!("{share:.2}")).collect();
    println!(
        "{} flows while one was not read: {} of their share; {:.0} MB each; the one that was not read: {:.0} MB meanwhile, {:.0} MB when it was read again",
        others.len(),
        texts.join(", "),
        mean / 1e6,
        all[0][1] as f64 / 1e6,
        all[0][2] as f64 / 1e6
    );
    ensure!(all[0][2] > 0, "the flow that was not read did not go on");
    ensure!(least >= 0.9, "one had {least:.2} of its share");
    Ok(())
}
