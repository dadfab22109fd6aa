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

    pub(super) fn is_full(&self) -> bool {
        self.entries.len() >= MAX_ENTRIES
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}
