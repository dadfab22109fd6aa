//! How long it takes from the sending of a message until a task that waits for it goes on, while all workers of its process
//! compute. Rank 1 sends the time every few milliseconds; a task of rank 0 retrieves.
//!
//! `mizzen run -n 2 -- reaction [MESSAGES]`, or `idle` instead of a number: two processes with workers that have nothing to do.
//! `reaction half` is another program, which takes half a core until it is ended, a minute at most.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use mizzen::{Deck, Error};
use rustix::time::{ClockId, clock_gettime};

/// Not in step with the system's time slices.
const PAUSE: Duration = Duration::from_micros(2300);
const IDLE: Duration = Duration::from_secs(5);
/// How long another program computes, and then sleeps.
const HALF: Duration = Duration::from_millis(5);
/// What 9 and 99 of 100 messages must not take, in microseconds. A task that waits for a worker to become free waits for the end of the
/// computation; one that the system's time slices let through, for several milliseconds.
const BOUND_US: f64 = 100.0;
/// What the process ends with if only the second is missed: threads of the system's own, which nobody goes before, do that now and
/// then.
const MISSED: i32 = 3;
/// What a process with nothing to do may use, in percent of a core: far more than it does, far less than one that looks all
/// the time.
const IDLE_PERCENT: f64 = 2.0;

fn main() -> anyhow::Result<()> {
    let what = std::env::args().nth(1).unwrap_or("2000".into());
    if what == "half" {
        take_half();
        return Ok(());
    }
    let deck = Deck::join()?;
    deck.at_least(2)?;
    if what == "idle" {
        return idle(&deck);
    }
    let messages: u32 = what.parse().context("give a number of messages, or idle")?;
    if deck.rank() == 1 {
        let waiting = deck.fetch("waiting")?;
        for _ in 0..messages {
            std::thread::sleep(PAUSE);
            waiting.send(&now())?;
        }
        return Ok(());
    }
    let inbox = deck.mailbox()?;
    deck.bind("waiting", &inbox)?;
    let stop = Arc::new(AtomicBool::new(false));
    let workers = std::thread::available_parallelism()?.get();
    let waiting = deck.spawn(move || -> Result<Vec<u64>, Error> {
        let times = (0..messages).map(|_| {
            let sent: u64 = inbox.receive()?;
            Ok(now().saturating_sub(sent))
        });
        times.collect()
    });
    let computing: Vec<_> = (0..workers)
        .map(|_| {
            let stop = Arc::clone(&stop);
            deck.spawn(move || {
                let mut rounds = 0u64;
                while !stop.load(Ordering::Relaxed) {
                    rounds = std::hint::black_box(rounds + 1);
                }
            })
        })
        .collect();
    let mut times = waiting.join()??;
    stop.store(true, Ordering::Relaxed);
    computing.into_iter().try_for_each(|task| task.join())?;
    times.sort_unstable();
    let at = |share: f64| times[(share * (times.len() - 1) as f64) as usize] as f64 / 1e3;
    ensure!(
        times.len() == messages as usize && messages > 0,
        "messages are missing"
    );
    println!(
        "reaction of a waiting task while {workers} workers compute, {messages} messages, µs: p50 {:.1}, p90 {:.1}, p99 {:.1}, p99.9 {:.1}, longest {:.1}",
        at(0.5),
        at(0.9),
        at(0.99),
        at(0.999),
        at(1.0)
    );
    ensure!(at(0.9) < BOUND_US, "p90 is not below {BOUND_US} µs");
    drop(deck);
    if at(0.99) >= BOUND_US {
        eprintln!("p99 is not below {BOUND_US} µs");
        std::process::exit(MISSED);
    }
    Ok(())
}

/// Computes half of the time.
fn take_half() {
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(60) {
        let turn = Instant::now();
        while turn.elapsed() < HALF {
            std::hint::spin_loop();
        }
        std::thread::sleep(HALF);
    }
}

/// A process with a service, a task that awaits a message, and nothing to do.
fn idle(deck: &Deck) -> anyhow::Result<()> {
    let _service = deck.serve("nothing", |()| ())?;
    let mut inbox = deck.mailbox()?;
    let address = inbox.address();
    let task = deck.spawn_async(async move {
        let mut message = inbox.retrieve_async().await?;
        message.unpack_express::<u8>()
    });
    deck.client::<(), ()>("nothing")?.call(&())?;
    let (before, started) = (processor_time(), Instant::now());
    std::thread::sleep(IDLE);
    let share = (processor_time() - before).as_secs_f64() / started.elapsed().as_secs_f64();
    println!(
        "idle process with workers: {:.3} % of a core",
        share * 100.0
    );
    ensure!(
        share * 100.0 < IDLE_PERCENT,
        "that is not below {IDLE_PERCENT} %"
    );
    address.send(&0u8)?;
    task.join()??;
    Ok(())
}

fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
