//! What the front end starts: the sides of a measurement, as a process each or as threads of one.

use anyhow::{Context, ensure};
use mizzen::Deck;

use super::measure;
use super::memory::Memory;
use super::plan::{Path, Plan, Work};
use super::side::Side;
use crate::run::say;

/// Does what the front end said.
pub(crate) fn serve(work: &str) -> anyhow::Result<()> {
    let work = serde_json::from_str(work)
        .context("this command is run by `mizzen bench`; see `mizzen bench --help`")?;
    match work {
        Work::Nothing => Ok(()),
        Work::Join => Deck::join().map(drop).map_err(Into::into),
        Work::Measure(plan) if plan.path == Path::Thread => as_threads(&plan),
        Work::Measure(plan) => as_process(*plan),
    }
}

fn as_process(plan: Plan) -> anyhow::Result<()> {
    let deck = Deck::join()?;
    let expected = plan.participants();
    ensure!(
        deck.size() == expected,
        "a job of {expected} processes was expected, not of {}; start it with `mizzen bench`",
        deck.size()
    );
    let memory = Memory::open(&plan.memory)?;
    measure::all(&mut Side::new(deck.rank().0 as usize, plan, deck, memory)?)
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
