//! Calling the roll of this host: its processes are asked who waits, and looked at from outside, twice.
//!
//! A process that does not answer in time is told of all the same. It is not asked again before it has answered: what is said to
//! one that stands still would fill its socket.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use mizzen_proto::boot::FromAgent;

use crate::condition::{Sample, between};

/// What this agent knows of roll-calls.
#[derive(Debug, Default)]
pub(crate) struct RollCalls {
    under_way: Option<RollCall>,
    /// Who was asked and has not answered: rank and incarnation.
    unanswered: BTreeSet<(u32, u32)>,
}

#[derive(Debug)]
struct RollCall {
    call: u32,
    began: Instant,
    asked: BTreeMap<u32, Asked>,
}

#[derive(Debug)]
struct Asked {
    incarnation: u32,
    pid: u32,
    before: Option<Sample>,
    /// Whether it can answer: not if it has left.
    is_awaited: bool,
    present: Option<Vec<u8>>,
}

/// A process that runs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Running {
    pub(crate) rank: u32,
    pub(crate) incarnation: u32,
    pub(crate) pid: u32,
    pub(crate) has_left: bool,
}

impl RollCalls {
    /// Begins one, and gives up one that is under way. Returns who is to be asked.
    pub(crate) fn begin(&mut self, call: u32, running: &[Running], now: Instant) -> Vec<u32> {
        let here: BTreeSet<_> = running
            .iter()
            .map(|one| (one.rank, one.incarnation))
            .collect();
        self.unanswered.retain(|asked| here.contains(asked));
        let mut to_ask = Vec::new();
        let mut asked = BTreeMap::new();
        for one in running {
            if !one.has_left && self.unanswered.insert((one.rank, one.incarnation)) {
                to_ask.push(one.rank);
            }
            let known = Asked {
                incarnation: one.incarnation,
                pid: one.pid,
                before: Sample::take(one.pid),
                is_awaited: !one.has_left,
                present: None,
            };
            asked.insert(one.rank, known);
        }
        self.under_way = Some(RollCall {
            call,
            began: now,
            asked,
        });
        to_ask
    }

    /// A process answers.
    pub(crate) fn handle_present(&mut self, rank: u32, incarnation: u32, present: Vec<u8>) {
        self.unanswered.remove(&(rank, incarnation));
        let asked = self.under_way.as_mut();
        let asked = asked.and_then(|call| call.asked.get_mut(&rank));
        if let Some(asked) = asked.filter(|asked| asked.incarnation == incarnation) {
            asked.present = Some(present);
        }
    }

    /// What is to be said when it is over: when all have answered, and it shows who computes.
    pub(crate) fn poll(&mut self, now: Instant) -> Vec<FromAgent> {
        if self.timeout(now) != Some(Duration::ZERO) {
            return vec![];
        }
        let Some(RollCall { call, asked, .. }) = self.under_way.take() else {
            return vec![];
        };
        let present = asked.into_iter().map(|(rank, asked)| {
            let after = Sample::take(asked.pid);
            FromAgent::Present {
                call,
                rank,
                incarnation: asked.incarnation,
                condition: between(asked.before.as_ref(), after.as_ref()),
                present: asked.present,
            }
        });
        present.chain([FromAgent::Called { call }]).collect()
    }

    /// How soon to look again.
    pub(crate) fn timeout(&self, now: Instant) -> Option<Duration> {
        let call = self.under_way.as_ref()?;
        let is_missing = |asked: &Asked| asked.is_awaited && asked.present.is_none();
        let due = match call.asked.values().any(is_missing) {
            true => PATIENCE,
            false if call.asked.is_empty() => Duration::ZERO,
            false => BETWEEN,
        };
        Some(due.saturating_sub(now.duration_since(call.began)))
    }
}

/// Between the two looks at a process: long enough for its time to grow.
const BETWEEN: Duration = Duration::from_millis(250);
/// How long a process has to answer: a thread of it that does nothing else does.
const PATIENCE: Duration = Duration::from_millis(1500);

#[cfg(test)]
mod tests {
    use mizzen_proto::boot::Condition;

    use super::*;

    fn me(rank: u32) -> Running {
        Running {
            rank,
            incarnation: 3,
            pid: std::process::id(),
            has_left: false,
        }
    }

    #[test]
    fn who_answers_and_who_does_not_are_told_and_nobody_is_asked_twice() {
        let (mut calls, began) = (RollCalls::default(), Instant::now());
        let left = Running {
            has_left: true,
            ..me(2)
        };
        assert_eq!(calls.begin(7, &[me(0), me(1), left], began), [0, 1]);
        calls.handle_present(0, 3, vec![9]);
        calls.handle_present(1, 2, vec![9]); // Of an earlier life.
        assert!(calls.poll(began + BETWEEN).is_empty(), "it is not over");
        assert_eq!(calls.timeout(began + BETWEEN), Some(PATIENCE - BETWEEN));
        let said = calls.poll(began + PATIENCE);
        let answers: Vec<_> = said
            .iter()
            .filter_map(|frame| match frame {
                FromAgent::Present { rank, present, .. } => Some((*rank, present.clone())),
                _ => None,
            })
            .collect();
        assert_eq!(answers, [(0, Some(vec![9])), (1, None), (2, None)]);
        assert_eq!(said.last(), Some(&FromAgent::Called { call: 7 }));
        assert_eq!(calls.timeout(began), None);
        // The one that was silent is not asked again.
        assert_eq!(calls.begin(8, &[me(0), me(1)], began), [0]);
        calls.handle_present(1, 3, vec![]);
        assert_eq!(calls.begin(9, &[me(0), me(1)], began), [1]);
    }

    #[test]
    fn a_host_without_processes_answers_at_once() {
        let (mut calls, began) = (RollCalls::default(), Instant::now());
        assert_eq!(calls.begin(1, &[], began), [0; 0]);
        assert_eq!(calls.poll(began), [FromAgent::Called { call: 1 }]);
    }

    #[test]
    fn a_process_that_is_gone_is_unknown() {
        let (mut calls, began) = (RollCalls::default(), Instant::now());
        let gone = Running {
            pid: u32::MAX - 1,
            has_left: true,
            ..me(0)
        };
        calls.begin(1, &[gone], began);
        let said = calls.poll(began + BETWEEN);
        assert!(matches!(
            said[0],
            FromAgent::Present {
                condition: Condition::Unknown,
                ..
            }
        ));
    }
}
