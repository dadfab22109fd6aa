//! What agents, the root and processes send, and what they tell the oracles.

use std::hash::{Hash, Hasher};

use mizzen_proto::boot::FRAME_HEADER;
use mizzen_proto::id::ProcessId;
use mizzen_proto::membership::{Fence, News, Notice, Why};

use super::calls::NameNote;
use crate::machine::{Machine, Payload};

/// Whatever says these: agents and processes are parts of one machine, and need not know which.
pub(super) trait Speaker: Machine<Message = Message, Note = Note> {}

impl<M: Machine<Message = Message, Note = Note>> Speaker for M {}

#[derive(Debug)]
pub(super) enum Message {
    /// Frames as bytes, so that the codec is run as well.
    Up(Vec<u8>),
    Down(Vec<u8>),
    Between(Vec<u8>),
    /// About names, between agents.
    Names(Vec<u8>),
    /// About names, from a process to its agent and back.
    Question(Vec<u8>),
    Answer(Vec<u8>),
    /// From an agent to its process.
    Begin(ProcessId, Box<Fence>),
    Tell(Notice),
    /// From a process to its agent.
    Unreachable(ProcessId),
    Leaving,
    /// Between processes.
    Work(ProcessId),
}

impl Hash for Message {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Self::Up(bytes)
            | Self::Down(bytes)
            | Self::Between(bytes)
            | Self::Names(bytes)
            | Self::Question(bytes)
            | Self::Answer(bytes) => bytes.hash(state),
            Self::Begin(process, fence) => (process, fence.epoch()).hash(state),
            Self::Tell(notice) => notice.epoch.hash(state),
            Self::Unreachable(process) | Self::Work(process) => process.hash(state),
            Self::Leaving => 1.hash(state),
        }
    }
}

impl Payload for Message {
    fn wire_len(&self) -> usize {
        match self {
            Self::Up(bytes)
            | Self::Down(bytes)
            | Self::Between(bytes)
            | Self::Names(bytes)
            | Self::Question(bytes)
            | Self::Answer(bytes) => bytes.len(),
            Self::Begin(_, fence) => 16 + 12 * fence.entries(),
            Self::Tell(notice) => 12 + 12 * notice.changes.len(),
            Self::Unreachable(_) | Self::Work(_) | Self::Leaving => 12,
        }
    }
}

/// What an observer of a machine would see.
#[derive(Debug)]
pub(super) enum Note {
    /// The root decided.
    Appended(News),
    /// An agent or a process knows everything up to this epoch, and was told nothing before.
    Joined(u64),
    /// An agent passes this on, or a process was told.
    Told(Notice),
    /// A process was told something out of order.
    Gap,
    /// A process took something of another.
    Took(ProcessId),
    /// An agent ends its processes.
    Fenced(Why),
    /// An agent is through.
    Finished,
    /// Something about names.
    Name(NameNote),
}

impl Hash for Note {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Self::Appended(news) => (1, news.epoch, news.entries.len()).hash(state),
            Self::Joined(epoch) => (2, epoch).hash(state),
            Self::Told(notice) => (3, notice.epoch, notice.changes.len()).hash(state),
            Self::Gap => 4.hash(state),
            Self::Took(process) => (5, process).hash(state),
            Self::Fenced(_) => 6.hash(state),
            Self::Finished => 7.hash(state),
            Self::Name(note) => (8, note).hash(state),
        }
    }
}

/// A frame without its header: the simulated connections keep frames apart.
pub(super) fn content<E: std::fmt::Debug>(
    encode: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
) -> Vec<u8> {
    let mut bytes = vec![];
    encode(&mut bytes).expect("it is within the limits");
    bytes.split_off(FRAME_HEADER)
}
