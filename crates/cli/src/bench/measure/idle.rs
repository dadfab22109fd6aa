//! Processor time of participants that wait for a message, beside that of participants that sleep in a futex.

use std::time::{Duration, Instant};

use anyhow::ensure;
use mizzen::{Mailbox, RetrieveError};
use mizzen_shm::futex;
use rustix::time::ClockId;

use super::found::Found;
use crate::bench::figures::{Runs, Said};
use crate::bench::layout::FUTEX;
use crate::bench::plan::Path;
use crate::bench::side::{Side, spent};

/// How long one run of one of the two takes: longer than a sleeping mailbox's nap.
const RUN: Duration = Duration::from_millis(1200);

const FLOOR_NAME: &str = "sleeping in a futex";

pub(crate) fn measure(side: &mut Side) -> anyhow::Result<Found> {
    let inbox = meet_neighbours(side)?;
    let mut runs = Runs::default();
    for _ in 0..side.plan.runs {
        let memory = side.memory;
        let floor = worst_share(side, || {
            futex::wait(memory.half(FUTEX), 0, Some(RUN));
            Ok(())
        })?;
        let ours = worst_share(side, || {
            let outcome = inbox.retrieve_timeout(RUN);
            let silent = matches!(
                outcome,
                Err(mizzen::Error::Retrieve(RetrieveError::TimedOut { .. }))
            );
            ensure!(silent, "nobody sends, but there is {outcome:?}");
            Ok(())
        })?;
        runs.push(floor, ours);
        side.say(&Said::Progress)?;
    }
    let mut figures = runs.figures(&side.plan, "cpu%", FLOOR_NAME);
    figures.processes = Some(side.plan.processes);
    Ok(Found { runs, figures })
}

/// Everyone sends one message to the next, so that links exist.
fn meet_neighbours(side: &Side) -> anyhow::Result<Mailbox> {
    let inbox = side.deck.mailbox()?;
    side.deck.bind(&format!("idler {}", side.number), &inbox)?;
    let next = (side.number + 1) % side.plan.processes as usize;
    side.deck.fetch(&format!("idler {next}"))?.send(&0u64)?;
    inbox.receive::<u64>()?;
    Ok(inbox)
}

/// The largest share of a core, in per cent, that a participant uses while it waits.
fn worst_share(side: &mut Side, wait: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<f64> {
    let clock = match side.plan.path {
        Path::Thread => ClockId::ThreadCPUTime,
        _ => ClockId::ProcessCPUTime,
    };
    side.meeting.meet();
    let (started, before) = (Instant::now(), spent(clock));
    wait()?;
    let used = spent(clock) - before;
    let share = used.as_secs_f64() / started.elapsed().as_secs_f64() * 100.0;
    Ok(side.meeting.gather(share).into_iter().fold(0.0, f64::max))
}
