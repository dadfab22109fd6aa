//! Sends many messages of all kinds and sizes and checks each: none lost, doubled, out of order or torn.
//!
//! `integrity heap MESSAGES` runs ranks as threads; `mizzen run -n 4 -- integrity job MESSAGES` as processes. Rank 0
//! receives; each other rank has two sending threads, one with a `Sender`, one that posts.

use std::time::Instant;

use anyhow::{Context, bail, ensure};
use fastrand::Rng;
use mizzen::{Deck, Incoming, MailboxRef, Message, Sender};
use mizzen_checks::{checksum, peak_memory_mib};

/// Random bytes that payloads are cut from.
const POOL: usize = 4 << 20;
/// The longest message.
const LONGEST: usize = 1 << 20;
/// Bytes of the number and the checksum in front of each payload.
const HEADER: usize = 16;
/// Sending threads of each sending rank.
const THREADS: u64 = 2;

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mode = arguments
        .next()
        .context("usage: integrity heap|job MESSAGES")?;
    let messages: u64 = arguments.next().context("how many messages?")?.parse()?;
    match mode.as_str() {
        "heap" => {
            let run = |deck: Deck| {
                play(&deck, messages).map_err(|error| mizzen::Error::Program(error.into()))
            };
            mizzen::local(4, run)?;
        }
        "job" => play(&Deck::join()?, messages)?,
        other => bail!("{other:?} is neither heap nor job"),
    }
    Ok(())
}

fn play(deck: &Deck, messages: u64) -> anyhow::Result<()> {
    ensure!(deck.size() >= 2, "integrity needs at least two ranks");
    let pool = pool();
    let senders = u64::from(deck.size() - 1) * THREADS;
    let each = messages / senders;
    if deck.rank() == 0 {
        return receive(deck, &pool, senders, each);
    }
    std::thread::scope(|threads| {
        let running: Vec<_> = (0..THREADS)
            .map(|thread| {
                let pool = &pool;
                threads.spawn(move || {
                    send(
                        deck,
                        pool,
                        u64::from(deck.rank().0 - 1) * THREADS + thread,
                        each,
                    )
                })
            })
            .collect();
        running
            .into_iter()
            .try_for_each(|thread| thread.join().expect("senders do not panic"))
    })
}

/// How a sender and the receiver both know what message `number` of `sender` is.
struct Plan {
    len: usize,
    start: usize,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Whole,
    Pieces,
    Lent,
}

impl Plan {
    fn new(random: &mut Rng) -> Self {
        let (len, kind) = if random.bool() {
            (random.usize(..=56 - HEADER), Kind::Whole)
        } else {
            // From 57 bytes to 1 MiB, so that the mean over all messages is about 4 KiB.
            let len =
                (57.0 * ((LONGEST as f64 / 57.0).ln() * random.f64().powi(15)).exp()) as usize;
            let kind = match random.u8(..8) {
                0 => Kind::Lent,
                1..4 => Kind::Pieces,
                _ => Kind::Whole,
            };
            (len.min(LONGEST) - HEADER, kind)
        };
        Self {
            len,
            start: random.usize(..POOL - LONGEST),
            kind,
        }
    }
}

fn pool() -> Vec<u8> {
    let mut bytes = vec![0; POOL];
    Rng::with_seed(42).fill(&mut bytes);
    bytes
}

/// Either way of sending.
enum Way {
    Lane(Sender),
    Post(MailboxRef),
}

impl Way {
    fn post(&mut self, message: &mut Message<'_>) -> mizzen::Result<()> {
        match self {
            Self::Lane(sender) => sender.post(message),
            Self::Post(address) => address.post(message),
        }
    }
}

