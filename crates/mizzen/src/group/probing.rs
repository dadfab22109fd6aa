//! What ways of an operation cost: measured once, before the first choice that depends on it, and agreed on by all members.
//!
//! Operations that combine data choose by constants, unless the program says otherwise ([`tune`](super::Group::tune)): with other ways, sums of floating-point numbers would have
//! other bits from run to run.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use mizzen_proto::group::cost::{Costs, combines};
use mizzen_proto::group::plan::{Operation, Stage};
use mizzen_proto::group::probe::{Findings, Level, Probe, probes, to_all};

use super::error::GroupError;
use super::run::{Blocks, Work, run, zeroed};
use super::seat::Seat;

/// How long data are that go to another member and back, to see how fast they go.
const LONG_BYTES: usize = 64 << 10;

/// What counts for an operation: it is measured if nobody did so before and it counts.
pub(super) fn costs_for(seat: &mut Seat, operation: Operation) -> Result<Costs, GroupError> {
    if combines(operation) && !seat.choice.is_tuned {
        return Ok(Costs::default());
    }
    known(seat)
}

/// What was measured, now or before.
pub(super) fn known(seat: &mut Seat) -> Result<Costs, GroupError> {
    if let Some(known) = seat.choice.costs {
        return Ok(known);
    }
    let layout = Arc::clone(&seat.roster.layout);
    let mut findings = Findings::default();
    for probe in probes(&layout, seat.me) {
        let empty = fastest(seat, &probe, 0)?;
        let long = fastest(seat, &probe, LONG_BYTES)?;
        if probe.leads {
            findings.add(probe.level, empty, long, LONG_BYTES as u64);
        }
    }
    if seat.me == 0 {
        findings.add_combining(combine_once(), LONG_BYTES as u64);
    }
    let host = layout.host_of(seat.me);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    // Who is bound to one core does not see those of the others.
    if host.first() == Some(&seat.me.0) && cores > 1 {
        findings.add_host(host.len() as u32, cores as u64);
    }
    let mut work = Work {
        from: None,
        data: &mut findings.0,
        blocks: Blocks::None,
    };
    let greatest = |data: &mut [u64], next: &[u64]| {
        for (value, next) in data.iter_mut().zip(next) {
            *value = (*value).max(*next);
        }
    };
    run(seat, &to_all(&layout, seat.me), &mut work, Some(&greatest))?;
    let costs = findings.costs(&Costs::default());
    seat.choice.costs = Some(costs);
    Ok(costs)
}

/// Nanoseconds of the fastest of a few round trips, after one that is not counted: it may have to open the way.
fn fastest(seat: &mut Seat, probe: &Probe, bytes: usize) -> Result<u64, GroupError> {
    let times = match probe.level {
        Level::Host => 4,
        Level::Cluster => 3,
        // What is far is waited for as seldom as can be.
        Level::Far => 1,
    };
    let trip: [Stage; 1] = [probe.round_trip()];
    let mut data = zeroed::<u8>(bytes);
    let mut fastest = u64::MAX;
    for time in 0..=times {
        let mut work = Work {
            from: None,
            data: &mut data,
            blocks: Blocks::None,
        };
        let started = Instant::now();
        run(seat, &trip, &mut work, None)?;
        if time > 0 {
            let took = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
            fastest = fastest.min(took);
        }
    }
    Ok(fastest)
}

/// Nanoseconds to add numbers to others, once they are in the cache.
fn combine_once() -> u64 {
    let (mut data, next) = (zeroed::<f64>(LONG_BYTES / 8), zeroed::<f64>(LONG_BYTES / 8));
    let mut took = u64::MAX;
    for _ in 0..2 {
        let started = Instant::now();
        for (value, next) in data.iter_mut().zip(black_box(&next)) {
            *value += *next;
        }
        black_box(&mut data);
        took = took.min(u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX));
    }
    took
}
