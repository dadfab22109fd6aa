//! Names at agents. That mistakes are found shows `ci/planted`.

use mizzen_sim::worlds::members::NAMES;
use mizzen_sim::{Record, campaign, run_caught};

/// Few, because they run with every change; `sim registry --seeds 0..20000` runs more.
const SEEDS: u64 = 200;

#[test]
fn names_are_linear_whatever_happens() {
    let totals = campaign(&NAMES, 0..SEEDS);
    assert_eq!(totals.complaints(&NAMES), [""; 0]);
}

#[test]
fn the_same_seed_is_the_same_history() {
    let hash = |seed| run_caught(&NAMES, seed, Record::Hash).hash;
    assert_eq!(hash(7), hash(7));
    assert_ne!(hash(7), hash(8));
}
