//! What members send to each other, and what they tell the oracles.

use crate::machine::Payload;
use crate::symbols::Element;

#[derive(Debug, Clone, Hash)]
pub(super) enum Packet {
    /// Of the operation of that number.
    Data {
        operation: usize,
        data: Vec<Element>,
    },
    /// One more of what the other sent has been taken.
    Taken,
    /// A member is lost, from this operation on.
    Lost { operation: usize, member: u32 },
    /// The sender leaves: nothing comes behind this.
    Leaving,
}

impl Payload for Packet {
    fn wire_len(&self) -> usize {
        match self {
            Packet::Data { data, .. } => 24 + 8 * data.len(),
            Packet::Taken | Packet::Leaving => 8,
            Packet::Lost { .. } => 48,
        }
    }
}

/// How a member knows of a loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Cause {
    /// It misses something.
    Missed,
    /// Another member, which missed something, told it.
    Told,
}

#[derive(Debug, Hash)]
pub(super) enum Note {
    /// The member has done an operation, and has this.
    Done(usize, Vec<Element>),
    /// It could not do an operation, because a member was lost.
    Failed {
        operation: usize,
        lost: u32,
        cause: Cause,
    },
    /// It has left.
    Ended,
}
