//! What was posted, and not taken.

use core::fmt;
use std::time::Duration;

use super::gone::Gone;
use crate::rank::Rank;

/// Why not all that was posted is with those it was posted to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FlushError {
    /// A process is gone and did not take all. Of those messages that it may have taken, without living to say so, nobody knows
    /// more; the others it does not have.
    #[error("{} posted to it{}: {gone}", not_taken(*messages), perhaps(*uncertain))]
    PeerGone {
        /// Which process, and how it went.
        gone: Gone,
        /// How many messages were posted to it, and it did not say that it took them.
        messages: u64,
        /// How many of these it may have taken: they had gone out when it was last heard. None, if it left.
        uncertain: u64,
    },
    /// The time is over.
    #[error(
        "rank {rank} has not taken {} within {waited:.1?}; does it read its mailbox, and can it be reached?", Messages(*messages)
    )]
    TimedOut {
        /// A process that has not taken all; there may be more.
        rank: Rank,
        /// How many messages or parts of them.
        messages: u64,
        /// How long that was waited for.
        waited: Duration,
    },
}

/// How many messages a process did not take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Untaken {
    pub(crate) messages: u64,
    /// Those of them that it may have taken without saying so.
    pub(crate) uncertain: u64,
}

/// What is known of messages whose receipt was not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sureness {
    /// They were not taken.
    Certain,
    /// Nobody knows.
    Uncertain,
}

impl Untaken {
    pub(crate) fn add(&mut self, messages: u64, sureness: Sureness) {
        self.messages += messages;
        if sureness == Sureness::Uncertain {
            self.uncertain += messages;
        }
    }

    /// What follows the name of what was not taken.
    pub(crate) fn perhaps(self) -> String {
        perhaps(self.uncertain)
    }
}

impl Sureness {
    /// That of an account.
    pub(crate) fn of(is_exact: bool) -> Self {
        match is_exact {
            true => Self::Certain,
            false => Self::Uncertain,
        }
    }
}

/// So many messages, in words.
pub(crate) struct Messages(pub(crate) u64);

impl fmt::Display for Messages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            1 => f.write_str("a message"),
            messages => write!(f, "{messages} messages"),
        }
    }
}

fn perhaps(uncertain: u64) -> String {
    match uncertain {
        0 => String::new(),
        uncertain => format!(" (it may have got {uncertain} of them)"),
    }
}

fn not_taken(messages: u64) -> String {
    match messages {
        1 => "a message was not taken that was".to_owned(),
        messages => format!("{messages} messages were not taken that were"),
    }
}
