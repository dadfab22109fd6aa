//! What was posted, and not taken.

use core::fmt;
use std::time::Duration;

use super::gone::Gone;
use crate::rank::Rank;

/// Why not all that was posted is with those it was posted to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FlushError {
    /// A process is gone and did not take all. If it left, these are exactly the messages that it does not have; if it died,
    /// it may have taken some of them and not lived to say so.
    #[error("{} posted to it: {gone}", not_taken(*messages))]
    PeerGone {
        /// Which process, and how it went.
        gone: Gone,
        /// How many messages.
        messages: u64,
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

fn not_taken(messages: u64) -> String {
    match messages {
        1 => "a message was not taken that was".to_owned(),
        messages => format!("{messages} messages were not taken that were"),
    }
}
