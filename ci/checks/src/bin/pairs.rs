//! What a pair of processes on one host costs.
//!
//! `pairs all MIB DESCRIPTORS SECONDS`: all ranks send a short message to all others, and then again. Shared memory of all ranks
//! together, descriptors of each, and the time of the first exchange are printed, and must not be more than this.
//! `pairs idle`: what the round trip between two ranks takes while they know nobody else, and when they are linked to all others,
//! which are idle. It is printed only: on a machine that does much else, it says little.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use mizzen::{Deck, Mailbox, MailboxRef};

fn main() -> Result<()> {
    let options: Vec<String> = std::env::args().skip(1).collect();
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let deck = Deck::join()?;
    let outcome = match options[..] {
        ["all", memory, descriptors, seconds] => Bounds::parse(memory, descriptors, seconds)
            .and_then(|bounds| all_to_all(&deck, &bounds)),
        ["idle"] => idle(&deck),
        _ => bail!("pairs all MIB DESCRIPTORS SECONDS | idle"),
    };
    if let Err(error) = outcome {
        // Who leaves in order waits for others, which may wait for us.
        eprintln!("pairs: {error:#}");
        std::process::exit(1);
    }
    Ok(deck.finish()?)
}

/// What all ranks together and each of them may cost.
struct Bounds {
    memory: u64,
    descriptors: u64,
    first: Duration,
}

impl Bounds {
    fn parse(memory: &str, descriptors: &str, seconds: &str) -> Result<Self> {
        Ok(Self {
            memory: memory.parse::<u64>()? << 20,
            descriptors: descriptors.parse()?,
            first: Duration::try_from_secs_f64(seconds.parse()?)?,
        })
    }
}

/// Mailboxes of a rank: what rank 0 tells it, and what all send to all.
type Member = (u32, MailboxRef, MailboxRef);

fn all_to_all(deck: &Deck, bounds: &Bounds) -> Result<()> {
    let (orders, inbox) = (deck.mailbox()?, deck.mailbox()?);
    if deck.rank() != 0 {
        let gate = deck.fetch("gate")?;
        let member: Member = (deck.rank().0, orders.address(), inbox.address());
        gate.send_value(&member)?;
        let inboxes: Vec<MailboxRef> = orders.receive_value()?;
        for _ in 0..2 {
            exchange(deck, &inboxes, &inbox)?;
            gate.send_value(&0u64)?;
            orders.receive::<u8>()?;
        }
        gate.send_value(&(descriptors()?, shared_memory()?))?;
        // Nobody leaves before all have counted.
        orders.receive::<u8>()?;
        return Ok(());
    }
    let gate = deck.mailbox()?;
    deck.bind("gate", &gate)?;
    let mut members: Vec<Member> = vec![(0, orders.address(), inbox.address())];
    for _ in deck.others() {
        members.push(gate.receive_value()?);
    }
    members.sort_by_key(|(rank, ..)| *rank);
    let orders: Vec<MailboxRef> = members[1..].iter().map(|(_, to, _)| to.clone()).collect();
    let inboxes: Vec<MailboxRef> = members.into_iter().map(|(_, _, inbox)| inbox).collect();
    let mut began = Instant::now();
    for order in &orders {
        order.send_value(&inboxes)?;
    }
    let mut took = Vec::new();
    for _ in 0..2 {
        exchange(deck, &inboxes, &inbox)?;
        for _ in &orders {
            gate.receive_value::<u64>()?;
        }
        took.push(began.elapsed());
        began = Instant::now();
        orders.iter().try_for_each(|order| order.send(&0u8))?;
    }
    let (mut most, mut memory) = (descriptors()?, shared_memory()?);
    for _ in &orders {
        let (descriptors, shared): (u64, u64) = gate.receive_value()?;
        most = most.max(descriptors);
        memory += shared;
    }
    orders.iter().try_for_each(|order| order.send(&0u8))?;
    let ranks = u64::from(deck.size());
    println!(
        "{ranks} ranks, all to all: {:.1} MiB of shared memory in all, {:.1} KiB for a pair; at most {most} descriptors of a \
         rank; first exchange {:.2} s, the next {:.1} ms",
        memory as f64 / f64::from(1 << 20),
        memory as f64 / 1024.0 / (ranks * (ranks - 1) / 2).max(1) as f64,
        took[0].as_secs_f64(),
        took[1].as_secs_f64() * 1e3,
    );
    ensure!(memory <= bounds.memory, "more shared memory than allowed");
    ensure!(
        most <= bounds.descriptors,
        "more descriptors than the {} allowed",
        bounds.descriptors
    );
    ensure!(took[0] <= bounds.first, "the first exchange took too long");
    Ok(())
}

/// Sends to all others, and hears all of them. Each begins behind its own rank, so that not all want the same one first.
fn exchange(deck: &Deck, inboxes: &[MailboxRef], inbox: &Mailbox) -> Result<()> {
    let me = deck.rank().0 as usize;
    let (before, after) = inboxes.split_at(me);
    for other in after[1..].iter().chain(before) {
        other.send(&(me as u64))?;
    }
    for _ in 1..inboxes.len() {
        inbox.receive::<u64>()?;
    }
    Ok(())
}

