//! A pool of items whose cost differs by a hundred, on all processes of a job; with `lose`, rank 2 is killed in the middle and
//! rank 3 comes late. Prints how near it comes to the ideal, which is all processor time of the items divided by the cores.
//!
//! `mizzen run -n 4 --on-death continue -- pool ITEMS [lose]`

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use mizzen::{Deck, Rank};
use rustix::process::{Signal, getpid, kill_process};
use rustix::time::{ClockId, clock_gettime};

/// The cheapest item; the dearest costs a hundred times as much.
const CHEAPEST: Duration = Duration::from_micros(30);
/// Rank 2 is killed while it runs an item, after one in so many of all: it gets more than these on a busy machine, too.
const KILLED_AFTER_ONE_IN: u32 = 20;
/// When rank 3 comes.
const LATE: Duration = Duration::from_millis(1000);
/// What a loss may cost, besides running what was in flight again.
const LOSS: Duration = Duration::from_secs(1);

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let items = arguments.next().unwrap_or("10000".into());
    let items: u32 = items.parse().context("give a number of items")?;
    let lose = arguments.next().as_deref() == Some("lose");
    let deck = Deck::join()?;
    let cores = std::thread::available_parallelism()?.get() as u32;
    let threads = (cores as usize).div_ceil(2);
    let rank = deck.rank().0;
    let last = (lose && rank == 2).then_some(items / KILLED_AFTER_ONE_IN);
    let begun = AtomicU32::new(0);
    if lose && rank == 3 {
        std::thread::sleep(LATE);
    }
    let work: Vec<(u32, u64)> = if rank == 0 {
        let speed = rounds_per_second();
        (0..items).map(|item| (item, cost(item, speed))).collect()
    } else {
        Vec::new()
    };
    let started = Instant::now();
    let mut seen = vec![false; items as usize];
    let mut spent = Duration::ZERO;
    let mut twice = 0;
    let report = deck.pool().threads(threads).for_each(
        work,
        |(item, rounds)| {
            if last == Some(begun.fetch_add(1, Ordering::Relaxed)) {
                let _ = kill_process(getpid(), Signal::KILL);
            }
            let before = processor_time();
            std::hint::black_box(burn(rounds));
            (item, processor_time() - before)
        },
        |index, (item, took)| {
            twice += u32::from(seen[index] || item as usize != index);
            seen[index] = true;
            spent += took;
            std::ops::ControlFlow::Continue(())
        },
    )?;
    if rank != 0 {
        return Ok(());
    }
    let took = started.elapsed();
    let missing = seen.iter().filter(|seen| !**seen).count();
    let ideal = spent / cores;
    println!("{report}");
    println!(
        "{items} items, {missing} missing, {twice} twice; ideal {ideal:.2?} on {cores} cores, took {took:.2?}: {:.3} of the ideal",
        ideal.as_secs_f64() / took.as_secs_f64()
    );
    ensure!(missing == 0 && twice == 0, "not every result came once");
    let idle = (0..deck.size()).find(|rank| !report.by_rank.contains_key(&Rank(*rank)));
    // Those who are killed or late may have had nothing of it.
    if let Some(rank) = idle.filter(|_| !lose) {
        bail!("rank {rank} ran none of the items");
    }
    if lose {
        ensure!(
            !report.lost.is_empty(),
            "rank 2 was killed with an item in hand, and nothing was lost"
        );
        let lost = took.saturating_sub(ideal);
        println!(
            "lost with rank 2 and by rank 3's coming late: {lost:.2?}, {} items were run again",
            report.rerun
        );
        ensure!(lost < LOSS + ideal / 10, "the loss cost {lost:.2?}");
    }
    Ok(())
}

/// The rounds of an item: spread evenly over the orders of magnitude, the same in each run.
fn cost(item: u32, speed: f64) -> u64 {
    let mixed = u64::from(item).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 11;
    let share = mixed as f64 / (1u64 << 53) as f64;
    (CHEAPEST.as_secs_f64() * 100f64.powf(share) * speed) as u64
}

fn burn(rounds: u64) -> u64 {
    (0..rounds).fold(1, |value: u64, round| {
        value
            .wrapping_mul(6_364_136_223_846_793_005)
            .rotate_left(13)
            ^ round
    })
}

fn rounds_per_second() -> f64 {
    const ROUNDS: u64 = 20_000_000;
    let started = Instant::now();
    std::hint::black_box(burn(ROUNDS));
    ROUNDS as f64 / started.elapsed().as_secs_f64()
}

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
