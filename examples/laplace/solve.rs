//! The workers: iterate until nothing changes any more.

use std::time::Instant;

use mizzen::group::{Group, Max, commutative};
use mizzen::{Deck, Result};
use mizzen_examples::cores;

use super::block::{Block, Colour};
use super::neighbours::{Neighbours, Place};
use super::options::Options;
use super::schedule::{self, Step};

/// What the workers agreed on.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    /// After which iterations it was asked what the largest change of a cell was, and the answers.
    pub(crate) changes: Vec<(usize, f64)>,
    /// Without the time for starting and meeting.
    pub(crate) seconds: f64,
    /// Tells two plates apart that differ in a bit.
    pub(crate) fingerprint: u64,
}

impl Outcome {
    /// The last iteration, and its largest change of a cell.
    pub(crate) fn last(&self) -> (usize, f64) {
        *self
            .changes
            .last()
            .expect("the last iteration is always asked about")
    }
}

/// Solves the equation together with the other processes. Returns the rows of this one, a block for each thread.
pub(crate) fn solve(deck: &Deck, options: &Options) -> Result<(Vec<Block>, Outcome)> {
    let place = |thread| Place {
        worker: deck.rank().0 as usize * options.threads + thread,
        workers: deck.size() as usize * options.threads,
        threads: options.threads,
    };
    let mut seats = deck.group()?.seats(options.threads)?;
    let first = seats.remove(0);
    let solved: Vec<_> = std::thread::scope(|threads| {
        let others: Vec<_> = (1..)
            .zip(seats)
            .map(|(thread, seat)| threads.spawn(move || work(deck, options, place(thread), seat)))
            .collect();
        let first = work(deck, options, place(0), first);
        let others = others.into_iter();
        let others = others.map(|worker| worker.join().expect("a worker does not panic"));
        [first].into_iter().chain(others).collect::<Result<_>>()
    })?;
    let (blocks, mut outcomes): (Vec<_>, Vec<_>) = solved.into_iter().unzip();
    Ok((blocks, outcomes.swap_remove(0)))
}

/// One worker, from the start to the agreement of all that it is over.
fn work(deck: &Deck, options: &Options, place: Place, mut all: Group) -> Result<(Block, Outcome)> {
    if options.pin {
        // A thread that sleeps for its neighbour's row may otherwise wake on its neighbour's core.
        cores::pin(place.worker).map_err(mizzen::Error::Program)?;
    }
    let mut block = Block::new(options.size, place.worker, place.workers);
    let mut neighbours = Neighbours::meet(deck, place)?;
    let steps = schedule::iteration(block.rows());
    let mut changes = Vec::new();
    let omega = options.omega();

    let started = Instant::now();
    neighbours.send(Colour::Black, &block)?;
    for iteration in 1..=options.iterations {
        if !options.is_checked(iteration) {
            iterate(&steps, &mut neighbours, &mut block, |block, colour, row| {
                block.relax(colour, row, omega);
            })?;
            continue;
        }
        let mut largest = 0.0f64;
        iterate(&steps, &mut neighbours, &mut block, |block, colour, row| {
            largest = largest.max(block.relax_measured(colour, row, omega));
        })?;
        let largest = all.all_reduce_value(largest, Max)?;
        changes.push((iteration, largest));
        if largest < options.tolerance {
            break;
        }
    }
    neighbours.receive(Colour::Black, &mut block)?;
    let seconds = started.elapsed().as_secs_f64();

    let wrapping = commutative(|sum: &mut u64, of: &u64| *sum = sum.wrapping_add(*of));
    let fingerprint = all.all_reduce_value(block.fingerprint(), wrapping)?;
    let outcome = Outcome {
        changes,
        seconds,
        fingerprint,
    };
    Ok((block, outcome))
}

fn iterate(
    steps: &[Step],
    neighbours: &mut Neighbours,
    block: &mut Block,
    mut relax: impl FnMut(&mut Block, Colour, usize),
) -> Result<()> {
    for step in steps {
        match *step {
            Step::Relax(colour, row) => relax(block, colour, row),
            Step::Send(colour) => neighbours.send(colour, block)?,
            Step::Receive(colour) => neighbours.receive(colour, block)?,
        }
    }
    Ok(())
}
