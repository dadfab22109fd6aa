//! The time from sending a message to its arrival at a receiver that slept.
//!
//! Here the second side sends, so that the first, which reports the results, is the sleeper. Both read the same clock: the time of
//! sending travels in the message.

use std::time::{Duration, Instant};

use rustix::time::ClockId;

use super::alternate::Alternated;
use crate::bench::carrier::Carrier;
use crate::bench::figures::{Runs, Said, quantile};
use crate::bench::side::{Side, spent};

/// Long enough for a receiver to fall asleep, and for its core: an idle core of a virtual machine looks for work for up to
/// 200 µs before it halts, and wakes up faster until then.
const PAUSE: Duration = Duration::from_millis(1);
/// Messages of one run.
const MESSAGES: u64 = 40;

pub(crate) fn alternate(
    side: &mut Side,
    floor: &mut dyn Carrier,
    ours: &mut dyn Carrier,
) -> anyhow::Result<Alternated> {
    let (mut runs, mut times) = (Runs::default(), Vec::new());
    run(side, floor)?;
    run(side, ours)?;
    for _ in 0..side.plan.runs {
        let bare = run(side, floor)?;
        let carried = run(side, ours)?;
        runs.push(quantile(&bare, 0.5), quantile(&carried, 0.5));
        times.extend(carried);
        side.say(&Said::Progress)?;
    }
    Ok(Alternated { runs, times })
}

/// One-way times in nanoseconds, at the first side.
fn run(side: &mut Side, carrier: &mut dyn Carrier) -> anyhow::Result<Vec<f64>> {
    let (mut times, mut left) = (Vec::new(), MESSAGES);
    while left > 0 {
        let ready = carrier.prepare(left)?;
        side.meeting.meet();
        for _ in 0..ready {
            if side.is_first() {
                carrier.receive()?;
                times.push(now().saturating_sub(carrier.marked()) as f64);
                carrier.send()?;
            } else {
                let until = Instant::now() + PAUSE;
                while Instant::now() < until {
                    std::hint::spin_loop();
                }
                carrier.mark(now());
                carrier.send()?;
                carrier.receive()?;
            }
        }
        left -= ready;
    }
    Ok(times)
}

/// Nanoseconds of a clock that is the same in all processes of a host.
fn now() -> u64 {
    spent(ClockId::Monotonic).as_nanos() as u64
}
