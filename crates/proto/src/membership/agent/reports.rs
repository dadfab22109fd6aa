//! What an agent tells the root of its processes, until the root has it.

use std::collections::VecDeque;

use crate::membership::{MAX_UNACKNOWLEDGED, Report};

#[derive(Debug, Default)]
pub(super) struct Reports {
    /// Those that the root has not acknowledged; the first has the number `taken + 1`.
    waiting: VecDeque<Report>,
    taken: u64,
    /// How many of those that wait were sent, and how many before the latest beat.
    sent: usize,
    overdue: usize,
}

impl Reports {
    pub(super) fn push(&mut self, report: Report) {
        self.waiting.push_back(report);
    }

    /// The next one that was not sent and may be.
    pub(super) fn poll(&mut self) -> Option<(u64, Report)> {
        if self.sent >= MAX_UNACKNOWLEDGED {
            return None;
        }
        let report = *self.waiting.get(self.sent)?;
        self.sent += 1;
        Some((self.taken + self.sent as u64, report))
    }

    /// A beat is sent: what was sent before the one before, and is still not acknowledged, is sent again.
    pub(super) fn handle_beat(&mut self) {
        let lost = self.overdue > 0;
        self.overdue = self.sent;
        if lost {
            self.sent = 0;
        }
    }

    /// The root has all up to this one. What it cannot have is ignored.
    pub(super) fn handle_taken(&mut self, number: u64) {
        let more = number.saturating_sub(self.taken);
        let more = usize::try_from(more).unwrap_or(usize::MAX);
        if more > self.waiting.len() {
            return;
        }
        self.waiting.drain(..more);
        self.taken += more as u64;
        self.sent = self.sent.saturating_sub(more);
        self.overdue = self.overdue.saturating_sub(more);
    }

    pub(super) fn taken(&self) -> u64 {
        self.taken
    }
}
