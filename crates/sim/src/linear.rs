//! Whether what several clients saw of one object could have happened one operation after another.
//!
//! The search of Wing and Gong (1993), with the memo of Lowe (2017): an operation may come next if no other ended before it began;
//! what was done and the state that it led to are looked at once only.

use std::collections::{BTreeSet, HashSet};
use std::hash::Hash;

use mizzen_proto::time::Time;

/// What an object does when nobody else touches it.
pub trait Object {
    /// What it remembers.
    type State: Clone + Eq + Hash;
    /// An operation with its outcome.
    type Operation;

    /// Before everything.
    fn initial() -> Self::State;

    /// The state after an operation; none if the operation cannot have this outcome in this state.
    fn apply(state: &Self::State, operation: &Self::Operation) -> Option<Self::State>;
}

/// One operation of one client.
#[derive(Debug, Clone)]
pub struct Done<O> {
    /// When it was called.
    pub called: Time,
    /// When it returned. One that did not may have taken effect at any time since, or never.
    pub returned: Option<Time>,
    /// What it was, and what it returned.
    pub operation: O,
}

/// What a history is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judgement {
    /// There is an order of the operations that explains it.
    Linear,
    /// There is none.
    NotLinear,
    /// It was not found in a second of searching.
    Unknown,
}

/// Judges a history, in any order.
pub fn judge<B: Object>(mut history: Vec<Done<B::Operation>>) -> Judgement {
    history.sort_by_key(|done| done.called);
    let mut seen: HashSet<(Set, B::State)> = HashSet::new();
    let mut todo = vec![(Set::new(), B::initial())];
    let mut steps = 0;
    while let Some((done, state)) = todo.pop() {
        let left = || (done.first..history.len()).filter(|&index| !done.has(index));
        // What began after one of those that are left had returned cannot come before it.
        let Some(until) = left().filter_map(|index| history[index].returned).min() else {
            return Judgement::Linear;
        };
        let next = left().take_while(|&index| history[index].called <= until);
        for index in next {
            steps += 1;
            let Some(after) = B::apply(&state, &history[index].operation) else {
                continue;
            };
            let mut more = done.clone();
            more.add(index);
            if seen.insert((more.clone(), after.clone())) {
                todo.push((more, after));
            }
        }
        if steps > STEPS_MAX {
            return Judgement::Unknown;
        }
    }
    Judgement::NotLinear
}

/// More than a second of searching.
const STEPS_MAX: u64 = 3_000_000;

/// Which operations were done: all before `first`, and those in `beyond`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Set {
    first: usize,
    beyond: BTreeSet<usize>,
}

impl Set {
    fn new() -> Self {
        Self {
            first: 0,
            beyond: BTreeSet::new(),
        }
    }

    fn has(&self, index: usize) -> bool {
        index < self.first || self.beyond.contains(&index)
    }

    fn add(&mut self, index: usize) {
        self.beyond.insert(index);
        while self.beyond.remove(&self.first) {
            self.first += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A place for one number.
    struct Register;

    #[derive(Debug, Clone, Copy)]
    enum Operation {
        Read(u32),
        Write(u32),
    }
    use Operation::{Read, Write};

    impl Object for Register {
        type State = u32;
        type Operation = Operation;

        fn initial() -> u32 {
            0
        }

        fn apply(state: &u32, operation: &Operation) -> Option<u32> {
            match operation {
                Write(value) => Some(*value),
                Read(value) => (value == state).then_some(*state),
            }
        }
    }

    fn done(called: u64, returned: u64, operation: Operation) -> Done<Operation> {
        Done {
            called: Time(called),
            returned: Some(Time(returned)),
            operation,
        }
    }

    fn lost(called: u64, operation: Operation) -> Done<Operation> {
        Done {
            returned: None,
            ..done(called, 0, operation)
        }
    }

    #[test]
    fn what_overlaps_may_be_seen_in_either_order() {
        for seen in [0, 1] {
            let history = vec![done(0, 10, Write(1)), done(5, 6, Read(seen))];
            assert_eq!(judge::<Register>(history), Judgement::Linear);
        }
    }

    #[test]
    fn what_was_written_before_must_be_read() {
        let history = vec![done(0, 10, Write(1)), done(11, 12, Read(0))];
        assert_eq!(judge::<Register>(history), Judgement::NotLinear);
    }

    #[test]
    fn two_readers_do_not_see_two_orders() {
        let history = vec![
            done(0, 100, Write(1)),
            done(0, 100, Write(2)),
            done(10, 20, Read(1)),
            done(30, 40, Read(2)),
            done(50, 60, Read(1)),
        ];
        assert_eq!(judge::<Register>(history), Judgement::NotLinear);
    }

    #[test]
    fn what_did_not_return_may_have_taken_effect_or_not() {
        let seen = |values: [u32; 2]| {
            let [one, two] = values;
            let history = vec![
                lost(0, Write(1)),
                done(10, 20, Read(one)),
                done(30, 40, Read(two)),
            ];
            judge::<Register>(history)
        };
        assert_eq!(seen([0, 0]), Judgement::Linear);
        assert_eq!(seen([0, 1]), Judgement::Linear);
        assert_eq!(seen([1, 1]), Judgement::Linear);
        assert_eq!(seen([1, 0]), Judgement::NotLinear);
    }

    #[test]
    fn what_did_not_return_takes_no_effect_before_it_was_called() {
        let history = vec![done(10, 20, Read(1)), lost(30, Write(1))];
        assert_eq!(judge::<Register>(history), Judgement::NotLinear);
    }

    /// Rounds of one writer and `clients - 1` readers that all overlap.
    fn rounds(clients: u32, count: u32, last_read: Option<u32>) -> Vec<Done<Operation>> {
        let round = |number: u32| {
            let begin = u64::from(number) * 100;
            let reader = move |client: u32| {
                let value = match last_read.filter(|_| number + 1 == count && client == 1) {
                    Some(value) => value,
                    None => number + client % 2,
                };
                done(
                    begin + u64::from(client),
                    begin + 99 - u64::from(client),
                    Read(value),
                )
            };
            let write = done(begin, begin + 99, Write(number + 1));
            std::iter::once(write).chain((1..clients).map(reader))
        };
        (0..count).flat_map(round).collect()
    }

    #[test]
    fn long_histories_are_judged_right_or_wrong() {
        for clients in [2, 4, 8] {
            let right = rounds(clients, 500 / clients, None);
            assert_eq!(judge::<Register>(right), Judgement::Linear);
            let wrong = rounds(clients, 500 / clients, Some(99_999));
            assert_eq!(judge::<Register>(wrong), Judgement::NotLinear);
        }
    }
}
