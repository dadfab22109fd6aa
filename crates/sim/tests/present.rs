//! What the present protocols do wrong, seen in the simulator. Each test is turned round when that is fixed.

use mizzen_sim::{Record, campaign, run_caught, worlds};

/// Review A5: the link ends with its connection, and nobody dials a life that is held to be gone.
#[test]
fn a_broken_connection_separates_a_living_pair_for_good_until_sessions_come() {
    let totals = campaign(&worlds::link::CUT, 0..200);
    assert!(totals.violations.is_empty(), "{:?}", totals.violations);
    let seed = totals.first_expected.expect("no living pair was separated");
    let report = run_caught(&worlds::link::CUT, seed, Record::Lines);
    let violation = report
        .violation
        .expect("the same seed has the same history");
    assert_eq!(violation.oracle, "living pairs stay together");
}
