//! What is counted in a run: marks that something did occur, and traffic.

use std::collections::BTreeMap;

/// How often things occurred that a campaign must have seen at least once, or it showed nothing about them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Marks {
    counts: BTreeMap<&'static str, u64>,
}

/// Messages and bytes of one machine, over all its lives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Messages it sent.
    pub sent: u64,
    /// Bytes it sent.
    pub bytes_sent: u64,
    /// Messages that reached it.
    pub received: u64,
    /// Bytes that reached it.
    pub bytes_received: u64,
}

impl Marks {
    /// It occurred.
    pub fn add(&mut self, mark: &'static str) {
        *self.counts.entry(mark).or_default() += 1;
    }

    /// How often it occurred.
    pub fn count(&self, mark: &str) -> u64 {
        self.counts.get(mark).copied().unwrap_or(0)
    }

    /// All that occurred, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.counts.iter().map(|(mark, count)| (*mark, *count))
    }

    /// Adds those of another run.
    pub fn merge(&mut self, other: &Marks) {
        for (mark, count) in other.iter() {
            *self.counts.entry(mark).or_default() += count;
        }
    }
}
