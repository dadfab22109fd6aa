//! Who lives, and who knows it; and that mistakes are found.

use mizzen_sim::worlds::members::{MISTAKES, SCENARIO};
use mizzen_sim::{Record, campaign, run_caught};

/// Few, because they run with every change; `sim members --seeds 0..20000` runs more.
const SEEDS: u64 = 300;

/// In so many seeds each planted mistake must show.
const SEEDS_FOR_A_MISTAKE: u64 = 400;

#[test]
fn the_members_agree_whatever_happens() {
    let totals = campaign(&SCENARIO, 0..SEEDS);
    assert_eq!(totals.complaints(&SCENARIO), [""; 0]);
}

#[test]
fn the_same_seed_is_the_same_history() {
    let hash = |seed| run_caught(&SCENARIO, seed, Record::Hash).hash;
    assert_eq!(hash(7), hash(7));
    assert_ne!(hash(7), hash(8));
}

#[test]
fn each_mistake_is_found_by_the_oracle_that_is_there_for_it() {
    for scenario in MISTAKES {
        let finds = |seed: &u64| {
            let report = run_caught(scenario, *seed, Record::Hash);
            report
                .violation
                .is_some_and(|violation| scenario.expected.contains(&violation.oracle))
        };
        let found = (0..SEEDS_FOR_A_MISTAKE).find(finds);
        println!("{}: seed {found:?}", scenario.name);
        assert!(found.is_some(), "{} was not found", scenario.name);
    }
}
