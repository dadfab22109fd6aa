//! What the front end starts: the sides of a measurement, as a process each or as threads of one.

use anyhow::{Context, ensure};
use mizzen::Deck;
use mizzen::group::Group;

use super::measure;
use super::memory::Memory;
use super::plan::{Path, Plan, Test, Work};
use super::side::Side;
use crate::run::say;

/// Does what the front end said.
pub(crate) fn serve(work: &str) -> anyhow::Result<()> {
    let work = serde_json::from_str(work)
        .context("this command is run by `mizzen bench`; see `mizzen bench --help`")?;
    match work {
        Work::Nothing => Ok(()),
        Work::Join => Deck::join().map(drop).map_err(Into::into),
        Work::Measure(plan) if plan.test == Test::Collectives => as_members(&plan),
        Work::Measure(plan) if plan.path == Path::Thread => as_threads(&plan),
        Work::Measure(plan) => as_process(*plan),
    }
}

fn as_process(plan: Plan) -> anyhow::Result<()> {
    let deck = join(&plan)?;
    let memory = Memory::open(&plan.memory)?;
    measure::all(&mut Side::new(deck.rank().0 as usize, plan, deck, memory)?)
}

/// The members of a group that this process has.
fn as_members(plan: &Plan) -> anyhow::Result<()> {
    let deck = join(plan)?;
    let memory = Memory::open(&plan.memory)?;
    let measure = |mut group: Group| {
        let number = group.member().index();
        let mut side = Side::new(number, plan.clone(), deck.clone(), memory)?;
        if plan.grid {
            return measure::grid::all(&mut side, &mut group);
        }
        measure::collectives::all(&mut side, &mut group)
    };
    let mut group = deck.group()?;
    if plan.members_each == 1 {
        return measure(group);
    }
    let seats = group.seats(plan.members_each as usize)?;
    std::thread::scope(|threads| {
        let run = |seat| threads.spawn(|| measure(seat));
        let members: Vec<_> = seats.into_iter().map(run).collect();
        members
            .into_iter()
            .try_for_each(|member| member.join().expect("a panic is an error of ours"))
    })
}

/// Joins the job that the front end has started.
fn join(plan: &Plan) -> anyhow::Result<Deck> {
    let deck = Deck::join()?;
    let expected = plan.job_size();
    ensure!(
        deck.size() == expected,
        "a job of {expected} processes was expected, not of {}; start it with `mizzen bench`",
        deck.size()
    );
    Ok(deck)
}

fn as_threads(plan: &Plan) -> anyhow::Result<()> {
    let deck = Deck::join()?;
    let memory = Memory::open(&plan.memory)?;
    std::thread::scope(|threads| {
        let participant = |number: u32| {
            let (deck, memory) = (deck.clone(), memory);
            threads.spawn(move || {
                let outcome = Side::new(number as usize, plan.clone(), deck, memory)
                    .and_then(|mut side| measure::all(&mut side));
                if let Err(error) = outcome {
                    // The others would wait for this one for ever.
                    say(&format!("{error:#}."));
                    std::process::exit(1);
                }
            })
        };
        let participants: Vec<_> = (0..plan.participants()).map(participant).collect();
        for participant in participants {
            participant.join().expect("a panic is an error of ours");
        }
    });
    Ok(())
}
