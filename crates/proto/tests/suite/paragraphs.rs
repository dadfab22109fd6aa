//! That no paragraph of the specification is without a test.

const SPECIFICATION: &str = include_str!("../../../../docs/wire.md");

const TESTS: [&str; 3] = [
    include_str!("frames.rs"),
    include_str!("link.rs"),
    include_str!("random.rs"),
];

const SESSIONS: &str = include_str!("../../../../docs/wire-sessions.md");

const SESSION_TESTS: [&str; 4] = [
    include_str!("session/cases.rs"),
    include_str!("session/claims.rs"),
    include_str!("session/cuts.rs"),
    include_str!("session/hostile.rs"),
];

#[test]
fn every_numbered_paragraph_has_a_test() {
    check(SPECIFICATION, &TESTS, 35);
}

#[test]
fn every_numbered_paragraph_about_sessions_has_a_test() {
    check(SESSIONS, &SESSION_TESTS, 20);
}

fn check(specification: &str, tests: &[&str], at_least: usize) {
    let numbered = specification.lines().filter_map(|line| {
        let (number, _) = line.strip_prefix("**")?.split_once("** ")?;
        Some(number)
    });
    let cited = |number: &str| {
        // A citation ends where its number ends: §1.1 is not cited by §1.10.
        tests.iter().any(|test| {
            test.match_indices(&format!("§{number}"))
                .any(|(at, found)| {
                    let after = test[at + found.len()..].chars().next();
                    !after.is_some_and(|next| next.is_ascii_digit())
                })
        })
    };
    let (with, without): (Vec<_>, Vec<_>) = numbered.partition(|number| cited(number));
    assert!(with.len() > at_least, "found only {with:?}");
    assert!(without.is_empty(), "without a test: {without:?}");
}
