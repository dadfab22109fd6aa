//! What agents and the root say to each other: frames of byte streams, cut by [`split_frame`](crate::boot::split_frame).
//!
//! Every frame says who speaks, or who is meant, and which epoch its sender knows, so that what comes late is recognised. A frame may
//! come by way of a third agent; it is passed on as it is, and only once.

use std::time::Duration;

use super::{AgentId, Epoch, HostEnd, Members, News};
use crate::boot::Death;
use crate::id::ProcessId;

/// Changes whenever anything in the frames changes its meaning.
pub const VERSION: u32 = 3;

/// From an agent to the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FromAgent {
    /// Who speaks.
    pub agent: AgentId,
    /// The latest epoch that it has applied.
    pub epoch: Epoch,
    /// What it says.
    pub said: Said,
}

/// What an agent says to the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// I am here, and want to know everything. Until I am welcome, I do nothing. Numbered like a beat.
    Hello {
        /// Which beat.
        number: u64,
        /// Where other agents reach me.
        locator: String,
    },
    /// I am alive.
    Beat {
        /// Which beat, counted by the agent.
        number: u64,
        /// By how much my clock was late lately: who is starved is suspected later.
        late: Duration,
        /// The latest report that I know to be taken: a new root goes on from there.
        reports: u64,
    },
    /// Something happened to a process of mine. Repeated until acknowledged; taken in order.
    Report {
        /// Which report, counted by the agent from 1.
        number: u64,
        /// What happened.
        report: Report,
    },
    /// A process of mine cannot reach this one.
    Unreachable {
        /// Whom.
        process: ProcessId,
    },
    /// I was asked to look for this agent, and its host says that it is not there.
    Refused {
        /// Who is not there.
        agent: AgentId,
    },
    /// Another agent, which cannot reach you or does not hear you, says this. Answer by me.
    Passed(Box<FromAgent>),
}

/// What happened to a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Report {
    /// It was started.
    Started {
        /// Who.
        process: ProcessId,
        /// Its number on its host.
        pid: u32,
    },
    /// It left the job; it may still run.
    Left {
        /// Who.
        process: ProcessId,
    },
    /// It ended.
    Ended {
        /// Who.
        process: ProcessId,
        /// Of what.
        how: Death,
    },
    /// All my processes have ended, the job ends, and I go.
    Bye,
}

/// From the root to an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FromRoot {
    /// Who is meant: another life of this agent does not listen.
    pub to: AgentId,
    /// The latest epoch that was told.
    pub epoch: Epoch,
    /// What the root says.
    pub said: Order,
}

/// What the root says to an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    /// You are a member. This is all that was decided; news follow from here.
    Welcome {
        /// The answered hello, which counts as a beat.
        number: u64,
        /// Everybody.
        members: Box<Members>,
    },
    /// You may let your processes run, for the lease since you sent this beat, less the age.
    Grant {
        /// The answered beat.
        number: u64,
        /// How long ago whoever answers heard the root itself.
        age: Duration,
        /// All reports up to this one have been taken.
        reports: u64,
    },
    /// What was decided.
    News(News),
    /// Look for this agent, of which nothing is heard.
    Look {
        /// Whom.
        agent: AgentId,
        /// Where it was.
        locator: String,
    },
    /// This life of yours is over.
    Over {
        /// What everybody was told.
        how: HostEnd,
    },
    /// Pass this on to another agent.
    Pass(Box<FromRoot>),
}

/// What goes over a connection between two agents, of which the one of the first host may be the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Spoken {
    /// To the root.
    Up(FromAgent),
    /// From the root.
    Down(FromRoot),
    /// To an agent as such.
    Across(Between),
    /// About names: the bytes of a [`Frame`](crate::registry::Frame).
    Names(Vec<u8>),
}

/// From an agent to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Between {
    /// The root hears nothing of you: send it a beat by way of me.
    Look {
        /// Who asks.
        from: AgentId,
        /// Who is meant.
        to: AgentId,
    },
    /// Pass this on to the root.
    Up(FromAgent),
    /// The root says this to you.
    Down(FromRoot),
}
