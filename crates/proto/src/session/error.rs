//! What a peer can do wrong in a session.

use crate::id::{BodyId, ProcessId};

/// A rule of `docs/wire-sessions.md` that the peer broke.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// Bytes that are no frame at this place.
    #[error("{len} bytes that are not {expected}")]
    Malformed {
        /// What would have been right.
        expected: &'static str,
        /// How many there were.
        len: usize,
    },
    /// A version that is not spoken here.
    #[error("version {theirs}, spoken here is {ours}")]
    Version {
        /// That of this process.
        ours: u16,
        /// That of the peer.
        theirs: u16,
    },
    /// A process that is not at the other end of this session, or does not mean this one.
    #[error("a greeting from {from} to {to}")]
    Stranger {
        /// Who it says it is.
        from: ProcessId,
        /// Whom it means.
        to: ProcessId,
    },
    /// A job, cluster, byte order or window that is not ours.
    #[error("a greeting with another {field}")]
    Differs {
        /// What differs.
        field: &'static str,
    },
    /// An answer with another connection number, or one that jumps.
    #[error("connection number {number} after {newest}")]
    ConnectionNumber {
        /// What came.
        number: u64,
        /// The newest known.
        newest: u64,
    },
    /// An acknowledgement of what was never sent.
    #[error("received through {through}, sent through {sent}")]
    NeverSent {
        /// What came.
        through: u64,
        /// The highest number that was given to a connection.
        sent: u64,
    },
    /// An acknowledgement that takes back an earlier one.
    #[error("received through {through}, after {acknowledged}")]
    TakenBack {
        /// What came.
        through: u64,
        /// What was acknowledged before.
        acknowledged: u64,
    },
    /// A peer that no longer has what comes next.
    #[error("frames kept from {oldest} on, expected is {next}")]
    NotKept {
        /// The oldest that it has.
        oldest: u64,
        /// The next that is expected.
        next: u64,
    },
    /// A frame that does not follow the one before.
    #[error("frame {number}, expected is {next}")]
    Gap {
        /// Its number.
        number: u64,
        /// The next that is expected.
        next: u64,
    },
    /// A frame that counts, after bye.
    #[error("frame {number} after bye, which was {bye}")]
    AfterBye {
        /// Its number.
        number: u64,
        /// The number of bye.
        bye: u64,
    },
    /// A body that the peer cannot be waiting for, or cannot have that much of.
    #[error("body {body} with {in_place} bytes in place")]
    Body {
        /// Its name.
        body: BodyId,
        /// How many bytes of it the peer says it has.
        in_place: u64,
    },
    /// A body said to be taken that is not under way.
    #[error("body {body} taken, which is not under way")]
    UnknownBody {
        /// Its name.
        body: BodyId,
    },
    /// A rule of the link inside of the session.
    #[error("the peer broke a rule of the link")]
    Link,
}
