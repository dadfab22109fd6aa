//! Frames of 8 MiB that go through a chain of processes, handed on.
//!
//! `pipeline chain FRAMES`: rank 0 fills frames, the others hand them on, the last one checks them. Nobody copies, and the arena is as
//! large as what may be out, and two frames. Then one frame at a time is handed on unread, beside 8 bytes, for the time of a hop.
//! `pipeline kill`: of three ranks, the middle one is killed while it holds a frame and has handed on another: rank 0 gets both back.
//! `pipeline kill-within MICROSECONDS`: it is killed at any moment while it hands on, so soon after its first frame: rank 0 gets all back.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use mizzen::{Deck, Error, Mailbox, MailboxRef, RetrieveError, UnpackError};
use rustix::process::{Signal, getpid, kill_process};
use rustix::time::{ClockId, clock_gettime};

const FRAME: usize = 8 << 20;
/// Single frames, and messages of 8 bytes, of which the time is taken.
const TRIPS: usize = 300;
/// How soon everything must be back.
const BOUND: Duration = Duration::from_secs(30);

fn main() -> Result<()> {
    let mut options = std::env::args().skip(1);
    let mode = options.next().context("which check?")?;
    let number = options.next().map(|number| number.parse::<u64>());
    let deck = Deck::join()?;
    let outcome = match (mode.as_str(), number) {
        ("chain", Some(Ok(frames))) => chain(&deck, frames),
        ("kill", None) => kill(&deck),
        ("kill-within", Some(Ok(microseconds))) => {
            kill_within(&deck, Duration::from_micros(microseconds))
        }
        _ => bail!("pipeline chain FRAMES | kill | kill-within MICROSECONDS"),
    };
    if let Err(error) = outcome {
        // Who leaves in order waits for readers, and there may be none.
        eprintln!("pipeline: {error:#}");
        std::process::exit(1);
    }
    if mode == "chain" {
        deck.finish()?;
    }
    Ok(())
}

/// A rank of the chain: its own mailbox, that of the next rank, and that of the first.
struct Place {
    inbox: Mailbox,
    next: MailboxRef,
    first: MailboxRef,
    is_first: bool,
    is_last: bool,
}

impl Place {
    fn find(deck: &Deck) -> Result<Self> {
        let (rank, size) = (deck.rank().0, deck.size());
        ensure!(size > 2, "a chain has a middle");
        let inbox = deck.mailbox()?;
        deck.bind(&format!("rank {rank}"), &inbox)?;
        Ok(Self {
            next: deck.fetch(&format!("rank {}", (rank + 1) % size))?,
            first: deck.fetch("rank 0")?,
            inbox,
            is_first: rank == 0,
            is_last: rank + 1 == size,
        })
    }
}

fn chain(deck: &Deck, frames: u64) -> Result<()> {
    let place = Place::find(deck)?;
    let allowed = deck.size() as usize + 2;
    deck.set_lending_limit(allowed * FRAME);
    go_through(deck, &place, frames)?;
    let most = (allowed + 2) * FRAME;
    let arena = deck.arena_bytes();
    ensure!(arena <= most, "an arena of {arena} bytes, for {most}");
    let by_frames = trips(&place, || pass_frame(deck, &place))?;
    let by_words = trips(&place, || pass_word(&place))?;
    let copied: u64 = deck
        .counters()
        .iter()
        .filter(|row| row.name == "bytes_copied")
        .map(|row| row.value)
        .sum();
    ensure!(copied == 0, "{copied} bytes were copied");
    if place.is_last {
        let hops = deck.size() - 1;
        let each = |nanoseconds: u64| nanoseconds as f64 / 1000.0 / f64::from(hops);
        println!(
            "{frames} frames of 8 MiB over {hops} hops: none was copied; a hop of a frame takes {:.1} µs, of 8 bytes {:.1} µs ({:.1} times)",
            each(by_frames),
            each(by_words),
            each(by_frames) / each(by_words)
        );
    }
    if place.is_first {
        println!(
            "the arena has {} MiB, and {} may be out",
            arena >> 20,
            (allowed * FRAME) >> 20
        );
    }
    Ok(())
}

/// All frames through all ranks, as many at a time as may be out.
fn go_through(deck: &Deck, place: &Place, frames: u64) -> Result<()> {
    for number in 0..frames {
        if place.is_first {
            let mut frame = deck.lend_unzeroed::<u64>(FRAME / 8)?;
            frame.fill(number);
            place.next.post_lent(&number, frame)?;
            continue;
        }
        let (found, frame) = place.inbox.receive_lent::<u64, u64>()?;
        ensure!(found == number, "frame {found} in the place of {number}");
        if place.is_last {
            let is_right = frame.iter().all(|value| *value == number);
            ensure!(is_right, "frame {number} is not as it was filled");
        } else {
            let ends = (frame[0], frame[FRAME / 8 - 1]);
            ensure!(ends == (number, number), "frame {number} begins otherwise");
            place.next.post_lent(&number, frame)?;
        }
    }
    Ok(())
}

