//! What waits in a mailbox, in the order in which it came, and how the next entry of one rank is found among others'.

use std::collections::VecDeque;

use super::entry::{Delivery, Entry};
use crate::rank::{ProcessId, Rank};

/// The entries that nobody has taken yet.
///
/// It is bounded by its senders' windows: an entry is a message for which its sender has spent a credit, which returns when the
/// message is retrieved, or the news of one process's end, told once. Those of other ranks wait here as long as the owner asks
/// only for one rank's, and that is no exception: their credits are not returned, so that they get no longer than a window.
#[derive(Debug, Default)]
pub(super) struct Queue {
    entries: VecDeque<Entry>,
    /// How many entries were taken out, from anywhere: while this stays, every entry stays where it is.
    taken: u64,
}

/// How far a search has come, so that it does not begin anew with every message that comes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Searched {
    taken: u64,
    before: usize,
}

/// Whose entry is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) rank: Rank,
    /// The process because of which the whole job fails: its end is everybody's.
    pub(crate) failed: Option<ProcessId>,
    /// The life of the rank whose messages a network may still bring: the news of its end, which others tell, is too early.
    pub(crate) on_network: Option<ProcessId>,
}

impl Wanted {
    pub(super) fn is(&self, entry: &Entry) -> bool {
        match entry {
            Entry::Message(delivery) => delivery.source.rank == self.rank,
            Entry::Gone(gone) => gone.rank() == self.rank || self.failed == Some(gone.process()),
        }
    }
}

impl Queue {
    pub(super) fn push(&mut self, entry: Entry) {
        self.entries.push_back(entry);
    }

    pub(super) fn pop(&mut self) -> Option<Entry> {
        let entry = self.entries.pop_front()?;
        self.taken += 1;
        Some(entry)
    }

    /// Where the first wanted entry is, if it is not among those that were searched before.
    pub(super) fn find(
        &self,
        is_it: impl Fn(&Entry) -> bool,
        searched: &mut Searched,
    ) -> Option<usize> {
        if searched.taken != self.taken {
            let taken = self.taken;
            *searched = Searched { taken, before: 0 };
        }
        let mut rest = self.entries.range(searched.before..);
        let found = rest.position(is_it);
        let found = found.map(|further| searched.before + further);
        searched.before = found.unwrap_or(self.entries.len());
        found
    }

    pub(super) fn find_message(&self, is_it: impl Fn(&Delivery) -> bool) -> Option<usize> {
        self.entries
            .iter()
            .position(|entry| matches!(entry, Entry::Message(delivery) if is_it(delivery)))
    }

    pub(super) fn take(&mut self, place: usize) -> Option<Entry> {
        let entry = self.entries.remove(place)?;
        self.taken += 1;
        Some(entry)
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }
}
