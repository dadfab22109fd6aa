//! Which connection carries a session, and when the next is tried (docs/wire-sessions.md §21 and §25).
//!
//! ```text
//!   none ──poll_dial──▶ attempt ──dialled──▶ asked ──answer──▶ open
//!     │                    └──newer greeting──┴──newer greeting──▲ │ ▲─newer greeting─┐
//!     └──────────────────────newer greeting─────────────────────┘ └──────────────────┘
//!   every state falls back to none when its connection is lost, refused or silent for too long
//! ```

use std::time::Duration;

use super::limits::{CONNECTION_STEP, OTHERS_TURN, PAUSE_MAX, PAUSE_MIN, SILENCE_MAX};
use super::outcome::ConnectionId;
use crate::id::ProcessId;
use crate::time::Time;

/// Which of two connections is newer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Age {
    pub(super) number: u64,
    dialler: u64,
}

impl Age {
    pub(super) fn new(number: u64, dialler: ProcessId) -> Self {
        let dialler = dialler.to_u64();
        Self { number, dialler }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// We greeted, and wait for the answer; frames may go already if none ever went.
    Asked {
        since: Time,
        may_send: bool,
    },
    Open,
}

#[derive(Debug)]
pub(super) struct Connections {
    current: Option<(ConnectionId, Stage)>,
    newest: Age,
    attempt: Option<u64>,
    last_dialled: u64,
    dial_at: Option<Time>,
    /// Attempts since something came over a connection.
    attempts: u32,
    random: u64,
    /// Since when nothing came although something should.
    silent_since: Option<Time>,
}

impl Connections {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            current: None,
            newest: Age {
                number: 0,
                dialler: 0,
            },
            attempt: None,
            last_dialled: 0,
            dial_at: None,
            attempts: 0,
            random: seed,
            silent_since: None,
        }
    }

    /// Plans an attempt, if there is nothing yet.
    pub(super) fn plan(&mut self, local: ProcessId, now: Time) {
        if self.current.is_some() || self.attempt.is_some() || self.dial_at.is_some() {
            return;
        }
        let is_first = self.newest.number == 0 && self.attempts == 0;
        let dialled_here = self.newest.dialler == local.to_u64() || self.newest.number == 0;
        let pause = match self.attempts {
            _ if is_first => Duration::ZERO,
            0 if dialled_here => self.draw(Duration::ZERO, PAUSE_MIN),
            0 => OTHERS_TURN + self.draw(Duration::ZERO, PAUSE_MIN),
            attempts => {
                let doubled = PAUSE_MIN.saturating_mul(1 << (attempts - 1).min(16));
                let pause = doubled.min(PAUSE_MAX);
                self.draw(pause / 2, pause)
            }
        };
        self.dial_at = Some(now + pause);
    }

    pub(super) fn cancel_plan(&mut self) {
        self.dial_at = None;
    }

    /// The number to dial with, when it is time.
    pub(super) fn poll_dial(&mut self, now: Time) -> Option<u64> {
        if self.dial_at.is_none_or(|at| at > now) {
            return None;
        }
        self.dial_at = None;
        let number = self.newest.number.max(self.last_dialled).checked_add(1)?;
        self.last_dialled = number;
        self.attempt = Some(number);
        self.attempts = self.attempts.saturating_add(1);
        Some(number)
    }

    /// An attempt ended; whether it was the present one.
    pub(super) fn end_attempt(&mut self, number: u64) -> bool {
        let is_present = self.attempt == Some(number);
        if is_present {
            self.attempt = None;
        }
        is_present
    }

    pub(super) fn abandon(&mut self) -> Option<u64> {
        self.dial_at = None;
        self.attempt.take()
    }

    /// Takes a connection as the newest.
    pub(super) fn take(&mut self, connection: ConnectionId, age: Age, stage: Stage) {
        self.newest = age;
        self.dial_at = None;
        self.silent_since = None;
        self.current = Some((connection, stage));
    }

    pub(super) fn open(&mut self) {
        if let Some((_, stage)) = &mut self.current {
            *stage = Stage::Open;
        }
    }

    /// The peer knows of a newer one than we dialled; beyond the step it is not believed.
    pub(super) fn handle_superseded(&mut self, newest: u64) {
        if self.is_step(newest) {
            self.last_dialled = self.last_dialled.max(newest);
        }
    }

    pub(super) fn drop_current(&mut self) -> Option<ConnectionId> {
        self.silent_since = None;
        self.current.take().map(|(connection, _)| connection)
    }

    /// A frame went out that has to be acknowledged.
    pub(super) fn expect_sign(&mut self, now: Time) {
        self.silent_since.get_or_insert(now);
    }

    /// Something came over the open connection.
    pub(super) fn handle_sign(&mut self, now: Time, is_more_expected: bool) {
        self.attempts = 0;
        self.silent_since = is_more_expected.then_some(now);
    }

    /// Whether the connection is to be replaced.
    pub(super) fn is_silent(&self, now: Time) -> bool {
        self.silent_until().is_some_and(|until| until <= now)
    }

    pub(super) fn next_timeout(&self) -> Option<Time> {
        [self.dial_at, self.silent_until()]
            .into_iter()
            .flatten()
            .min()
    }

    pub(super) fn current(&self) -> Option<(ConnectionId, Stage)> {
        self.current
    }

    pub(super) fn is_current(&self, connection: ConnectionId) -> bool {
        self.current
            .is_some_and(|(current, _)| current == connection)
    }

    pub(super) fn newest(&self) -> Age {
        self.newest
    }

    pub(super) fn is_step(&self, number: u64) -> bool {
        number.saturating_sub(self.newest.number.max(self.last_dialled)) <= CONNECTION_STEP
    }

    pub(super) fn is_untouched(&self) -> bool {
        self.current.is_none() && self.newest.number == 0
    }

    /// Since when nothing came over the connection although something should.
    pub(super) fn silent_since(&self) -> Option<Time> {
        match self.current?.1 {
            Stage::Asked { since, .. } => Some(since),
            Stage::Open => self.silent_since,
        }
    }

    fn silent_until(&self) -> Option<Time> {
        self.silent_since().map(|since| since + SILENCE_MAX)
    }

    /// A duration between two others; SplitMix64, so that the seed alone decides.
    fn draw(&mut self, from: Duration, to: Duration) -> Duration {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        let span = to.saturating_sub(from).as_nanos() as u64;
        from + Duration::from_nanos(mixed % (span + 1))
    }
}