/// One at a time goes through all ranks: the median of how long it takes, at the last one.
fn trips(place: &Place, mut pass: impl FnMut() -> Result<u64>) -> Result<u64> {
    let mut times = Vec::with_capacity(TRIPS);
    for _ in 0..TRIPS {
        if place.is_first {
            pass()?;
            place.inbox.receive::<u8>()?;
        } else {
            times.push(pass()?);
            if place.is_last {
                place.first.send(&0u8)?;
            }
        }
    }
    times.sort_unstable();
    Ok(times.get(TRIPS / 2).copied().unwrap_or(0))
}

/// A frame that nobody reads: how long it has been on its way.
fn pass_frame(deck: &Deck, place: &Place) -> Result<u64> {
    if place.is_first {
        let frame = deck.lend_unzeroed::<u8>(FRAME)?;
        place.next.post_lent(&now(), frame)?;
        return Ok(0);
    }
    let (begun, frame) = place.inbox.receive_lent::<u64, u8>()?;
    if !place.is_last {
        place.next.post_lent(&begun, frame)?;
    }
    Ok(now().saturating_sub(begun))
}

fn pass_word(place: &Place) -> Result<u64> {
    if place.is_first {
        place.next.send(&now())?;
        return Ok(0);
    }
    let begun = place.inbox.receive::<u64>()?;
    if !place.is_last {
        place.next.send(&begun)?;
    }
    Ok(now().saturating_sub(begun))
}

/// Nanoseconds of the clock that all processes of a host share.
fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn kill(deck: &Deck) -> Result<()> {
    const FRAMES: u64 = 3;
    let place = Place::find(deck)?;
    if place.is_first {
        deck.set_lending_limit(FRAMES as usize * FRAME);
        for number in 0..FRAMES {
            let frame = deck.lend_unzeroed::<u8>(FRAME)?;
            place.next.post_lent(&number, frame)?;
        }
        // One is with the last rank until it hears that the middle one is dead.
        expect_back(deck, FRAMES)?;
    } else if place.is_last {
        let (_, frame) = place.inbox.receive_lent::<u64, u8>()?;
        place.inbox.depend_on(1);
        // Which comes after the second frame, or that is taken back.
        while place.inbox.retrieve().is_ok() {}
        drop(frame);
    } else {
        for _ in 0..2 {
            let (number, frame) = place.inbox.receive_lent::<u64, u8>()?;
            place.next.post_lent(&number, frame)?;
        }
        let _held = place.inbox.receive_lent::<u64, u8>()?;
        kill_process(getpid(), Signal::KILL)?;
    }
    Ok(())
}

/// Waits until so many frames, which are all there may be, can be lent again.
fn expect_back(deck: &Deck, frames: u64) -> Result<()> {
    let back: mizzen::Result<Vec<_>> = (0..frames)
        .map(|_| deck.lend_timeout::<u8>(FRAME, BOUND))
        .collect();
    println!("all {} frames came back after the kill", back?.len());
    Ok(())
}

fn kill_within(deck: &Deck, time: Duration) -> Result<()> {
    const FRAMES: u64 = 4;
    let place = Place::find(deck)?;
    if place.is_first {
        deck.set_lending_limit(FRAMES as usize * FRAME);
        for number in 0.. {
            let mut frame = deck.lend_timeout::<u64>(FRAME / 8, BOUND)?;
            (frame[0], frame[FRAME / 8 - 1]) = (number, number);
            if place.next.post_lent(&number, frame).is_err() {
                break;
            }
        }
        return expect_back(deck, FRAMES);
    }
    if place.is_last {
        place.inbox.depend_on(1);
        // It holds the last one while the next comes.
        let mut _held = None;
        loop {
            match place.inbox.receive_lent::<u64, u64>() {
                Ok((number, frame)) => {
                    let ends = (frame[0], frame[FRAME / 8 - 1]);
                    ensure!(ends == (number, number), "frame {number} is another");
                    _held = Some(frame);
                }
                Err(Error::Unpack(UnpackError::TakenBack)) => (),
                Err(Error::Retrieve(RetrieveError::PeerGone(_))) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }
    let mut killer = None;
    loop {
        let (number, frame) = place.inbox.receive_lent::<u64, u8>()?;
        killer.get_or_insert_with(|| {
            std::thread::spawn(move || {
                std::thread::sleep(time);
                kill_process(getpid(), Signal::KILL)
            })
        });
        place.next.post_lent(&number, frame)?;
    }
}
