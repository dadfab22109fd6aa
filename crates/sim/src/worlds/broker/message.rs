//! What processes, agents, the launcher and the log of the job say to each other about who can be reached.

use std::hash::{Hash, Hasher};

use mizzen_proto::boot::Unreachable;
use mizzen_proto::broker::Departure;
use mizzen_proto::id::ProcessId;

use crate::machine::{Machine, Payload};

/// Whatever says these.
pub(super) trait Speaker: Machine<Message = Message, Note = Note> {}

impl<M: Machine<Message = Message, Note = Note>> Speaker for M {}

#[derive(Debug, Clone)]
pub(super) enum Message {
    /// From a process to its agent: it wants to be connected to a rank.
    Reach(u32),
    /// From a process to its agent, and from there to the launcher: it listens.
    Ready(ProcessId),
    /// From a process to its agent, and from there to the log.
    Leaving(ProcessId),
    /// From an agent to a process.
    Answer(Answer),
    /// The socket that a process shares with another says that the other has ended.
    Closed(ProcessId),
    /// From an agent to the launcher: where is this life of a rank, or a later one?
    Locate(u32, u32),
    /// From the launcher to an agent.
    Located(ProcessId),
    /// From the launcher to an agent.
    Unreachable(u32, Unreachable),
    /// From an agent to the log.
    Ended(ProcessId, Departure),
    /// From the log to everybody.
    News(News),
}

/// What a process is told of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// It is introduced to this one, whoever asked.
    Peer(ProcessId),
    /// It listens on another host.
    Address(ProcessId),
    Unreachable(u32, Unreachable),
}

/// What was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum News {
    Left(ProcessId),
    /// A life ended; perhaps the rank is started again.
    Ended(ProcessId, Departure, Again),
    /// All processes are to end.
    JobEnds,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Again {
    Starts,
    Never,
}

/// What the oracles are told.
#[derive(Debug, Clone, Copy, Hash)]
pub(super) enum Note {
    /// A process asks for a rank.
    Asks(u32),
    /// An agent takes a question of this process, for this rank, and knows by the log that it is in this life or a later one.
    Takes(ProcessId, u32, u32),
    /// An agent tells this process something.
    Tells(ProcessId, Answer),
    /// A process is told something.
    Hears(Answer),
    /// A process leaves.
    Leaves,
    /// A table of an agent has more entries than there are questions to keep.
    Grown(usize),
}

impl Payload for Message {
    fn wire_len(&self) -> usize {
        16
    }
}

impl Hash for Message {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Self::Reach(rank) => (0, rank).hash(state),
            Self::Ready(process) => (1, process).hash(state),
            Self::Leaving(process) => (2, process).hash(state),
            Self::Answer(answer) => (3, answer).hash(state),
            Self::Locate(rank, life) => (4, rank, life).hash(state),
            Self::Located(process) => (5, process).hash(state),
            Self::Unreachable(rank, reason) => (6, rank, *reason as u8).hash(state),
            Self::Ended(process, how) => (7, process, *how as u8).hash(state),
            Self::News(News::Left(process)) => (8, process).hash(state),
            Self::News(News::Ended(process, how, again)) => {
                (9, process, *how as u8, *again as u8).hash(state);
            }
            Self::News(News::JobEnds) => 10.hash(state),
            Self::Closed(process) => (11, process).hash(state),
        }
    }
}

impl Hash for Answer {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Self::Peer(process) => (0, process).hash(state),
            Self::Address(process) => (1, process).hash(state),
            Self::Unreachable(rank, reason) => (2, rank, *reason as u8).hash(state),
        }
    }
}
