//! What the root decides, and what follows from it.

use super::{AgentId, Epoch, HostId};
use crate::boot::Death;
use crate::id::{ProcessId, Rank};

/// One decision of the root. Decisions are ordered; all that anybody knows of the members follows from them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// Ranks are to run on a host, which may not have reported yet. Their first life is expected, neither seen nor dead.
    Placed {
        /// Where.
        host: HostId,
        /// The first of them.
        first: Rank,
        /// How many: at least one.
        count: u32,
    },
    /// An agent reported, and was taken in.
    HostJoined {
        /// Whose, and which life of it.
        agent: AgentId,
        /// Where other agents reach it.
        locator: String,
    },
    /// An agent is gone for good. Whatever ran there has ended.
    HostEnded {
        /// Whose, and which life of it.
        agent: AgentId,
        /// Why.
        how: HostEnd,
    },
    /// A process left the job; it may still run.
    Left {
        /// Who.
        process: ProcessId,
    },
    /// A process ended.
    Ended {
        /// Who.
        process: ProcessId,
        /// Of what.
        how: Death,
    },
    /// A process that ended is started again.
    Restarted {
        /// The new life.
        process: ProcessId,
        /// Where.
        host: HostId,
    },
    /// All processes are to end, and none is started any more.
    JobEnds(Ending),
    /// The user's signal, which asks programs to end, is about to be passed on: who fails from now on ends the job, and nobody is
    /// started again.
    Interrupted {
        /// Its number.
        signal: u8,
    },
}

/// Why a host is no longer a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostEnd {
    /// Its processes had ended, and its agent said goodbye.
    Left,
    /// Nothing was heard of it until its lease was over, and for as long as ending its processes takes.
    Silent,
    /// The host answers, and says that there is no agent any more.
    Refused,
}

/// Why a job ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// All its processes have ended.
    Done,
    /// The user, or whoever runs the job, wants it.
    Asked {
        /// What the launcher returns.
        code: u8,
    },
    /// A process died, and the job does not go on without it.
    Process {
        /// Who.
        process: ProcessId,
        /// Of what.
        how: Death,
    },
    /// A host was lost, and the job does not go on without it.
    Host {
        /// Which.
        host: HostId,
        /// How.
        how: HostEnd,
    },
}

/// The decisions of one epoch, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct News {
    /// The epoch that they make.
    pub epoch: Epoch,
    /// At least one, and at most [`MAX_ENTRIES`](super::MAX_ENTRIES).
    pub entries: Vec<Entry>,
}

/// What a decision means to processes: the same list at everybody who knows the same decisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// A life has ended, whatever told so: its agent, or the loss of its host.
    Ended {
        /// Who.
        process: ProcessId,
        /// Of what.
        how: Death,
    },
    /// A process left the job.
    Left {
        /// Who.
        process: ProcessId,
    },
    /// A new life begins.
    Restarted {
        /// Who.
        process: ProcessId,
    },
    /// The job ends.
    JobEnds(Ending),
}

/// What an agent tells its processes: the changes of one epoch. Epochs without a change are told too, so that a gap shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// Which epoch.
    pub epoch: Epoch,
    /// What changed, in order.
    pub changes: Vec<Change>,
}