/// Descriptors that this process has open.
fn descriptors() -> Result<u64> {
    // One of them is that of the folder itself.
    Ok(std::fs::read_dir("/proc/self/fd")?.count() as u64 - 1)
}

/// Bytes of shared memory that this process has mapped and that exist, each divided by how many have it mapped: the sum over
/// all processes counts every page once. Who makes memory maps it, so no page is missing.
fn shared_memory() -> Result<u64> {
    let rollup = std::fs::read_to_string("/proc/self/smaps_rollup")?;
    let line = rollup.lines().find(|line| line.starts_with("Pss_Shmem:"));
    let number = line.and_then(|line| line.split_whitespace().nth(1));
    let number = number.context("the kernel does not tell shared memory")?;
    Ok(number.parse::<u64>()? << 10)
}

/// Round trips of which the middle one is taken.
const ROUNDS: usize = 2001;
/// How often each is measured.
const TURNS: usize = 15;

/// Ranks 0 and 1 exchange messages. Rank 2 hears when the others are there, so that neither of the two knows them before they
/// have measured.
fn idle(deck: &Deck) -> Result<()> {
    let inbox = deck.mailbox()?;
    let own = inbox.address();
    match deck.rank().0 {
        0 => {
            let gate = deck.mailbox()?;
            deck.bind("zero", &gate)?;
            let echo: MailboxRef = gate.receive_value()?;
            echo.send_value(&own)?;
            // All others have started, and wait.
            let others: Vec<MailboxRef> = gate.receive_value()?;
            let alone = Times::measure(&echo, &own, &inbox)?;
            // Now there is a link to each of them, and from it, and they sleep.
            for other in &others {
                other.send_value(&(gate.address(), echo.clone()))?;
            }
            for _ in &others {
                gate.receive::<u8>()?;
            }
            let among = Times::measure(&echo, &own, &inbox)?;
            let cost = |one: f64, other: f64| (other / one - 1.0) * 100.0;
            let (one, two) = (
                cost(alone.one, among.one),
                cost(alone.in_turn, among.in_turn),
            );
            println!(
                "beside {} idle pairs: a round trip {:.0} ns instead of {:.0} ({one:+.1} %); with two that are active in turn \
                 {:.0} ns instead of {:.0} ({two:+.1} %)",
                others.len(),
                among.one,
                alone.one,
                among.in_turn,
                alone.in_turn
            );
            echo.send(&u64::MAX)?;
            others.iter().try_for_each(|other| other.send(&0u8))?;
        }
        1 => {
            deck.fetch("zero")?.send_value(&own)?;
            let back: MailboxRef = inbox.receive_value()?;
            loop {
                let mut message = inbox.retrieve()?;
                if message.source().0 != 0 {
                    continue;
                }
                let number = message.unpack_express::<u64>()?;
                if number == u64::MAX {
                    break;
                }
                back.send(&number)?;
            }
        }
        2 => {
            deck.bind("registrar", &inbox)?;
            let count = deck.size() as usize - 3;
            let others: Vec<MailboxRef> = (0..count)
                .map(|_| inbox.receive_value())
                .collect::<mizzen::Result<_>>()?;
            deck.fetch("zero")?.send_value(&others)?;
        }
        _ => {
            let registrar = deck.fetch_timeout("registrar", Duration::from_secs(120))?;
            registrar.send_value(&own)?;
            let (zero, one): (MailboxRef, MailboxRef) = inbox.receive_value()?;
            one.send(&0u64)?;
            zero.send(&0u8)?;
            inbox.receive::<u8>()?;
        }
    }
    Ok(())
}

/// Nanoseconds of a round trip, and of one with a message to ourselves before it, so that messages come from two places in turn.
struct Times {
    one: f64,
    in_turn: f64,
}

impl Times {
    fn measure(echo: &MailboxRef, own: &MailboxRef, inbox: &Mailbox) -> Result<Self> {
        Ok(Self {
            one: best_middle(|number| {
                echo.send(&number)?;
                inbox.receive::<u64>()
            })?,
            in_turn: best_middle(|number| {
                own.send(&number)?;
                inbox.receive::<u64>()?;
                echo.send(&number)?;
                inbox.receive::<u64>()
            })?,
        })
    }
}

/// The best of the middles of several turns, which is what a busy machine disturbs least.
fn best_middle(mut act: impl FnMut(u64) -> mizzen::Result<u64>) -> Result<f64> {
    let mut best = f64::INFINITY;
    for _ in 0..TURNS {
        let mut times = Vec::with_capacity(ROUNDS);
        for number in 0..ROUNDS as u64 {
            let began = Instant::now();
            ensure!(act(number)? == number, "an answer is missing");
            times.push(began.elapsed().as_nanos() as f64);
        }
        times.sort_by(f64::total_cmp);
        best = best.min(times[ROUNDS / 2]);
    }
    Ok(best)
}
