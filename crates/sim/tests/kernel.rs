//! What the simulator promises, whatever it simulates.

use mizzen_sim::{Record, campaign, run_caught, worlds};

#[test]
fn one_seed_has_one_history_for_every_scenario() {
    for scenario in worlds::ALL {
        for seed in 0..30 {
            let [one, two] =
                [Record::Hash, Record::Hash].map(|record| run_caught(scenario, seed, record));
            let lines = run_caught(scenario, seed, Record::Lines);
            assert_eq!(one.hash, two.hash, "{} seed {seed}", scenario.name);
            assert_eq!(one.hash, lines.hash, "{} seed {seed}", scenario.name);
            assert_eq!(one.traffic, two.traffic, "{} seed {seed}", scenario.name);
        }
    }
}

#[test]
fn two_seeds_have_two_histories() {
    let scenario = worlds::network::SCENARIO;
    let [one, two] = [1, 2].map(|seed| run_caught(&scenario, seed, Record::Hash));
    assert_ne!(one.hash, two.hash);
}

#[test]
fn a_thousand_histories_of_each_scenario_are_as_they_should_be() {
    for scenario in worlds::ALL {
        let totals = campaign(scenario, 0..1000);
        let complaints = totals.complaints(scenario);
        assert!(complaints.is_empty(), "{}: {complaints:?}", scenario.name);
    }
}
