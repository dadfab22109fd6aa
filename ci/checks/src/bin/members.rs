//! Members of a group die at some moment of some operation: `members SEED MICROSECONDS VICTIM [VICTIM]`. All others get an error that names one of them, soon,
//! whatever they do; they find out how far all have come, go on as a smaller group, and say what they came to: all survivors the same.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use mizzen::group::{Group, GroupError, Parts, Sum};
use mizzen::{Deck, Error, Rank};
use rustix::process::{Signal, getpid, kill_process};

/// How many operations survivors do together.
const AFTERWARDS: u64 = 20;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut next =
        |what: &'static str| arguments.next().context(what)?.parse::<u64>().context(what);
    let (seed, after) = (next("a seed")?, next("microseconds")?);
    let victims = arguments.map(|rank| Ok(Rank(rank.parse()?)));
    let victims: Vec<Rank> = victims.collect::<Result<_>>()?;
    let deck = Deck::join()?;
    let mut group = deck.group()?;
    let seats = (seed % 3 == 0).then(|| group.seats(2)).transpose()?;
    group.barrier()?;
    if let Some(place) = victims.iter().position(|victim| *victim == deck.rank()) {
        // The second dies while the others get over the first, mostly.
        let after =
            Duration::from_micros(after) + place as u32 * Duration::from_micros(seed % 4000);
        std::thread::spawn(move || {
            std::thread::sleep(after);
            kill_process(getpid(), Signal::KILL)
        });
    }
    let told = match seats {
        None => get_over(group, seed, &victims)?,
        Some(seats) => std::thread::scope(|scope| {
            let run = |seat: Group| scope.spawn(|| get_over(seat, seed, &victims));
            let all: Vec<_> = seats.into_iter().map(run).collect();
            let all = all
                .into_iter()
                .map(|thread| thread.join().expect("it does not panic"));
            let mut all = all.collect::<Result<Vec<String>>>()?;
            all.dedup();
            ensure!(all.len() == 1, "two threads came to {all:?}");
            all.pop().context("there are seats")
        })?,
    };
    println!("{told}");
    Ok(())
}

/// Goes on until all victims are lost, and then for some more: what this member came to.
fn get_over(mut group: Group, seed: u64, victims: &[Rank]) -> Result<String> {
    let all = group.size();
    let each = all / 4;
    let mut told = String::new();
    while group.size() > all - each * victims.len() as u32 {
        let lost = until_lost(&mut group, seed)?;
        ensure!(
            victims.contains(&lost),
            "rank {lost} is said to be lost, not one of {victims:?}"
        );
        let settled = group.settle()?;
        ensure!(
            settled.done <= group.done(),
            "all have done {}, this one {}",
            settled.done,
            group.done()
        );
        group = group.shrink()?;
        told += &format!("all did {}, on with {}; ", settled.done, group.size());
    }
    for time in 0..AFTERWARDS {
        perform(&mut group, seed.wrapping_mul(time + 1) >> 3)?;
    }
    told += "and on";
    Ok(told)
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