fn send(deck: &Deck, pool: &[u8], sender: u64, each: u64) -> anyhow::Result<()> {
    let address = deck.fetch("integrity")?;
    let mut way = if sender % 2 == 0 {
        Way::Lane(address.sender()?)
    } else {
        Way::Post(address)
    };
    let mut random = Rng::with_seed(sender);
    let mut whole = Vec::with_capacity(LONGEST);
    for number in 0..each {
        let plan = Plan::new(&mut random);
        let payload = &pool[plan.start..plan.start + plan.len];
        let name = sender << 40 | number;
        let header = [name, checksum(payload, name)];
        let mut message = Message::new();
        match plan.kind {
            Kind::Whole => {
                whole.clear();
                whole.extend(header.iter().flat_map(|word| word.to_ne_bytes()));
                whole.extend_from_slice(payload);
                message.pack_cheaper(&whole[..]);
            }
            Kind::Pieces => {
                message.pack_safer(&header).pack_cheaper(payload);
            }
            Kind::Lent => {
                let mut lent = deck.lend::<u8>(plan.len)?;
                lent.copy_from_slice(payload);
                message.pack_safer(&header).pack_lent(lent);
            }
        }
        way.post(&mut message)?;
    }
    Ok(())
}

fn receive(deck: &Deck, pool: &[u8], senders: u64, each: u64) -> anyhow::Result<()> {
    let inbox = deck.mailbox()?;
    deck.bind("integrity", &inbox)?;
    let mut plans: Vec<_> = (0..senders).map(Rng::with_seed).collect();
    let mut next = vec![0u64; senders as usize];
    let mut scratch = vec![0; LONGEST];
    let (mut bytes, mut short) = (0u64, 0u64);
    let started = Instant::now();
    for _ in 0..senders * each {
        let (header, len) = take(inbox.retrieve()?, &mut scratch)?;
        let (sender, number) = (header[0] >> 40, header[0] & ((1 << 40) - 1));
        let expected = next
            .get_mut(sender as usize)
            .context("a sender that does not exist")?;
        ensure!(
            number == *expected,
            "sender {sender}: message {number} came, {expected} was next"
        );
        *expected += 1;
        let plan = Plan::new(&mut plans[sender as usize]);
        ensure!(
            len == plan.len,
            "sender {sender}: message {number} has {len} bytes, not {}",
            plan.len
        );
        ensure!(
            header[1] == checksum(&scratch[..len], header[0]),
            "sender {sender}: message {number} is torn"
        );
        debug_assert_eq!(&scratch[..len], &pool[plan.start..plan.start + len]);
        bytes += (len + HEADER) as u64;
        short += u64::from(len + HEADER <= 56);
    }
    let extra = inbox.retrieve_timeout(std::time::Duration::from_millis(200));
    ensure!(
        matches!(
            extra,
            Err(mizzen::Error::Retrieve(
                mizzen::RetrieveError::TimedOut { .. }
            ))
        ),
        "a message too many came: {extra:?}"
    );
    let seconds = started.elapsed().as_secs_f64() - 0.2;
    println!(
        "integrity: {} messages of {senders} senders, {short} at most 56 B, mean {} B: 0 lost, 0 doubled, 0 out of order, \
         0 torn; {:.2} million/s, {:.2} GB/s; peak memory of the receiver {} MiB",
        senders * each,
        bytes / (senders * each),
        (senders * each) as f64 / seconds / 1e6,
        bytes as f64 / seconds / 1e9,
        peak_memory_mib(),
    );
    Ok(())
}

/// Takes a message of any of the three kinds apart: its header, and how many bytes of payload are in `scratch`.
fn take(mut incoming: Incoming<'_>, scratch: &mut [u8]) -> anyhow::Result<([u64; 2], usize)> {
    if incoming.pieces_left() == 1 {
        let whole = incoming.next_len().context("a message without pieces")?;
        ensure!(
            (HEADER..=LONGEST).contains(&whole),
            "a message of {whole} bytes"
        );
        incoming.unpack_express_into(&mut scratch[..whole])?;
        let word =
            |at: usize| u64::from_ne_bytes(scratch[at..at + 8].try_into().expect("eight bytes"));
        let header = [word(0), word(8)];
        scratch.copy_within(HEADER..whole, 0);
        return Ok((header, whole - HEADER));
    }
    let header = incoming.unpack_express::<[u64; 2]>()?;
    if let Ok(lent) = incoming.unpack_lent::<u8>() {
        scratch[..lent.len()].copy_from_slice(&lent);
        return Ok((header, lent.len()));
    }
    let len = incoming
        .next_len()
        .context("a message of one piece too few")?;
    ensure!(len <= LONGEST, "a piece of {len} bytes");
    incoming.unpack_express_into(&mut scratch[..len])?;
    Ok((header, len))
}
