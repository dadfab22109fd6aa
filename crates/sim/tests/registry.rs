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

/// All who kept a bind were lost before who asked for it was told, and with them all who had seen it. Another got the name then.
#[test]
fn a_bind_that_was_not_told_may_be_lost_with_all_who_kept_it() {
    let report = run_caught(&NAMES, 1_794_950_747_002_345, Record::Hash);
    assert_eq!(report.violation, None);
    let lost = "a bind that was not told was lost with all who kept it";
    assert_eq!(report.marks.count(lost), 1, "the seed has another history");
}
