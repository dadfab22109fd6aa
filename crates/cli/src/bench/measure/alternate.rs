//! Runs that alternate between the floor and Mizzen, so that whatever disturbs the machine disturbs both.

use std::time::{Duration, Instant};

use anyhow::ensure;

use crate::bench::carrier::Carrier;
use crate::bench::figures::{Runs, Said};
use crate::bench::side::Side;

/// What the two sides do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pattern {
    /// The first sends, the second answers.
    PingPong,
    /// The first sends, the second receives.
    Stream,
}

/// How long one run of one of the two takes.
const RUN: Duration = Duration::from_millis(20);
/// A trial that takes this long tells how many rounds a run has.
const TRIAL: Duration = Duration::from_millis(4);
/// Rounds with a clock reading each, for the distribution: at most this many in a run, and about so long.
const TIMED_ROUNDS: u64 = 5000;
const TIMED: Duration = Duration::from_millis(5);

/// What the runs found.
pub(crate) struct Alternated {
    /// Nanoseconds for each message.
    pub(crate) runs: Runs,
    /// One-way times of single messages of ours; none for a stream.
    pub(crate) times: Vec<f64>,
}

pub(crate) fn alternate(
    side: &mut Side,
    pattern: Pattern,
    floor: &mut dyn Carrier,
    ours: &mut dyn Carrier,
) -> anyhow::Result<Alternated> {
    check(side, floor)?;
    check(side, ours)?;
    let floor_rounds = rounds_of_a_run(side, pattern, floor)?;
    let our_rounds = rounds_of_a_run(side, pattern, ours)?;
    let timed = our_rounds * TIMED.as_millis() as u64 / RUN.as_millis() as u64;
    let timed = timed.clamp(1, TIMED_ROUNDS);
    let (mut runs, mut times) = (Runs::default(), Vec::new());
    for _ in 0..side.plan.runs {
        let bare = run(side, pattern, floor, floor_rounds)?;
        let carried = run(side, pattern, ours, our_rounds)?;
        runs.push(bare, carried);
        if pattern == Pattern::PingPong {
            run_timed(side, ours, timed, &mut times)?;
        }
        side.say(&Said::Progress)?;
    }
    Ok(Alternated { runs, times })
}

/// What is sent arrives, and comes back.
fn check(side: &mut Side, carrier: &mut dyn Carrier) -> anyhow::Result<()> {
    const MARK: u64 = 0x5a;
    for round in 0..3 {
        carrier.prepare(1)?;
        side.meeting.meet();
        if side.is_first() {
            carrier.mark(MARK + round);
            carrier.serve(1)?;
        } else {
            carrier.receive()?;
            carrier.mark(carrier.marked());
            carrier.send()?;
        }
        let low = carrier.marked() & 0xff;
        ensure!(
            low == MARK + round,
            "a message arrived with other content than it was sent with"
        );
    }
    Ok(())
}

/// How many rounds take about as long as a run should, after the path has been warmed up.
fn rounds_of_a_run(
    side: &mut Side,
    pattern: Pattern,
    carrier: &mut dyn Carrier,
) -> anyhow::Result<u64> {
    let mut rounds = 2;
    loop {
        let each = run(side, pattern, carrier, rounds)?;
        let took = each * messages(pattern, rounds) as f64;
        let enough = took >= TRIAL.as_nanos() as f64;
        let wanted = (rounds as f64 * RUN.as_nanos() as f64 / took).ceil();
        match side
            .meeting
            .agree(if enough { wanted.max(1.0) as u64 } else { 0 })
        {
            0 => rounds *= 3,
            agreed => return Ok(agreed),
        }
    }
}

/// Nanoseconds for each message, as the first side sees it.
fn run(
    side: &mut Side,
    pattern: Pattern,
    carrier: &mut dyn Carrier,
    rounds: u64,
) -> anyhow::Result<f64> {
    let (mut left, mut took) = (rounds, Duration::ZERO);
    while left > 0 {
        let ready = carrier.prepare(left)?;
        side.meeting.meet();
        let started = Instant::now();
        match (pattern, side.is_first()) {
            (Pattern::PingPong, true) => carrier.serve(ready)?,
            (Pattern::PingPong, false) => carrier.answer(ready)?,
            (Pattern::Stream, true) => carrier.send_many(ready)?,
            (Pattern::Stream, false) => carrier.receive_many(ready)?,
        }
        if pattern == Pattern::Stream {
            side.meeting.meet();
        }
        took += started.elapsed();
        left -= ready;
    }
    Ok(took.as_nanos() as f64 / messages(pattern, rounds) as f64)
}

fn run_timed(
    side: &mut Side,
    carrier: &mut dyn Carrier,
    rounds: u64,
    times: &mut Vec<f64>,
) -> anyhow::Result<()> {
    let mut left = rounds;
    while left > 0 {
        let ready = carrier.prepare(left)?;
        side.meeting.meet();
        if side.is_first() {
            carrier.serve_timed(ready, times)?;
        } else {
            carrier.answer(ready)?;
        }
        left -= ready;
    }
    Ok(())
}

/// Messages that follow each other in so many rounds.
fn messages(pattern: Pattern, rounds: u64) -> u64 {
    match pattern {
        Pattern::PingPong => 2 * rounds,
        Pattern::Stream => rounds,
    }
}
