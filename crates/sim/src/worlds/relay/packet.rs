//! What nodes send to each other, and what they tell the oracles.

use mizzen_proto::membership::HostId as NodeId;
use mizzen_proto::relay::{Grant, Heading, Lane, Slot};

use crate::machine::{Machine, Payload};

#[derive(Debug, Clone, Hash)]
pub(super) enum Packet {
    Fragment {
        heading: Heading,
        lane: Lane,
        /// Only the ends look at these.
        from: NodeId,
        number: u64,
        /// The sender's buffer, to be named when it is taken.
        slot: Slot,
    },
    /// What was in that buffer has been read.
    Taken(Slot),
    Grant(Grant),
    /// Something waits, though so much was granted.
    Blocked(u64),
    /// What the ends say to each other is state, outside all credits.
    Acknowledged {
        to: NodeId,
        by: NodeId,
        number: u64,
        hop: u8,
    },
}

impl Payload for Packet {
    fn wire_len(&self) -> usize {
        match self {
            Packet::Fragment { heading, .. } => 32 + heading.length as usize,
            Packet::Taken(_) => 0,
            Packet::Grant(_) => 80,
            Packet::Blocked(_) => 16,
            Packet::Acknowledged { .. } => 24,
        }
    }
}

#[derive(Debug, Hash)]
pub(super) enum Note {
    /// Something of this end came for the first time, as far as this one knows.
    Came(NodeId, u64),
    /// A gateway holds so many fragments of so many bytes, and has reserved memory for so many.
    Holds {
        count: usize,
        held: u64,
        reserved: u64,
    },
    /// An end waits for so many acknowledgements.
    Waits(usize),
    /// A peer sent what was not granted.
    Overdrawn(NodeId),
}

/// A machine that says and tells these.
pub(super) trait Speaks: Machine<Message = Packet, Note = Note> {}

impl<M: Machine<Message = Packet, Note = Note>> Speaks for M {}
