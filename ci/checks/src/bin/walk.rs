//! Sends and receives many messages, so that what one of them walks through can be counted: `walk PLACE WAY BYTES ROUNDS`,
//! run by `ci/walks`. It uses the public API only, so that one version of it measures many versions of the library.
//!
//! PLACE is where the two ends are: `memory` (both in one thread), `threads` (two threads of a process), `tcp` (two ranks joined
//! by TCP; one thread drives both for short messages, and two for long ones, which a receiver must take meanwhile). WAY is
//! `sender`, `post`, or a call, in `memory` or over `tcp`: `call` of no arguments and no result (BYTES is then 0), `raw` of as many bytes that
//! come back, `lend` of a buffer of as many bytes, for which another comes back.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender as Hand, channel};

use anyhow::{Context, bail, ensure};
use mizzen::{Borrowed, Client, Deck, Mailbox, MailboxRef, Message, Request, Sender, Service};

const USAGE: &str = "usage: walk memory|threads|tcp sender|post|call|raw|lend BYTES ROUNDS";

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [place, way, bytes, rounds] = &arguments[..] else {
        bail!(USAGE);
    };
    let (bytes, rounds) = (bytes.parse::<usize>()?, rounds.parse()?);
    ensure!(way == "call" || bytes >= SHORT, USAGE);
    match (&place[..], &way[..]) {
        ("memory", "call" | "raw" | "lend") => {
            let deck = Deck::join()?;
            call(way, &deck, &deck, bytes, rounds)
        }
        ("tcp", "call" | "raw" | "lend") => {
            over_tcp(|[here, there], _, _| call(way, &here, &there, bytes, rounds))
        }
        ("memory", _) => {
            let inbox = Deck::join()?.mailbox()?;
            let ways = Ways::new(&inbox.address(), way)?;
            walk(ways, &inbox, bytes, rounds)
        }
        ("threads", _) => {
            ensure!(
                bytes > SHORT,
                "a short message goes the same way in `memory`"
            );
            let inbox = Deck::join()?.mailbox()?;
            let ways = Ways::new(&inbox.address(), way)?;
            walk_between_threads(ways, inbox, bytes, rounds)
        }
        ("tcp", _) => over_tcp(|_, inbox, address| {
            let ways = Ways::new(&address, way)?;
            if bytes <= SHORT {
                return walk(ways, &inbox, bytes, rounds);
            }
            walk_between_threads(ways, inbox, bytes, rounds)
        }),
        _ => bail!(USAGE),
    }
}

/// Bytes of the short message.
const SHORT: usize = size_of::<u64>();

/// How to send.
enum Ways {
    Sender(Sender),
    Post(MailboxRef),
}

impl Ways {
    fn new(address: &MailboxRef, way: &str) -> anyhow::Result<Self> {
        match way {
            "sender" => Ok(Self::Sender(address.sender()?)),
            "post" => Ok(Self::Post(address.clone())),
            _ => bail!(USAGE),
        }
    }

    fn send_bytes(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        match self {
            Self::Sender(sender) => sender.send(bytes)?,
            Self::Post(address) => address.send(bytes)?,
        }
        Ok(())
    }
}

/// One thread sends and receives.
fn walk(ways: Ways, inbox: &Mailbox, bytes: usize, rounds: u64) -> anyhow::Result<()> {
    match ways {
        ways if bytes > SHORT => walk_long(ways, inbox, bytes, rounds),
        Ways::Sender(mut sender) => walk_short(|word| sender.send(word), inbox, rounds),
        Ways::Post(address) => walk_short(|word| address.send(word), inbox, rounds),
    }
}

fn walk_short(
    mut send: impl FnMut(&u64) -> mizzen::Result<()>,
    inbox: &Mailbox,
    rounds: u64,
) -> anyhow::Result<()> {
    for round in 0..rounds {
        send(&round)?;
        ensure!(inbox.receive::<u64>()? == round, WRONG);
    }
    Ok(())
}

fn walk_long(mut ways: Ways, inbox: &Mailbox, bytes: usize, rounds: u64) -> anyhow::Result<()> {
    let (mut sent, mut received) = (vec![0; bytes], vec![0; bytes]);
    for round in 0..rounds {
        sign(&mut sent, round);
        ways.send_bytes(&sent)?;
        receive(inbox, &mut received)?;
        ensure!(is_signed(&received, round), WRONG);
    }
    Ok(())
}

/// One thread sends, another receives. The next message is sent when the last was received: told by a plain store, which adds
/// nothing to what is counted.
fn walk_between_threads(
    mut ways: Ways,
    inbox: Mailbox,
    bytes: usize,
    rounds: u64,
) -> anyhow::Result<()> {
    let done = &AtomicU64::new(0);
    std::thread::scope(|threads| {
        let receiver = threads.spawn(move || -> anyhow::Result<()> {
            let mut received = vec![0; bytes];
            for round in 0..rounds {
                receive(&inbox, &mut received)?;
                ensure!(is_signed(&received, round), WRONG);
                done.store(round + 1, Ordering::Release);
            }
            Ok(())
        });
        let mut sent = vec![0; bytes];
        for round in 0..rounds {
            sign(&mut sent, round);
            ways.send_bytes(&sent)?;
            while done.load(Ordering::Acquire) <= round && !receiver.is_finished() {
                core::hint::spin_loop();
            }
        }
        receiver.join().expect("it does not panic")
    })
}

