//! What waits in a mailbox, in the order in which it came, and how the next entry of one rank is found among others'.

use std::collections::VecDeque;

use super::entry::{Delivery, Entry};
use crate::error::Gone;
use crate::rank::{ProcessId, Rank};

/// The entries that nobody has taken yet.
///
/// It is bounded by its senders' windows: an entry is a message for which its sender has spent a credit, which returns when the
/// message is retrieved, or the news of one process's end, told once. Those of other ranks wait here as long as the owner asks
/// only for one rank's, and that is no exception: their credits are not returned, so that they get no longer than a window.
#[derive(Debug, Default)]
pub(super) struct Queue {
    entries: VecDeque<Entry>,
    /// How often an entry was taken out, or put before others: while this stays, every entry stays where it is.
    moves: u64,
}

/// How far a search has come, so that it does not begin anew with every message that comes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Searched {
    moves: u64,
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
    pub(crate) fn is(&self, entry: &Entry) -> bool {
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

    /// Puts the news of an end before what later lives of the same rank have sent.
    pub(super) fn push_gone(&mut self, gone: Gone) {
        let (rank, last) = (gone.rank(), gone.process().incarnation);
        let is_later = |entry: &Entry| matches!(entry, Entry::Message(delivery) if delivery.source.rank == rank && delivery.source.incarnation > last);
        match self.entries.iter().position(is_later) {
            Some(place) => {
                self.entries.insert(place, Entry::Gone(gone));
                self.moves += 1;
            }
            None => self.entries.push_back(Entry::Gone(gone)),
        }
    }

    /// Takes the first entry whose time has come.
    pub(super) fn pop(&mut self, is_too_early: impl Fn(&Entry) -> bool) -> Option<Entry> {
        let first = self.entries.front()?;
        if is_too_early(first) {
            let place = self.find(|_| true, is_too_early, &mut Searched::default())?;
            return self.take(place);
        }
        self.moves += 1;
        self.entries.pop_front()
    }

    /// Where the first wanted entry is, if it is not among those that were searched before. One that comes too early keeps those
    /// behind it that are of the same rank.
    pub(super) fn find(
        &self,
        is_it: impl Fn(&Entry) -> bool,
        is_too_early: impl Fn(&Entry) -> bool,
        searched: &mut Searched,
    ) -> Option<usize> {
        if searched.moves != self.moves {
            let moves = self.moves;
            *searched = Searched { moves, before: 0 };
        }
        // The ranks of which something was too early, and where the first of it is.
        let (mut held, mut first_held) = (Vec::new(), None);
        let rest = self.entries.range(searched.before..);
        let mut rest = (searched.before..)
            .zip(rest)
            .filter(|(_, entry)| is_it(entry));
        let found = rest.find(|(place, entry)| {
            let rank = entry.rank();
            let is_held = held.contains(&rank);
            if !is_held && is_too_early(entry) {
                held.push(rank);
                first_held.get_or_insert(*place);
                return false;
            }
            !is_held
        });
        let found = found.map(|(place, _)| place);
        searched.before = first_held.or(found).unwrap_or(self.entries.len());
        found
    }

    /// Whether the news of the end of a life before this one waits.
    pub(super) fn has_gone_before(&self, life: ProcessId) -> bool {
        let is_before =
            |gone: &Gone| gone.rank() == life.rank && gone.process().incarnation < life.incarnation;
        let mut entries = self.entries.iter();
        entries.any(|entry| matches!(entry, Entry::Gone(gone) if is_before(gone)))
    }

    pub(super) fn find_message(&self, is_it: impl Fn(&Delivery) -> bool) -> Option<usize> {
        self.entries
            .iter()
            .position(|entry| matches!(entry, Entry::Message(delivery) if is_it(delivery)))
    }

    pub(super) fn take(&mut self, place: usize) -> Option<Entry> {
        let entry = self.entries.remove(place)?;
        self.moves += 1;
        Some(entry)
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }
}
