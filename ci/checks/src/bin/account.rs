//! What a sender is told of messages that were not taken, beside what their receiver really got before its host was lost.
//!
//! `mizzen run --hosts h1,h2,h3 -n 3 --on-death continue -- account FILE`. Rank 0 posts to rank 1 until that is lost; rank 2 only
//! hears of it. FILE holds what survives rank 1: how many messages it got, and which process it was.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use fastrand::Rng;
use mizzen::{Deck, Error, FlushError, MailboxRef, PostError, RetrieveError};
use mizzen_checks::Mapped;

/// Which word says how many messages rank 1 got of each kind, and which is the number of its process.
const GOT: usize = 0;
const PID: usize = KINDS.len();
const WORDS: usize = 512;

/// Messages that are copied, pushed and offered: how many words they have at most. Each kind has a mailbox of its own, since the reader
/// of one whose rest does not come sees nothing of those behind it.
const KINDS: [usize; 3] = [250, 12_000, 400_000];

/// How long anything but the loss itself may take.
const PATIENCE: Duration = Duration::from_secs(30);

fn main() -> anyhow::Result<()> {
    let file = std::env::args().nth(1).context("usage: account FILE")?;
    let board = Mapped::open(&file, WORDS)?;
    let deck = Deck::join()?;
    ensure!(deck.size() == 3, "start it with `mizzen run -n 3`");
    let part = match deck.rank().0 {
        0 => post(&deck, &board),
        1 => take(&deck, &board),
        _ => hear(&deck),
    };
    part.inspect_err(|error| println!("rank {}: {error:#}", deck.rank()))
}

/// Rank 1: counts what comes until its host is lost.
fn take(deck: &Deck, board: &Mapped) -> anyhow::Result<()> {
    board
        .word(PID)
        .store(std::process::id().into(), Ordering::SeqCst);
    std::thread::scope(|threads| {
        let takers: Vec<_> = (0..KINDS.len())
            .map(|kind| threads.spawn(move || take_kind(deck, board, kind)))
            .collect();
        takers
            .into_iter()
            .try_for_each(|taker| taker.join().expect("takers do not panic"))
    })
}

fn take_kind(deck: &Deck, board: &Mapped, kind: usize) -> anyhow::Result<()> {
    let inbox = deck.mailbox()?;
    deck.bind(&taker_of(kind), &inbox)?;
    let got = board.word(GOT + kind);
    for number in 0.. {
        match inbox.receive_vec::<u64>() {
            Ok(words) => ensure!(
                words[0] == number && words.last() == Some(&number),
                "message {} of kind {kind} came, {number} was next",
                words[0]
            ),
            // Who is lost cannot be told from here; this process ends with its agent.
            Err(error) => {
                eprintln!("rank 1: {error}");
                std::thread::sleep(PATIENCE);
                bail!("a host that is lost was not ended");
            }
        }
        got.store(number + 1, Ordering::SeqCst);
    }
    Ok(())
}

fn taker_of(kind: usize) -> String {
    format!("taker {kind}")
}

/// Rank 2: says what it hears of rank 1.
fn hear(deck: &Deck) -> anyhow::Result<()> {
    let inbox = deck.mailbox()?;
    inbox.depend_on(1);
    match inbox.retrieve() {
        Err(Error::Retrieve(RetrieveError::PeerGone(gone))) => println!("verdict: {gone}"),
        other => bail!("{other:?} instead of the news"),
    }
    Ok(())
}

/// Rank 0: posts until that fails, and compares.
fn post(deck: &Deck, board: &Mapped) -> anyhow::Result<()> {
    let takers = (0..KINDS.len()).map(|kind| deck.fetch(&taker_of(kind)));
    let takers = takers.collect::<mizzen::Result<Vec<_>>>()?;
    println!("ready");
    let (accepted, told) = post_until_lost(&takers)?;
    let (messages, uncertain) = match deck.flush() {
        Ok(()) => (0, 0),
        Err(Error::Flush(FlushError::PeerGone {
            gone,
            messages,
            uncertain,
        })) => {
            ensure!(gone.to_string() == told, "{gone} is told, and {told}");
            (messages, uncertain)
        }
        Err(error) => bail!("{error}"),
    };
    println!("verdict: {told}");
    await_end(board.word(PID).load(Ordering::SeqCst))?;
    let got = (0..KINDS.len()).map(|kind| board.word(GOT + kind).load(Ordering::SeqCst));
    let got: u64 = got.sum();
    println!(
        "posted {accepted}; told that {messages} were not taken, {uncertain} of them perhaps; the other side got {got}"
    );
    ensure!(messages <= accepted, "more than were posted");
    let least = accepted - messages;
    ensure!(
        (least..=least + uncertain).contains(&got),
        "it must have got {least} to {}",
        least + uncertain
    );
    println!("the account is right");
    Ok(())
}

/// How many posts were accepted, and what is said of the end.
fn post_until_lost(takers: &[MailboxRef]) -> anyhow::Result<(u64, String)> {
    let mut random = Rng::new();
    println!("seed {}", random.get_seed());
    // Who posts long ones soon waits for the reader; short ones only, and many of them wait without it.
    let first = if random.bool() { 0 } else { 8 };
    let mut accepted = [0u64; KINDS.len()];
    for turn in 0u64.. {
        let (kind, words) = match random.u8(first..100) {
            0 => (2, KINDS[2]),
            1..8 => (1, KINDS[1]),
            8..30 => (0, KINDS[0]),
            _ => (0, 1),
        };
        match takers[kind].send(&vec![accepted[kind]; words][..]) {
            Ok(()) => accepted[kind] += 1,
            Err(Error::Post(PostError::PeerGone(gone))) => {
                return Ok((accepted.iter().sum(), gone.to_string()));
            }
            Err(error) => bail!("message {} of kind {kind}: {error}", accepted[kind]),
        }
        // So that some time passes before what may wait for a lost host has all been posted.
        if turn % 64 == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    bail!("numbers are over")
}

/// Waits until a process does not exist any more.
fn await_end(pid: u64) -> anyhow::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    while std::path::Path::new(&format!("/proc/{pid}")).exists() {
        ensure!(Instant::now() < deadline, "process {pid} lives on");
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}
