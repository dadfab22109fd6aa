//! What a long way carries: `distance SECONDS [PARTS]`, on four ranks of two sites: 0 and 2 on one, 1 and 3 on the other. If ranks are dealt differently, PARTS says
//! which of these each rank is: `0213` if the first two are on one site.
//!
//! Rank 2 measures the round trip of 8 bytes with rank 3, alone; then rank 0 sends messages of 64 MiB to rank 1 for so many seconds, two at a time so that the
//! next is announced while one is on its way, and rank 2 goes on measuring. What the first seconds bring does not count: everybody has to find out how long
//! the way is.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use mizzen::{Deck, Mailbox, MailboxRef};

/// The long message, and how many are under way at a time.
const LONG: usize = 64 << 20;
const LANES: usize = 2;
/// What is said before each.
const MORE: u8 = 1;
/// What is said in the end.
const OVER: u8 = 0;
/// How long everybody has to find its pace.
const BEGIN: Duration = Duration::from_secs(4);
/// Round trips while nothing else is on the way.
const QUIET: usize = 20;

fn main() -> Result<()> {
    let seconds = std::env::args().nth(1).context("distance SECONDS")?;
    let length = Duration::from_secs(seconds.parse()?);
    ensure!(
        length > BEGIN,
        "the first {BEGIN:?} do not count: take longer"
    );
    let deck = Deck::join()?;
    ensure!(deck.size() == 4, "two ranks at each of two sites");
    let parts = std::env::args().nth(2).unwrap_or_else(|| "0123".into());
    let part = parts.chars().nth(deck.rank().0 as usize);
    match part.and_then(|part| part.to_digit(4)).context("PARTS")? {
        0 => send(&deck, length)?,
        1 => receive(&deck)?,
        2 => ask(&deck, length)?,
        _ => answer(&deck)?,
    }
    deck.finish()?;
    Ok(())
}

fn lane(deck: &Deck, lane: usize) -> Result<MailboxRef> {
    Ok(deck.fetch(&format!("lane {lane}"))?)
}

/// Rank 0: long messages, until the time is over.
fn send(deck: &Deck, length: Duration) -> Result<()> {
    let start = deck.mailbox()?;
    deck.bind("start", &start)?;
    let lanes = (0..LANES).map(|number| lane(deck, number));
    let lanes: Vec<MailboxRef> = lanes.collect::<Result<_>>()?;
    let memory = vec![1_u8; LONG];
    start.receive::<u8>()?;
    let began = Instant::now();
    std::thread::scope(|threads| {
        let all: Vec<_> = lanes
            .iter()
            .map(|lane| {
                let memory = &memory;
                threads.spawn(move || -> Result<()> {
                    while began.elapsed() < length {
                        lane.send(&MORE)?;
                        lane.send(&memory[..])?;
                    }
                    lane.send(&OVER)?;
                    Ok(())
                })
            })
            .collect();
        all.into_iter()
            .try_for_each(|thread| thread.join().expect("a thread that ends"))
    })
}

/// Rank 1: takes them, and says how fast they came.
fn receive(deck: &Deck) -> Result<()> {
    let mut inboxes = Vec::new();
    for number in 0..LANES {
        let inbox = deck.mailbox()?;
        deck.bind(&format!("lane {number}"), &inbox)?;
        inboxes.push(inbox);
    }
    let rates: Vec<f64> = std::thread::scope(|threads| {
        let all: Vec<_> = inboxes
            .iter_mut()
            .map(|inbox| threads.spawn(move || take(inbox)))
            .collect();
        all.into_iter()
            .map(|thread| thread.join().expect("a thread that ends"))
            .collect::<Result<_>>()
    })?;
    println!("rate {:.0}", rates.iter().sum::<f64>() / 1e6);
    Ok(())
}

/// Bits a second of one lane, between two messages.
fn take(inbox: &mut Mailbox) -> Result<f64> {
    let mut memory = vec![0_u8; LONG];
    let mut began: Option<Instant> = None;
    let mut came: Vec<Instant> = Vec::new();
    while inbox.receive::<u8>()? != OVER {
        let mut message = inbox.retrieve()?;
        message.unpack_express_into(&mut memory[..])?;
        message.finish()?;
        let now = Instant::now();
        let began = *began.get_or_insert(now);
        if now - began >= BEGIN {
            came.push(now);
        }
    }
    let (first, last) = came
        .first()
        .zip(came.last())
        .context("no time to measure")?;
    ensure!(
        came.len() > 2,
        "too few messages came to measure: take longer"
    );
    let bits = (came.len() - 1) * LONG * 8;
    Ok(bits as f64 / (*last - *first).as_secs_f64())
}

/// Rank 2: the round trip of 8 bytes, alone and beside the long messages.
fn ask(deck: &Deck, length: Duration) -> Result<()> {
    let mut inbox = deck.mailbox()?;
    deck.bind("asker", &inbox)?;
    let other = deck.fetch("answerer")?;
    let mut quiet = Vec::new();
    for _ in 0..QUIET {
        quiet.push(round_trip(&other, &mut inbox)?);
    }
    deck.fetch("start")?.send(&0_u8)?;
    let began = Instant::now();
    let mut busy = Vec::new();
    while began.elapsed() < length {
        let took = round_trip(&other, &mut inbox)?;
        if began.elapsed() > BEGIN {
            busy.push(took);
        }
    }
    other.send(&0_u64)?;
    for (name, times) in [("quiet", &mut quiet), ("busy", &mut busy)] {
        times.sort_unstable();
        let at = |part: usize| times[(times.len() - 1) * part / 10].as_secs_f64() * 1e3;
        println!("{name} {:.2} {:.2}", at(5), at(9));
    }
    Ok(())
}

fn round_trip(other: &MailboxRef, inbox: &mut Mailbox) -> Result<Duration> {
    let start = Instant::now();
    other.send(&1_u64)?;
    inbox.receive::<u64>()?;
    Ok(start.elapsed())
}

/// Rank 3.
fn answer(deck: &Deck) -> Result<()> {
    let inbox = deck.mailbox()?;
    deck.bind("answerer", &inbox)?;
    let other = deck.fetch("asker")?;
    while inbox.receive::<u64>()? != 0 {
        other.send(&1_u64)?;
    }
    Ok(())
}
