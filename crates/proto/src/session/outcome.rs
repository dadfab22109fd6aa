//! What a session tells its engine.

use super::error::SessionError;
use super::frame::{SessionFrame, Stamp};
use super::limits::{EXPECTED_MAX, SENDING_MAX};
use crate::id::BodyId;

/// A connection, as the engine calls it; never used twice for one session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u64);

/// What the engine is to do, in this order.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Output {
    /// Try to connect to the peer, once; then [`handle_dialled`](super::Session::handle_dialled) or
    /// [`handle_dial_failed`](super::Session::handle_dial_failed).
    Dial {
        /// The number of the attempt.
        number: u64,
    },
    /// The attempt is no longer wanted. What comes of it is ignored.
    Abandon {
        /// The number of the attempt.
        number: u64,
    },
    /// Close the connection when what was given to it is written. Before the next output is asked for, say how far its bodies
    /// came: [`handle_body_progress`](super::Session::handle_body_progress).
    Close {
        /// Which.
        connection: ConnectionId,
    },
    /// Send a frame of the session's own.
    Send {
        /// Where.
        connection: ConnectionId,
        /// What.
        frame: SessionFrame,
    },
    /// Send the kept frame with the stamp's number, the stamp before it.
    Transmit {
        /// Where.
        connection: ConnectionId,
        /// What comes before it.
        stamp: Stamp,
    },
    /// Send a body from one of its bytes on.
    SendBody {
        /// Where.
        connection: ConnectionId,
        /// Its name.
        body: BodyId,
        /// The first byte that the peer does not have.
        from: u64,
    },
    /// Have the place for a body ready, from one of its bytes on.
    ReceiveBody {
        /// Where it comes from.
        connection: ConnectionId,
        /// Its name.
        body: BodyId,
        /// The first byte that is not in place.
        from: u64,
    },
    /// Kept frames up to this number need not be kept any more.
    Free {
        /// The last that was acknowledged.
        through: u64,
    },
    /// The peer has a body: its memory is no longer lent.
    Taken {
        /// Its name.
        body: BodyId,
    },
    /// The session is over.
    Ended(End),
}

impl Output {
    pub(super) fn connection(&self) -> Option<ConnectionId> {
        match *self {
            Self::Close { connection }
            | Self::Send { connection, .. }
            | Self::Transmit { connection, .. }
            | Self::SendBody { connection, .. }
            | Self::ReceiveBody { connection, .. } => Some(connection),
            Self::Dial { .. }
            | Self::Abandon { .. }
            | Self::Free { .. }
            | Self::Taken { .. }
            | Self::Ended(_) => None,
        }
    }
}

/// What came in a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Received<'a> {
    /// Nothing for the link.
    Nothing,
    /// The next frame of the link, for the first and only time.
    Frame {
        /// Its number.
        number: u64,
        /// Its bytes.
        frame: &'a [u8],
    },
    /// The peer leaves.
    Bye,
}

/// Why a session is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum End {
    /// Both ends said bye.
    #[error("both ends left")]
    Left,
    /// Somebody who may say so said that the peer's life, or this one, is over.
    #[error("a verdict ended it")]
    Verdict,
    /// The peer says that it is over.
    #[error("the peer ended it")]
    PeerEnded,
    /// The peer was told that this life is over.
    #[error("the peer was told that this process is dead")]
    Fenced,
    /// The peer broke a rule.
    #[error("{0}")]
    Broken(SessionError),
}

/// Why a frame is not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeepRefused {
    /// Too much waits for acknowledgement. Try again after [`Output::Free`].
    #[error("too much is kept for a peer that has not acknowledged it")]
    Full,
    /// This end has said bye, or the peer has.
    #[error("the session is closing")]
    Leaving,
    /// It is over.
    #[error("the session is over")]
    Over,
    /// All numbers but the last were used, and that is for bye.
    #[error("no numbers are left")]
    Exhausted,
}

/// More bodies than a link can have under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("more than {EXPECTED_MAX} bodies are awaited, or {SENDING_MAX} sent")]
pub struct TooManyBodies;

/// Consecutive numbers of frames, perhaps none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numbers {
    after: u64,
    through: u64,
}

impl Numbers {
    pub(super) fn new(after: u64, through: u64) -> Self {
        let through = through.max(after);
        Self { after, through }
    }

    /// How many.
    pub fn count(self) -> u64 {
        self.through - self.after
    }

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.count() == 0
    }

    /// Whether this is one of them.
    pub fn contains(self, number: u64) -> bool {
        number > self.after && number <= self.through
    }
}

/// What the peer has not taken (docs/wire-sessions.md §24.4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Frames that were given to a connection and not acknowledged.
    pub unacknowledged: Numbers,
    /// Frames that were never given to a connection: the peer has none of them.
    pub never_sent: Numbers,
    /// Bodies that the peer did not say it has.
    pub bodies: Vec<BodyId>,
    /// Whether the peer has none of `unacknowledged`, rather than nobody knows.
    pub is_exact: bool,
}
