//! What happens next: one heap of (time, class, sequence, what).

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use mizzen_proto::time::Time;

/// What goes first of two things that happen at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    /// Faults and what arrives.
    News,
    /// Timers: a driver hands over all that has arrived before it looks at the clock.
    Timer,
}

/// Things to happen, in the order of their time; those of one time by class, then as they were added.
#[derive(Debug)]
pub(crate) struct Agenda<T> {
    heap: BinaryHeap<Reverse<Entry<T>>>,
    added: u64,
}

#[derive(Debug)]
struct Entry<T> {
    key: (Time, Class, u64),
    what: T,
}

impl<T> Agenda<T> {
    pub(crate) fn new() -> Self {
        Self {
            heap: BinaryHeap::new(),
            added: 0,
        }
    }

    pub(crate) fn add(&mut self, at: Time, class: Class, what: T) {
        let key = (at, class, self.added);
        self.added += 1;
        self.heap.push(Reverse(Entry { key, what }));
    }

    pub(crate) fn pop(&mut self) -> Option<(Time, T)> {
        let Reverse(entry) = self.heap.pop()?;
        Some((entry.key.0, entry.what))
    }
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl<T> Eq for Entry<T> {}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key.cmp(&other.key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_arrives_at_one_time_comes_before_timers_of_that_time() {
        let mut agenda = Agenda::new();
        agenda.add(Time(2), Class::News, "late");
        agenda.add(Time(1), Class::Timer, "timer");
        agenda.add(Time(1), Class::News, "first");
        agenda.add(Time(1), Class::News, "second");
        let order: Vec<_> = std::iter::from_fn(|| agenda.pop())
            .map(|(_, what)| what)
            .collect();
        assert_eq!(order, ["first", "second", "timer", "late"]);
    }
}
