//! How long collective operations take, at the slowest member: `collectives ITERATIONS BYTES OPERATION …`, on all processes of a job, or, with `THREADS=n`, on as many
//! threads of each. One line for each operation, in microseconds: the median of nine runs, the least and the greatest.

use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use mizzen::Deck;
use mizzen::group::{Group, Max, Sum};

const RUNS: usize = 9;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let iterations: u32 = arguments.next().context("how many iterations?")?.parse()?;
    let bytes: usize = arguments.next().context("how many bytes?")?.parse()?;
    let operations: Vec<String> = arguments.collect();
    let deck = Deck::join()?;
    let threads: usize = std::env::var("THREADS").map_or(Ok(0), |threads| threads.parse())?;
    let mut group = deck.group()?;
    if threads == 0 {
        return measure(&mut group, iterations, bytes, &operations);
    }
    let seats = group.seats(threads)?;
    std::thread::scope(|scope| {
        let operations = &operations;
        let run = |mut seat: Group| {
            scope.spawn(move || measure(&mut seat, iterations, bytes, operations))
        };
        let all: Vec<_> = seats.into_iter().map(run).collect();
        all.into_iter()
            .try_for_each(|thread| thread.join().expect("it does not panic"))
    })
}

fn measure(group: &mut Group, iterations: u32, bytes: usize, operations: &[String]) -> Result<()> {
    for operation in operations {
        let mut data = vec![1.0f64; bytes.div_ceil(8)];
        let mut took = Vec::new();
        for _ in 0..=RUNS {
            data.fill(1.0);
            group.barrier()?;
            let begun = Instant::now();
            for iteration in 0..iterations {
                perform(group, operation, iteration, &mut data)?;
            }
            let each = begun.elapsed().as_secs_f64() * 1e6 / f64::from(iterations);
            took.push(group.all_reduce_value(each, Max)?);
        }
        // The first is for warming up.
        took.remove(0);
        took.sort_by(f64::total_cmp);
        if group.member() == 0 {
            let (least, median, most) = (took[0], took[RUNS / 2], took[RUNS - 1]);
            println!(
                "{operation} of {bytes} B on {}: {median:.3} us ({least:.3} to {most:.3})",
                group.size()
            );
        }
    }
    Ok(())
}

fn perform(group: &mut Group, operation: &str, iteration: u32, data: &mut [f64]) -> Result<()> {
    match operation {
        "barrier" => group.barrier()?,
        "all_gather" => drop(group.all_gather(data)?),
        "broadcast" => group.broadcast(iteration % group.size(), data)?,
        "all_reduce" => {
            data[0] = 1.0;
            group.all_reduce(data, Sum)?;
            ensure!(data[0] == f64::from(group.size()), "a wrong sum");
        }
        other => bail!("{other} is not measured"),
    }
    Ok(())
}
