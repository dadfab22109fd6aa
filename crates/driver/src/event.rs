//! What a driver reports.

use std::fmt;
use std::io;

use crate::{BodyId, PeerId};

/// Something that happened, handed to the sink of [`Driver::poll`](crate::Driver::poll).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a> {
    /// A link to the peer is up, whoever asked for it.
    Connected {
        /// The other end.
        peer: PeerId,
        /// Whether this process dialled; at the other end it is the opposite.
        dialled: bool,
    },
    /// A connect came to nothing.
    ConnectFailed {
        /// Who was to be reached.
        peer: PeerId,
        /// What went wrong.
        reason: ConnectFailure,
    },
    /// A frame arrived.
    Frame {
        /// Who sent it.
        peer: PeerId,
        /// Its bytes, for the duration of the call.
        bytes: &'a [u8],
    },
    /// A body's memory is the caller's again. Not a proof that it arrived.
    BodySent {
        /// Who it goes to.
        peer: PeerId,
        /// Which one.
        body: BodyId,
    },
    /// A body is complete, in its place.
    BodyReceived {
        /// Who sent it.
        peer: PeerId,
        /// Which one.
        body: BodyId,
    },
    /// A pushed body is here and has no place yet: the link waits until it has.
    BodyWaiting {
        /// Who sent it.
        peer: PeerId,
        /// Which one.
        body: BodyId,
    },
    /// A body will not be completed; its memory is the caller's again.
    BodyFailed {
        /// The other end.
        peer: PeerId,
        /// Which one.
        body: BodyId,
        /// Whether it was being sent or received.
        way: Way,
        /// How many of its bytes are where they belong, from the first on, if it was being received and that is known; else 0.
        in_place: usize,
    },
    /// There is room again after [`Refused::Busy`](crate::Refused::Busy).
    Writable {
        /// Who can be sent to.
        peer: PeerId,
    },
    /// The link is gone: the last event of it.
    Lost {
        /// The other end.
        peer: PeerId,
        /// What went wrong.
        reason: LossReason,
    },
}

impl Event<'_> {
    /// The peer that this is about.
    #[must_use]
    pub fn peer(&self) -> PeerId {
        match *self {
            Self::Connected { peer, .. }
            | Self::ConnectFailed { peer, .. }
            | Self::Frame { peer, .. }
            | Self::BodySent { peer, .. }
            | Self::BodyReceived { peer, .. }
            | Self::BodyWaiting { peer, .. }
            | Self::BodyFailed { peer, .. }
            | Self::Writable { peer }
            | Self::Lost { peer, .. } => peer,
        }
    }
}

/// Which way a body goes, seen from this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Way {
    /// From this process.
    Sending,
    /// To this process.
    Receiving,
}

/// Why a link is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossReason {
    /// The other end closed it: it disconnected, dropped its driver, ended, or was killed.
    Closed,
    /// The network broke it.
    Broken(io::ErrorKind),
    /// The other end no longer answers.
    Silent,
    /// The other end opened a new link in its place, so it has lost this one.
    Replaced,
    /// The other end broke the rules. Connecting again would most likely end the same way.
    Violation(&'static str),
}

impl fmt::Display for LossReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("closed by the other end"),
            Self::Broken(kind) => write!(f, "broken by the network: {kind}"),
            Self::Silent => f.write_str("the other end no longer answers"),
            Self::Replaced => f.write_str("replaced by a new link from the other end"),
            Self::Violation(what) => write!(f, "protocol violation: {what}"),
        }
    }
}

/// Why a connect came to nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectFailure {
    /// Nobody could be reached at any of the addresses.
    Unreachable(io::ErrorKind),
    /// Nobody answered in time.
    TimedOut,
    /// Somebody answered who is not that peer, or who does not accept this process.
    Rejected,
}

impl fmt::Display for ConnectFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(kind) => write!(f, "unreachable: {kind}"),
            Self::TimedOut => f.write_str("no answer in time"),
            Self::Rejected => f.write_str("rejected, or answered by another process"),
        }
    }
}
