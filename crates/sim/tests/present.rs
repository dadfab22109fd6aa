//! What the present protocols do wrong, seen in the simulator. Each test is turned round when that is fixed.

use mizzen_sim::{Record, Scenario, campaign, run_caught, worlds};

/// Some seed fails by this oracle, each time it is run, and none by one that is not expected.
fn shows(scenario: &Scenario, oracle: &str) {
    let totals = campaign(scenario, 0..60);
    assert!(totals.violations.is_empty(), "{:?}", totals.violations);
    let (_, seed) = totals.expected[oracle];
    let report = run_caught(scenario, seed, Record::Lines);
    let violation = report
        .violation
        .expect("the same seed has the same history");
    assert_eq!(violation.oracle, oracle);
}

/// Review A5: the link ends with its connection, and nobody dials a life that is held to be gone.
#[test]
fn a_broken_connection_separates_a_living_pair_for_good_until_sessions_come() {
    shows(&worlds::link::CUT, "living pairs stay together");
}
