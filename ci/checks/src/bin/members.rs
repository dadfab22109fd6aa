//! A member of a group dies at some moment of some operation: `members SEED VICTIM MICROSECONDS`. All others get an error that names it, soon, whatever they do,
//! and say whom they lost.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use mizzen::group::{Group, GroupError, Parts, Sum};
use mizzen::{Deck, Error, Rank};
use rustix::process::{Signal, getpid, kill_process};

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut next =
        |what: &'static str| arguments.next().context(what)?.parse::<u64>().context(what);
    let (seed, victim, after) = (next("a seed")?, next("a victim")?, next("microseconds")?);
    let victim = Rank(u32::try_from(victim)?);
    let deck = Deck::join()?;
    let mut group = deck.group()?;
    let seats = (seed % 3 == 0).then(|| group.seats(2)).transpose()?;
    group.barrier()?;
    if deck.rank() == victim {
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_micros(after));
            kill_process(getpid(), Signal::KILL)
        });
    }
    let told = match seats {
        None => until_lost(&mut group, seed)?,
        Some(seats) => std::thread::scope(|scope| {
            let run = |mut seat: Group| scope.spawn(move || until_lost(&mut seat, seed));
            let all: Vec<_> = seats.into_iter().map(run).collect();
            let mut told = None;
            for thread in all {
                told = Some(thread.join().expect("it does not panic")?);
            }
            told.context("there are seats")
        })?,
    };
    ensure!(
        told == victim,
        "rank {told} is said to be lost, not {victim}"
    );
    println!("lost {told}");
    Ok(())
}

/// Does one thing after another until somebody is lost: who.
fn until_lost(group: &mut Group, seed: u64) -> Result<Rank> {
    let mut random = seed;
    let begun = Instant::now();
    loop {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let error = match perform(group, random >> 33) {
            Ok(()) if begun.elapsed() > Duration::from_secs(30) => bail!("nobody was lost"),
            Ok(()) => continue,
            Err(error) => error,
        };
        let Some(GroupError::Lost { gone, .. }) = error.service() else {
            return Err(error.into());
        };
        return Ok(gone.rank());
    }
}

fn perform(group: &mut Group, random: u64) -> Result<(), Error> {
    let size = group.size();
    let root = (random / 64) as u32 % size;
    let len = [0, 1, 5, 300, 20_000][(random / 8) as usize % 5];
    let mut data = vec![1.0f64; len];
    match random % 8 {
        0 => group.barrier(),
        1 => group.broadcast(root, &mut data),
        2 => group.reduce(root, &mut data, Sum),
        3 => {
            group.all_reduce(&mut data, Sum)?;
            assert!(
                data.iter().all(|sum| *sum == f64::from(size)),
                "a wrong sum"
            );
            Ok(())
        }
        4 => group
            .all_gather(&data)
            .map(|all| assert_eq!(all.all().len(), len * size as usize)),
        5 => group.gather(root, &data).map(drop),
        6 => group.scan(&mut data, Sum),
        _ => {
            let parts: Parts<f64> = (0..size).map(|_| data.clone()).collect();
            group.all_to_all(&parts).map(drop)
        }
    }
}
