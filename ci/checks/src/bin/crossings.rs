//! How often collective operations cross from one cluster to another: `crossings ITERATIONS`, on processes of two clusters. Counts the messages between processes of
//! different clusters, by the counters of their links, and takes the time of each operation.

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use mizzen::group::{Group, Max, Sum};
use mizzen::{Deck, Rank};

type Operation = (&'static str, fn(&mut Group) -> mizzen::Result<()>);

/// What is done.
const OPERATIONS: [Operation; 4] = [
    ("barrier", Group::barrier),
    ("all_reduce of 8 B", |group| {
        group.all_reduce(&mut [1u64], Sum)
    }),
    ("all_reduce of 64 KiB", |group| {
        group.all_reduce(&mut [1u64; 8192], Sum)
    }),
    ("broadcast of 64 KiB", |group| {
        group.broadcast(0, &mut [1u64; 8192])
    }),
];

fn main() -> Result<()> {
    let iterations = std::env::args().nth(1).context("crossings ITERATIONS")?;
    let iterations: u64 = iterations.parse()?;
    let deck = Deck::join()?;
    let mut group = deck.group()?;
    for (name, operation) in OPERATIONS {
        operation(&mut group)?;
        group.barrier()?;
        let before = far_messages(&deck)?;
        let begun = Instant::now();
        for _ in 0..iterations {
            operation(&mut group)?;
        }
        let took = begun.elapsed().as_secs_f64() * 1e3 / iterations as f64;
        let crossed = far_messages(&deck)? - before;
        // What is sent for this comes later.
        let all = group.all_gather(&[crossed])?;
        let took = group.all_reduce_value(took, Max)?;
        if deck.rank() == 0 {
            let each = |of: u64| of as f64 / iterations as f64;
            let sums = ways(&deck, all.all())?;
            println!(
                "{name} on {}: crosses {} times there, {} times back; {took:.1} ms",
                group.size(),
                each(sums[0]),
                each(sums[1])
            );
            // A long broadcast may go in several parts, each of which crosses once.
            let crosses_once = sums == [iterations; 2];
            ensure!(
                crosses_once || name.starts_with("broadcast"),
                "{name} crosses more often than once"
            );
        }
    }
    deck.finish()?;
    Ok(())
}

/// What was sent from the first cluster and from the second.
fn ways(deck: &Deck, crossed: &[u64]) -> Result<[u64; 2]> {
    let mut sums = [0, 0];
    for (rank, crossed) in (0..).zip(crossed) {
        let of = usize::from(cluster(deck, Rank(rank))? != cluster(deck, Rank(0))?);
        sums[of] += crossed;
    }
    Ok(sums)
}

/// How many messages this process has sent to the other cluster.
fn far_messages(deck: &Deck) -> Result<u64> {
    let own = cluster(deck, deck.rank())?;
    let mut sent = 0;
    for row in deck
        .counters()
        .iter()
        .filter(|row| row.name == "messages_sent")
    {
        let Some(peer) = row.object.strip_prefix("link to rank ") else {
            continue;
        };
        if cluster(deck, Rank(peer.parse()?))? != own {
            sent += row.value;
        }
    }
    Ok(sent)
}

fn cluster(deck: &Deck, rank: Rank) -> Result<String> {
    let topology = deck.topology()?;
    let host = topology.host_of(rank).context("it is somewhere")?;
    Ok(host.cluster.clone())
}
