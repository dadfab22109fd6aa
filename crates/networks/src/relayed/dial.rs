//! The wish for a circuit that is not there yet.

use std::time::Duration;

use mizzen_proto::membership::HostId;
use mizzen_proto::time::Time;

/// A process is asked for a circuit.
pub(super) struct Dial {
    pub(super) host: HostId,
    pub(super) circuit: u64,
    pub(super) since: Time,
    pub(super) again: Time,
    pub(super) wait: Duration,
    pub(super) tries: u64,
    /// Whether that was the answer to the latest question.
    pub(super) has_no_way: bool,
    /// Whether somebody answered who did not prove to be who was meant.
    pub(super) is_refused: bool,
}

impl Dial {
    /// From now on.
    pub(super) fn new(host: HostId, circuit: u64, now: Time) -> Self {
        Self {
            host,
            circuit,
            since: now,
            again: now,
            wait: FIRST_AGAIN,
            tries: 0,
            has_no_way: false,
            is_refused: false,
        }
    }

    /// The same wish for another circuit, after what was there came to nothing.
    pub(super) fn anew(self, circuit: u64, now: Time) -> Self {
        let again = now + self.wait;
        Self {
            circuit,
            again,
            has_no_way: false,
            ..self
        }
    }

    /// How long to wait for an answer, and then longer.
    pub(super) fn put_off(&mut self, now: Time) {
        self.again = now + self.wait;
        self.wait = (self.wait * 2).min(LAST_AGAIN);
        self.tries += 1;
    }
}

/// How soon a process is asked again for a circuit, and how late.
const FIRST_AGAIN: Duration = Duration::from_millis(50);
const LAST_AGAIN: Duration = Duration::from_millis(500);
