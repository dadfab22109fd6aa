//! Every way of each operation that a group has to choose between: whether the one that is chosen is the fastest.

use mizzen::group::{Costs, Group, Member};
use mizzen_proto::group::plan::{Operation, Way};

use super::collectives::{Ours, Timed, rounds_of_a_run, sizes};
use super::found::Found;
use super::watched;
use crate::bench::figures::{Runs, Said, quantile};
use crate::bench::plan::Collective;
use crate::bench::side::Side;

/// By what a way was chosen: by what the group has measured, or by what is assumed of any machine.
const MEASURED: &str = "measured";
const ASSUMED: &str = "assumed";
pub(crate) const CHOSEN_BY: [&str; 2] = [MEASURED, ASSUMED];

/// Measures all ways of the operations of the plan, in step with the other members.
pub(crate) fn all(side: &mut Side, group: &mut Group) -> anyhow::Result<()> {
    let measured = group.tune(None)?;
    for collective in side.plan.operations.clone() {
        for size in sizes(collective, &side.plan.sizes) {
            let operation = operation(collective);
            let (ways, _) = group.ways(operation, size, &measured);
            if ways.len() < 2 {
                continue;
            }
            let (_, by_measured) = group.ways(operation, size, &measured);
            let (_, by_assumed) = group.ways(operation, size, &Costs::default());
            let mut seen = Vec::new();
            watched(side, |side| {
                seen = times(side, group, collective, size, &ways)?;
                Ok(found(
                    side,
                    collective,
                    size,
                    &seen,
                    (MEASURED, by_measured),
                ))
            })?;
            watched(side, |side| {
                Ok(found(side, collective, size, &seen, (ASSUMED, by_assumed)))
            })?;
        }
    }
    Ok(())
}

/// The times of each way, run by run: in each, all ways take their turns.
fn times(
    side: &mut Side,
    group: &mut Group,
    operation: Collective,
    size: usize,
    ways: &[Way],
) -> anyhow::Result<Vec<(Way, Vec<f64>)>> {
    let mut ours = Ours::new(side, group, operation, size)?;
    let mut rounds = Vec::new();
    for way in ways {
        ours.force(Some(*way));
        ours.check()?;
        rounds.push(rounds_of_a_run(side, &mut ours)?);
    }
    let mut times: Vec<(Way, Vec<f64>)> = ways.iter().map(|way| (*way, Vec::new())).collect();
    for _ in 0..side.plan.runs {
        for ((way, times), rounds) in times.iter_mut().zip(&rounds) {
            ours.force(Some(*way));
            times.push(ours.run(side, *rounds)?);
        }
        side.say(&Said::Progress)?;
    }
    ours.force(None);
    Ok(times)
}

/// The chosen way beside the fastest.
fn found(
    side: &Side,
    operation: Collective,
    size: usize,
    times: &[(Way, Vec<f64>)],
    (by, chosen): (&str, Option<Way>),
) -> Found {
    let median = |(_, times): &(Way, Vec<f64>)| quantile(times, 0.5);
    let fastest = times
        .iter()
        .min_by(|one, two| median(one).total_cmp(&median(two)));
    let taken = times.iter().find(|(way, _)| Some(*way) == chosen);
    let mut runs = Runs::default();
    let mut names = (String::new(), String::new());
    if let (Some((best, least)), Some((way, own))) = (fastest, taken) {
        names = (name(*best), name(*way));
        for (least, own) in least.iter().zip(own) {
            runs.push(*least, *own);
        }
    }
    let mut figures = runs.figures(&side.plan, "ns", &names.0);
    figures.variant = format!("{by}: {}", names.1);
    figures.operation = Some(operation);
    figures.size = Some(size);
    figures.processes = Some(side.plan.processes);
    figures.threads = side.plan.members_each;
    Found { runs, figures }
}

/// As the group plans it: roots do not matter for the choice.
fn operation(collective: Collective) -> Operation {
    let root = Member(0);
    match collective {
        Collective::Barrier => Operation::Barrier,
        Collective::Broadcast | Collective::BroadcastLent => Operation::Broadcast(root),
        Collective::Reduce => Operation::Reduce(root),
        Collective::AllReduce | Collective::AllReduceLent => Operation::AllReduce,
        Collective::Gather => Operation::Gather(root),
        Collective::Scatter => Operation::Scatter(root),
        Collective::AllGather => Operation::AllGather,
        Collective::AllToAll => Operation::AllToAll,
        Collective::ReduceScatter => Operation::ReduceScatter,
        Collective::Scan => Operation::Scan,
    }
}

fn name(way: Way) -> String {
    let shape = format!("{:?}", way.shape).to_lowercase();
    let levels = if way.by_levels { " by levels" } else { "" };
    format!("{shape}{levels}")
}
