//! The frames of this end: numbered, kept until they are acknowledged, sent again (docs/wire-sessions.md §22).
//!
//! ```text
//!   first …… acknowledged │ …… given …… │ …… sent …… │ …… last │ next
//!             forgotten      on this       on some      never
//!                            connection    connection   sent
//! ```

use std::collections::VecDeque;

use super::error::SessionError;
use super::limits::KEPT_OVERHEAD;
use super::outcome::{KeepRefused, Numbers};

#[derive(Debug)]
pub(super) struct Kept {
    max: u64,
    /// What each of those that are not acknowledged counts, and all of them together.
    charges: VecDeque<u32>,
    charged: u64,
    first: u64,
    acknowledged: u64,
    given: u64,
    sent: u64,
    last: u64,
    bye: Option<u64>,
}

impl Kept {
    pub(super) fn new(max: u64, first: u64) -> Self {
        let before = first - 1;
        Self {
            max,
            charges: VecDeque::new(),
            charged: 0,
            first,
            acknowledged: before,
            given: before,
            sent: before,
            last: before,
            bye: None,
        }
    }

    pub(super) fn keep(&mut self, len: u32) -> Result<u64, KeepRefused> {
        if self.bye.is_some() {
            return Err(KeepRefused::Leaving);
        }
        if self.last >= u64::MAX - 1 {
            return Err(KeepRefused::Exhausted);
        }
        let charge = charge(len);
        if self.charged + charge > self.max {
            return Err(KeepRefused::Full);
        }
        self.push(charge as u32);
        Ok(self.last)
    }

    /// Bye always has room: it costs nothing, and the last number is its own.
    pub(super) fn say_bye(&mut self) {
        if self.bye.is_none() {
            self.push(0);
            self.bye = Some(self.last);
        }
    }

    fn push(&mut self, charge: u32) {
        self.charges.push_back(charge);
        self.charged += u64::from(charge);
        self.last += 1;
    }

    /// Whether something was freed.
    pub(super) fn handle_acknowledged(&mut self, through: u64) -> Result<bool, SessionError> {
        if through > self.sent {
            let sent = self.sent;
            return Err(SessionError::NeverSent { through, sent });
        }
        if through < self.acknowledged {
            let acknowledged = self.acknowledged;
            return Err(SessionError::TakenBack {
                through,
                acknowledged,
            });
        }
        let count = through - self.acknowledged;
        for _ in 0..count {
            let charge = self.charges.pop_front().unwrap_or_default();
            self.charged -= u64::from(charge);
        }
        self.acknowledged = through;
        self.given = self.given.max(through);
        if self.charges.is_empty() && self.charges.capacity() > FEW {
            // An idle session has next to no memory beside its own.
            self.charges = VecDeque::new();
        }
        Ok(count > 0)
    }

    /// A new connection: nothing was given to it.
    pub(super) fn rewind(&mut self) {
        self.given = self.acknowledged;
    }

    /// The next to give to the connection.
    pub(super) fn poll_given(&mut self) -> Option<u64> {
        if self.given == self.last {
            return None;
        }
        self.given += 1;
        self.sent = self.sent.max(self.given);
        Some(self.given)
    }

    pub(super) fn has_ungiven(&self) -> bool {
        self.given != self.last
    }

    pub(super) fn was_given(&self, number: u64) -> bool {
        number <= self.given
    }

    /// Whether a frame waits for its acknowledgement on this connection.
    pub(super) fn is_in_flight(&self) -> bool {
        self.given > self.acknowledged
    }

    pub(super) fn is_empty(&self) -> bool {
        self.charges.is_empty()
    }

    pub(super) fn was_never_sent(&self) -> bool {
        self.sent < self.first
    }

    pub(super) fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    pub(super) fn last(&self) -> u64 {
        self.last
    }

    pub(super) fn charged(&self) -> u64 {
        self.charged
    }

    pub(super) fn is_bye(&self, number: u64) -> bool {
        self.bye == Some(number)
    }

    pub(super) fn has_said_bye(&self) -> bool {
        self.bye.is_some()
    }

    pub(super) fn is_bye_acknowledged(&self) -> bool {
        self.bye.is_some_and(|bye| bye <= self.acknowledged)
    }

    /// What was given to a connection and not acknowledged, and what was never given to any; bye is neither.
    pub(super) fn account(&self) -> (Numbers, Numbers) {
        let last = self.bye.map_or(self.last, |bye| bye - 1);
        let sent = self.sent.min(last);
        let unacknowledged = Numbers::new(self.acknowledged.min(last), sent);
        (unacknowledged, Numbers::new(sent, last))
    }
}

/// For how many frames there may be room while none is kept: a session on which now and then one is under way would ask for
/// memory each time.
const FEW: usize = 16;

/// What a frame counts while it is kept.
pub(super) fn charge(len: u32) -> u64 {
    u64::from(len) + KEPT_OVERHEAD
}
