//! What goes from process to process.

use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;

use mizzen_core::{Incarnation, ProcessId, Rank};

/// Which task: its home, and the home's number for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TaskId {
    home: (u32, u32),
    pub(super) number: u64,
    /// How often its home started it anew after a loss.
    pub(super) attempt: u32,
}

impl TaskId {
    pub(super) fn new(home: ProcessId, number: u64, attempt: u32) -> Self {
        Self {
            home: (home.rank.0, home.incarnation.0),
            number,
            attempt,
        }
    }

    pub(super) fn home(self) -> ProcessId {
        ProcessId::new(Rank(self.home.0), Incarnation(self.home.1))
    }
}

/// A task between two steps.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Packed {
    pub(super) id: TaskId,
    /// How often it went from one process to another.
    pub(super) moves: u64,
    pub(super) state: ByteBuf,
}

/// What one process tells another about tasks.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum TaskMessage {
    /// A task, to go on here.
    Task(Packed),
    /// To its home: a task went to that process, and this is what it was.
    Left { task: Packed, to: (u32, u32) },
    /// To its home: what it resulted in, or what the panic said.
    Ended {
        id: TaskId,
        rank: u32,
        outcome: Result<ByteBuf, String>,
    },
    /// The process has more tasks than workers: who has free ones?
    Busy { rank: u32 },
    /// The process has free workers.
    Idle { rank: u32 },
}
