//! The measurements, as all sides take part in them.

mod alternate;
mod asleep;
pub(crate) mod collectives;
mod found;
pub(crate) mod grid;
mod idle;
mod messages;
mod rpc;
mod threads;

use super::figures::Said;
use super::noise::{Noise, TOLERATED_SPREAD};
use super::plan::Test;
use super::side::Side;
use found::Found;

/// Measures everything in the plan, in step with the other sides.
pub(crate) fn all(side: &mut Side) -> anyhow::Result<()> {
    match side.plan.test {
        Test::Latency | Test::Rate | Test::Bandwidth => {
            for size in side.plan.sizes.clone() {
                watched(side, |side| messages::measure(side, size))?;
            }
        }
        Test::Rpc => {
            for size in side.plan.sizes.clone() {
                watched(side, |side| rpc::measure(side, size))?;
            }
        }
        Test::Threads | Test::Streams => {
            for pairs in side.plan.threads.clone() {
                watched(side, |side| threads::measure(side, pairs))?;
            }
        }
        Test::Idle => watched(side, idle::measure)?,
        // The front end does the one, and members of a group the other: there are no sides.
        Test::Startup | Test::Collectives => (),
    }
    Ok(())
}

/// Measures, and says what was found and whether it was disturbed.
fn watched(
    side: &mut Side,
    measure: impl FnOnce(&mut Side) -> anyhow::Result<Found>,
) -> anyhow::Result<()> {
    side.clear_memory();
    let spent = side.processor_time();
    let noise = Noise::watch(&side.plan.cores, spent);
    let mut found = measure(side)?;
    let disturbed = noise.judge(side.processor_time());
    let spread = found.runs.floor_spread();
    if let Some(sentence) = &disturbed {
        side.say(&Said::Disturbed(sentence.clone()))?;
    } else if spread > TOLERATED_SPREAD && side.plan.test != Test::Idle {
        side.say(&Said::Disturbed(format!(
            "the floor itself was {spread:.1} times slower in slow runs than in fast ones"
        )))?;
    }
    let spread_matters = side.plan.test != Test::Idle;
    found.figures.noisy = disturbed.is_some() || spread_matters && spread > TOLERATED_SPREAD;
    side.say(&Said::Figures(Box::new(found.figures)))
}
