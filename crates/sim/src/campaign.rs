//! Many seeds of one scenario: totals, and what must not be.

use std::fmt;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::history::Record;
use crate::tally::Marks;
use crate::world::{Report, Violation};

/// A scenario with a name.
#[derive(Debug, Clone, Copy)]
pub struct Scenario {
    /// For the command line.
    pub name: &'static str,
    /// What it is, in a sentence.
    pub about: &'static str,
    /// The oracle that does not agree as things are: some seeds must fail by it, and none by another.
    pub expected: Option<&'static str>,
    /// What must have occurred in a campaign of some size, or it showed nothing about it.
    pub sometimes: &'static [&'static str],
    /// Runs the history of one seed.
    pub run: fn(u64, Record) -> Report,
}

/// What the histories of a campaign came to.
#[derive(Debug, Default)]
pub struct Totals {
    /// How many histories were run.
    pub histories: u64,
    /// How many things happened in them.
    pub events: u64,
    /// How many messages were sent.
    pub messages: u64,
    /// How many bytes were sent.
    pub bytes: u64,
    /// All hashes in one.
    pub hash: u64,
    /// What occurred.
    pub marks: Marks,
    /// In how many histories the expected violation was.
    pub expected: u64,
    /// The seed of the first of them.
    pub first_expected: Option<u64>,
    /// The others.
    pub violations: Vec<(u64, Violation)>,
}

/// Runs those seeds. It stops after a few violations: the first is looked at anyway.
pub fn campaign(scenario: &Scenario, seeds: Range<u64>) -> Totals {
    let mut totals = Totals::default();
    for seed in seeds {
        let report = run_caught(scenario, seed, Record::Hash);
        totals.histories += 1;
        totals.events += report.events;
        totals.messages += report.traffic.iter().map(|one| one.sent).sum::<u64>();
        totals.bytes += report.traffic.iter().map(|one| one.bytes_sent).sum::<u64>();
        totals.hash = totals.hash.rotate_left(5) ^ report.hash;
        totals.marks.merge(&report.marks);
        match report.violation {
            Some(violation) if Some(violation.oracle) == scenario.expected => {
                totals.expected += 1;
                totals.first_expected.get_or_insert(seed);
            }
            Some(violation) => totals.violations.push((seed, violation)),
            None => (),
        }
        if totals.violations.len() >= VIOLATIONS_MAX {
            break;
        }
    }
    totals
}

/// Runs one seed; a panic is a violation too.
pub fn run_caught(scenario: &Scenario, seed: u64, record: Record) -> Report {
    let run = AssertUnwindSafe(|| (scenario.run)(seed, record));
    catch_unwind(run).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        Report {
            violation: Some(Violation::new("no panic", text.unwrap_or("a panic"))),
            hash: 0,
            lines: Vec::new(),
            marks: Marks::default(),
            traffic: Vec::new(),
            events: 0,
            ended: mizzen_proto::time::Time(0),
        }
    })
}

impl Totals {
    /// What speaks against the campaign, as sentences; none if it is as it should be.
    pub fn complaints(&self, scenario: &Scenario) -> Vec<String> {
        let mut complaints: Vec<String> = Vec::new();
        for (seed, violation) in &self.violations {
            complaints.push(format!(
                "seed {seed}: {}: {}",
                violation.oracle, violation.what
            ));
        }
        // A few seeds need not see everything.
        if self.histories < MARKS_FROM {
            return complaints;
        }
        if let Some(oracle) = scenario.expected.filter(|_| self.expected == 0) {
            complaints.push(format!(
                "no seed failed by {oracle:?}, which is expected: is it fixed?"
            ));
        }
        for mark in scenario.sometimes {
            if self.marks.count(mark) == 0 {
                complaints.push(format!("it never occurred: {mark}"));
            }
        }
        complaints
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} histories, {} events, {} messages, {} bytes, hash {:016x}",
            self.histories, self.events, self.messages, self.bytes, self.hash
        )?;
        for (mark, count) in self.marks.iter() {
            writeln!(f, "{count:>12}  {mark}")?;
        }
        if let Some(seed) = self.first_expected {
            writeln!(
                f,
                "{:>12}  failed as expected, first seed {seed}",
                self.expected
            )?;
        }
        Ok(())
    }
}

/// A campaign ends after so many.
const VIOLATIONS_MAX: usize = 5;
/// From so many histories on, all marks must have been seen.
pub const MARKS_FROM: u64 = 1000;