fn receive(inbox: &Mailbox, into: &mut [u8]) -> anyhow::Result<()> {
    let mut incoming = inbox.retrieve()?;
    incoming.unpack_cheaper(into)?;
    incoming.finish()?;
    Ok(())
}

/// Marks the ends of a message, which costs the same for every length.
fn sign(bytes: &mut [u8], round: u64) {
    bytes[..8].copy_from_slice(&round.to_le_bytes());
    let end = bytes.len() - 8;
    bytes[end..].copy_from_slice(&round.to_le_bytes());
}

fn is_signed(bytes: &[u8], round: u64) -> bool {
    bytes.starts_with(&round.to_le_bytes()) && bytes.ends_with(&round.to_le_bytes())
}

const WRONG: &str = "what was sent is not what was received";

/// Calls a service at `there`.
fn call(way: &str, here: &Deck, there: &Deck, bytes: usize, rounds: u64) -> anyhow::Result<()> {
    match way {
        "raw" => call_raw(here, there, bytes, rounds),
        "lend" => call_lending(here, there, bytes, rounds),
        _ => call_empty(here, there, rounds),
    }
}

fn call_empty(here: &Deck, there: &Deck, rounds: u64) -> anyhow::Result<()> {
    let _service: Service = there.serve(SERVICE, |()| ())?;
    let mut client: Client<(), ()> = here.client(SERVICE)?;
    for _ in 0..rounds {
        client.call(&())?;
    }
    Ok(())
}

fn call_raw(here: &Deck, there: &Deck, bytes: usize, rounds: u64) -> anyhow::Result<()> {
    let echo = move |request: Request| {
        let (mut incoming, reply) = request.open();
        let mut body = vec![0u8; bytes];
        let unpacked = incoming.unpack_cheaper(&mut body[..]).map(drop);
        if unpacked.and_then(|()| incoming.finish()).is_ok() {
            reply.send(Message::new().pack_cheaper(&body[..]));
        }
    };
    let _service = there.serve_raw(SERVICE, echo)?;
    let mut client = here.raw_client(SERVICE)?;
    let (mut sent, mut received) = (vec![0; bytes], vec![0; bytes]);
    for round in 0..rounds {
        sign(&mut sent, round);
        let mut answer = client.call(Message::new().pack_cheaper(&sent[..]))?;
        answer.unpack_cheaper(&mut received[..])?;
        answer.finish()?;
        ensure!(is_signed(&received, round), WRONG);
    }
    Ok(())
}

fn call_lending(here: &Deck, there: &Deck, bytes: usize, rounds: u64) -> anyhow::Result<()> {
    let lender = there.clone();
    let answer = move |(): (), given: Borrowed<u8>| {
        let mut own = lender.lend_unzeroed::<u8>(given.len()).ok();
        if let Some(own) = &mut own {
            own[0] = given[0];
        }
        ((), own)
    };
    let _service = there.serve_lent(SERVICE, answer)?;
    let mut client: Client<(), ()> = here.client(SERVICE)?;
    for round in 0..rounds {
        let mut buffer = here.lend_unzeroed::<u8>(bytes)?;
        buffer[0] = round as u8;
        let ((), answer) = client.call_lent::<u8>(&(), buffer)?;
        let answer = answer.context("the service could not lend a buffer")?;
        ensure!(answer[0] == round as u8, WRONG);
    }
    Ok(())
}

const SERVICE: &str = "service";

/// Has one thread drive both ends of a connection: gives it the two decks, a mailbox of the second, and how the first sees it.
fn over_tcp(
    body: impl Fn([Deck; 2], Mailbox, MailboxRef) -> anyhow::Result<()> + Sync,
) -> anyhow::Result<()> {
    let (hand, taken) = channel();
    let (hand, taken) = (Mutex::new(Some(hand)), Mutex::new(taken));
    let outcomes = mizzen::local_trusted(2, |deck| {
        if deck.rank() == 1 {
            let hand = hand.lock().ok().and_then(|mut hand| hand.take());
            return Ok(give(hand, deck));
        }
        let Ok((there, inbox)) = taken.lock().expect("nobody panicked with it").recv() else {
            return Ok(Err(anyhow::anyhow!("the other rank failed")));
        };
        let address = deck.fetch("inbox")?;
        Ok(body([deck, there], inbox, address))
    })?;
    // The second rank's first: if it failed, the first only says so.
    outcomes.into_iter().rev().collect()
}

fn give(hand: Option<Hand<(Deck, Mailbox)>>, deck: Deck) -> anyhow::Result<()> {
    let inbox = deck.mailbox()?;
    deck.bind("inbox", &inbox)?;
    let hand = hand.context("a rank runs once")?;
    ensure!(hand.send((deck, inbox)).is_ok(), "the other rank failed");
    Ok(())
}
