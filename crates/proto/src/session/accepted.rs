//! The frames of the peer: accepted once and in order, and acknowledged (docs/wire-sessions.md §22).

use super::error::SessionError;
use super::limits::ACKNOWLEDGE_WITHIN;
use crate::time::Time;

#[derive(Debug)]
pub(super) struct Accepted {
    through: u64,
    bye: Option<u64>,
    /// What was accepted since it was last told, and how much of that is told at once.
    untold: u64,
    quarter: u64,
    due: Due,
}

/// When the peer is to be told without a frame to ride on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Due {
    Nothing,
    At(Time),
    Now,
}

/// Whether a frame is the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    Next,
    Again,
}

impl Accepted {
    pub(super) fn new(kept_max: u64, first: u64) -> Self {
        Self {
            through: first - 1,
            bye: None,
            untold: 0,
            quarter: kept_max / 4,
            due: Due::Nothing,
        }
    }

    pub(super) fn handle(
        &mut self,
        number: u64,
        charge: u64,
        now: Time,
    ) -> Result<Turn, SessionError> {
        if number <= self.through {
            self.due = Due::Now;
            return Ok(Turn::Again);
        }
        if let Some(bye) = self.bye {
            return Err(SessionError::AfterBye { number, bye });
        }
        let next = self.through + 1;
        if number != next {
            return Err(SessionError::Gap { number, next });
        }
        self.through = number;
        self.untold += charge;
        if self.untold >= self.quarter {
            self.due = Due::Now;
        } else if self.due == Due::Nothing {
            self.due = Due::At(now + ACKNOWLEDGE_WITHIN);
        }
        Ok(Turn::Next)
    }

    pub(super) fn handle_bye(&mut self) {
        self.bye = Some(self.through);
        self.due = Due::Now;
    }

    pub(super) fn check_oldest(&self, oldest: u64) -> Result<(), SessionError> {
        // Written so that the last number overflows nothing.
        if oldest > self.through && oldest - self.through > 1 {
            let next = self.through + 1;
            return Err(SessionError::NotKept { oldest, next });
        }
        Ok(())
    }

    pub(super) fn handle_timeout(&mut self, now: Time) {
        if matches!(self.due, Due::At(at) if at <= now) {
            self.due = Due::Now;
        }
    }

    /// What is received through, which the peer is about to be told.
    pub(super) fn tell(&mut self) -> u64 {
        self.untold = 0;
        self.due = Due::Nothing;
        self.through
    }

    pub(super) fn is_due(&self) -> bool {
        self.due == Due::Now
    }

    pub(super) fn due_at(&self) -> Option<Time> {
        match self.due {
            Due::At(at) => Some(at),
            Due::Nothing | Due::Now => None,
        }
    }

    pub(super) fn through(&self) -> u64 {
        self.through
    }

    pub(super) fn has_bye(&self) -> bool {
        self.bye.is_some()
    }
}
