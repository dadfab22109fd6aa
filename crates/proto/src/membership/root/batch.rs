//! Decisions that are not told yet: those that come together make one epoch.

use crate::membership::{Entry, MAX_ENTRIES, Pace};
use crate::time::Time;

#[derive(Debug, Default)]
pub(super) struct Batch {
    entries: Vec<Entry>,
    /// When the first and the latest came.
    span: Option<(Time, Time)>,
}

impl Batch {
    pub(super) fn push(&mut self, entry: Entry, now: Time) {
        self.entries.push(entry);
        let first = self.span.map_or(now, |(first, _)| first);
        self.span = Some((first, now));
    }

    pub(super) fn take(&mut self) -> Vec<Entry> {
        self.span = None;
        std::mem::take(&mut self.entries)
    }

    /// When it is to be told.
    pub(super) fn closes_at(&self, pace: &Pace) -> Option<Time> {
        let (first, latest) = self.span?;
        Some((latest + pace.batch_quiet).min(first + pace.batch_most))
    }

    /// Whether what one more event decides may not fit.
    pub(super) fn is_full(&self) -> bool {
        self.entries.len() + MOST_AT_ONCE > MAX_ENTRIES
    }

    /// Whether the job ends with it.
    pub(super) fn ends_job(&self) -> bool {
        let ends = |entry: &Entry| matches!(entry, Entry::JobEnds(_));
        self.entries.iter().any(ends)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

/// The most decisions that follow from one event: an end, a restart or the end of the job, and that all is over.
const MOST_AT_ONCE: usize = 4;
