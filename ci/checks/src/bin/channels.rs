//! Every member of a channel sends every other one messages of several lengths, each checked: `channels MESSAGES [CHANNEL …]`, on the channels that are named, or
//! on all that a process is on. The program is the same whatever networks there are.

use anyhow::{Context, Result, ensure};
use mizzen::{Channel, Deck, Mailbox, Rank};

/// Short ones, of one frame, pushed, and offered.
const LENGTHS: [usize; 4] = [8, 5_000, 300_000, 3_000_000];

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let messages: u64 = arguments.next().context("how many messages?")?.parse()?;
    let deck = Deck::join()?;
    let asked: Vec<String> = arguments.collect();
    let mut own = deck.channels();
    own.retain(|name| asked.is_empty() || asked.contains(name));
    let mut came = 0;
    for name in &own {
        let channel = deck.channel(name)?;
        came += exchange(&deck, &channel, messages).with_context(|| format!("on {name}"))?;
    }
    let (rank, host) = (deck.rank(), deck.host());
    println!(
        "rank {rank} on {host}: {came} messages came whole and in order on {}",
        own.join(", ")
    );
    deck.finish()?;
    Ok(())
}

/// How many messages came to this member.
fn exchange(deck: &Deck, channel: &Channel, messages: u64) -> Result<u64> {
    let name = |rank: Rank| format!("{} of {rank}", channel.name());
    let me = deck.rank();
    ensure!(
        channel.contains(me),
        "a channel that it is on has it as a member"
    );
    let inbox = channel.mailbox()?;
    deck.bind(&name(me), &inbox)?;
    let others: Vec<Rank> = channel.members().filter(|rank| *rank != me).collect();
    let mut senders = Vec::new();
    for rank in &others {
        senders.push(deck.fetch(&name(*rank))?.sender()?);
    }
    for number in 0..messages {
        for sender in &mut senders {
            sender.send(&contents(me, number)[..])?;
        }
        take(&inbox, number, &others)?;
    }
    Ok(messages * others.len() as u64)
}

/// Takes the next message of each of the others.
fn take(inbox: &Mailbox, number: u64, others: &[Rank]) -> Result<()> {
    for rank in others {
        let came = inbox.retrieve_from(*rank)?.unpack_vec::<u8>()?;
        ensure!(
            came == contents(*rank, number),
            "message {number} of rank {rank} is lost, out of order or torn"
        );
    }
    Ok(())
}

/// What a rank's message with this number holds.
fn contents(rank: Rank, number: u64) -> Vec<u8> {
    let length = LENGTHS[number as usize % LENGTHS.len()];
    let seed = number.wrapping_mul(31).wrapping_add(u64::from(rank.0));
    (0..length as u64)
        .map(|at| (at.wrapping_mul(7) ^ seed) as u8)
        .collect()
}
