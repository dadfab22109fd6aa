//! For how long an agent may let its processes run.

use std::collections::VecDeque;
use std::time::Duration;

use crate::membership::MAX_BEATS;
use crate::time::Time;

/// The beats that are not answered, and what the answered ones were worth.
#[derive(Debug, Default)]
pub(super) struct Lease {
    /// The latest beat.
    number: u64,
    /// Those that were not answered, and when they were sent.
    sent: VecDeque<(u64, Time)>,
    until: Option<Time>,
}

impl Lease {
    /// The number of a beat that is sent now.
    pub(super) fn beat(&mut self, now: Time) -> u64 {
        self.number += 1;
        if self.sent.len() >= MAX_BEATS {
            self.sent.pop_front();
        }
        self.sent.push_back((self.number, now));
        self.number
    }

    /// A beat was answered. Counts from when it was *sent*: the root counts from when it came, which is later.
    pub(super) fn grant(&mut self, number: u64, lease: Duration, age: Duration) {
        let sent = self.sent.iter().find(|(beat, _)| *beat == number);
        let Some((_, sent)) = sent.copied() else {
            return;
        };
        let until = sent + lease.saturating_sub(age);
        self.until = self.until.max(Some(until));
        self.sent.retain(|(beat, _)| *beat >= number);
    }

    /// Until when processes may run; `None` if that was never granted.
    pub(super) fn until(&self) -> Option<Time> {
        self.until
    }

    pub(super) fn is_over(&self, now: Time) -> bool {
        self.until.is_some_and(|until| until <= now)
    }
}
