//! Which posted receive gets a message: the oldest that wants it.
//!
//! Receives of one rank wait in a queue of that rank, receives of anybody in one of theirs, and each has a number by which the
//! older of two first ones is found. So a match takes the same time however many are posted. One that is withdrawn is left where
//! it is, until it comes first or those like it are as many as the others.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::slot::{Slot, Whose};
use crate::rank::Rank;

/// Withdrawn receives that may lie in a queue in any case.
const DEAD: usize = 32;

/// The receives that wait for messages.
#[derive(Default)]
pub(super) struct Board {
    anybody: Queue,
    /// None of them is empty.
    ranks: BTreeMap<Rank, Queue>,
    next: u64,
}

#[derive(Default)]
struct Queue {
    slots: VecDeque<(u64, Arc<Slot>)>,
    /// How many of them were withdrawn. The first was not.
    dead: usize,
}

impl Queue {
    fn first(&self) -> Option<u64> {
        self.slots.front().map(|(number, _)| *number)
    }

    fn pop(&mut self) -> Option<Arc<Slot>> {
        let (_, slot) = self.slots.pop_front()?;
        self.trim();
        Some(slot)
    }

    fn note_dead(&mut self) {
        self.dead += 1;
        if self.dead > DEAD.max(self.slots.len() / 2) {
            self.slots.retain(|(_, slot)| slot.is_posted());
            self.dead = 0;
        }
        self.trim();
    }

    fn trim(&mut self) {
        while self.dead > 0
            && self
                .slots
                .front()
                .is_some_and(|(_, slot)| !slot.is_posted())
        {
            self.slots.pop_front();
            self.dead -= 1;
        }
        if self.slots.is_empty() && self.slots.capacity() > DEAD {
            self.slots = VecDeque::new();
        }
    }
}

impl Board {
    /// Adds a receive. `true` if it is the first of its rank.
    pub(super) fn post(&mut self, slot: Arc<Slot>) -> bool {
        let number = self.next;
        self.next += 1;
        let queue = match slot.from {
            Whose::Anybody => &mut self.anybody,
            Whose::Rank(rank, _) => self.ranks.entry(rank).or_default(),
        };
        queue.slots.push_back((number, slot));
        queue.slots.len() == 1
    }

    /// Takes the oldest receive that wants a message of `rank`.
    pub(super) fn take(&mut self, rank: Rank) -> Option<Arc<Slot>> {
        let named = self.ranks.get(&rank).and_then(Queue::first);
        match (named, self.anybody.first()) {
            (Some(named), anybody) if anybody.is_none_or(|anybody| named < anybody) => {
                let slot = self.ranks.get_mut(&rank)?.pop();
                self.tidy(rank);
                slot
            }
            _ => self.anybody.pop(),
        }
    }

    /// Takes the oldest receive of anybody.
    pub(super) fn take_of_anybody(&mut self) -> Option<Arc<Slot>> {
        self.anybody.pop()
    }

    /// Takes the receives of one rank that are like that.
    pub(super) fn take_of(&mut self, rank: Rank, is_it: impl Fn(Whose) -> bool) -> Vec<Arc<Slot>> {
        let Some(queue) = self.ranks.remove(&rank) else {
            return Vec::new();
        };
        let alive = queue.slots.into_iter().filter(|(_, slot)| slot.is_posted());
        let (taken, kept): (Vec<_>, Vec<_>) = alive.partition(|(_, slot)| is_it(slot.from));
        if !kept.is_empty() {
            let slots = kept.into();
            self.ranks.insert(rank, Queue { slots, dead: 0 });
        }
        taken.into_iter().map(|(_, slot)| slot).collect()
    }

    /// Takes all.
    pub(super) fn take_all(&mut self) -> Vec<Arc<Slot>> {
        let all = core::mem::take(self);
        let queues = all.ranks.into_values().chain([all.anybody]);
        let slots = queues.flat_map(|queue| queue.slots);
        slots
            .map(|(_, slot)| slot)
            .filter(|slot| slot.is_posted())
            .collect()
    }

    /// A receive was withdrawn.
    pub(super) fn note_withdrawn(&mut self, from: Whose) {
        match from {
            Whose::Anybody => self.anybody.note_dead(),
            Whose::Rank(rank, _) => {
                if let Some(queue) = self.ranks.get_mut(&rank) {
                    queue.note_dead();
                }
                self.tidy(rank);
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.wants_anything() && self.ranks.is_empty()
    }

    /// Whether anybody's message is wanted.
    pub(super) fn wants_anything(&self) -> bool {
        !self.anybody.slots.is_empty()
    }

    /// Whether a message of `rank` is wanted.
    pub(super) fn wants(&self, rank: Rank) -> bool {
        self.wants_anything() || self.ranks.contains_key(&rank)
    }

    /// The ranks that receives name.
    pub(super) fn ranks(&self) -> impl Iterator<Item = Rank> + '_ {
        self.ranks.keys().copied()
    }

    fn tidy(&mut self, rank: Rank) {
        if self
            .ranks
            .get(&rank)
            .is_some_and(|queue| queue.slots.is_empty())
        {
            self.ranks.remove(&rank);
        }
    }
}
