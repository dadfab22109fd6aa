//! What agents say to each other about names, and what processes and their agents say.

use std::sync::Arc;

use super::View;
use crate::id::{Address, MailboxId, RequestId};
use crate::membership::{AgentId, Epoch};

/// Grows with every change of what a name means. Who writes to something that all share passes it on, and what has a lower one is refused
/// there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct FencingNumber {
    /// The epoch in which the holder made the change.
    pub epoch: Epoch,
    /// Counted by the holder.
    pub counter: u64,
}

impl FencingNumber {
    /// In a handover: not what a name means, but a bind that is under way. Whoever makes it gives it a number.
    pub const WISH: Self = Self {
        epoch: Epoch(u64::MAX),
        counter: u64::MAX,
    };
}

/// What a name means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bound {
    /// When that was decided.
    pub number: FencingNumber,
    /// Which mailbox, and whose it is.
    pub address: Address,
}

/// A name and what it means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The name.
    pub name: Arc<str>,
    /// What it means.
    pub bound: Bound,
}

/// From an agent to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Who speaks.
    pub from: AgentId,
    /// Who is meant.
    pub to: AgentId,
    /// The latest epoch that the speaker has applied.
    pub epoch: Epoch,
    /// The view of that epoch. Who is of another view does not listen.
    pub view: View,
    /// Grows with each frame: one that comes later than a later one, over an older connection, is ignored.
    pub sequence: u64,
    /// What is said.
    pub said: Said,
}

/// Whether a read waits until somebody binds the name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Patience {
    /// It does.
    Wait,
    /// It is told at once that nobody has.
    Look,
}

/// What is to become of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Wish {
    /// It is to mean the address.
    Bind,
    /// It is to mean the address no longer.
    Unbind,
}

/// What became of a wish.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The name means what was asked for.
    Bound(FencingNumber),
    /// The name does not mean the address; with the number of the change, if it did before. An unbind that was done by a holder which died
    /// before it answered is answered without.
    Unbound(Option<FencingNumber>),
    /// The name means something else, which is another process's.
    Taken(Address),
    /// Nothing was done.
    Refused(Refusal),
}

/// Why nothing was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Refusal {
    /// The holder has no room for another name.
    #[error("the holder of the name is full")]
    NamesFull,
    /// The holder has no room for another fetch that waits.
    #[error("too many fetches wait at the holder of the name")]
    WaitingFull,
    /// The process to bind does not run on the asking host, as far as the holder knows.
    #[error("the process to bind is gone")]
    OwnerGone,
    /// Too many questions of the process or of its host are open.
    #[error("too many questions about names are open")]
    QuestionsFull,
}

/// What an agent says to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// To the new holder of these names: what they mean, or are to mean.
    Hand {
        /// Which of my handovers.
        number: u64,
        /// At most [`MAX_HANDED`](super::MAX_HANDED).
        records: Vec<Record>,
    },
    /// I have taken them.
    Handed {
        /// Which of your handovers.
        number: u64,
    },
    /// To the coordinator: I do nothing any more in an earlier view, remember nothing of one, and have handed over.
    Ready,
    /// From the coordinator: all are ready. Holders may answer.
    Established,
    /// What does the name mean?
    Read {
        /// The name.
        name: Arc<str>,
        /// Whether to wait for an answer.
        patience: Patience,
        /// When this was sent, by the asking agent's clock. The answer repeats it.
        stamp: u64,
    },
    /// I do not wait for the name any more.
    Withdraw {
        /// The name.
        name: Arc<str>,
    },
    /// A process of mine wishes this.
    Change {
        /// The name.
        name: Arc<str>,
        /// Which of my wishes. One that is said twice is done once.
        request: u64,
        /// All my wishes below this were answered.
        oldest: u64,
        /// What.
        wish: Wish,
        /// What the name is to mean, or to mean no longer: a mailbox of the process.
        address: Address,
    },
    /// The name means this.
    Found {
        /// The name.
        name: Arc<str>,
        /// What it means.
        bound: Bound,
        /// Of the read.
        stamp: u64,
        /// Whether the answer is good for the lease since the stamp.
        leased: bool,
    },
    /// The name means nothing.
    Free {
        /// The name.
        name: Arc<str>,
        /// Of the read.
        stamp: u64,
    },
    /// The read was not taken.
    Full {
        /// The name.
        name: Arc<str>,
    },
    /// What became of a wish.
    Changed {
        /// The name.
        name: Arc<str>,
        /// Which of your wishes.
        request: u64,
        /// What became of it.
        outcome: Outcome,
    },
    /// The name is about to change: forget what it means.
    Revoke {
        /// The name.
        name: Arc<str>,
        /// Which of my changes.
        round: u64,
    },
    /// I have.
    Revoked {
        /// The name.
        name: Arc<str>,
        /// Which of your changes.
        round: u64,
    },
    /// From the holder: keep this, or nothing, of the name.
    Copy {
        /// The name.
        name: Arc<str>,
        /// Which of my changes.
        round: u64,
        /// What it means.
        bound: Option<Bound>,
    },
    /// I do.
    Copied {
        /// The name.
        name: Arc<str>,
        /// Which of your changes.
        round: u64,
    },
}

/// From a process to its agent. Whose process it is says their socket, so nobody can bind for another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Question {
    /// Let the name mean a mailbox of mine.
    Bind {
        /// Repeated in the answer.
        request: RequestId,
        /// The name.
        name: Arc<str>,
        /// Which mailbox.
        mailbox: MailboxId,
    },
    /// Let the name mean this mailbox of mine no longer.
    Unbind {
        /// Repeated in the answer.
        request: RequestId,
        /// The name.
        name: Arc<str>,
        /// Which mailbox.
        mailbox: MailboxId,
    },
    /// What does the name mean?
    Read {
        /// Repeated in the answer.
        request: RequestId,
        /// The name.
        name: Arc<str>,
        /// Whether to wait until somebody binds it.
        patience: Patience,
    },
    /// Which names are like this one, which nobody has bound? It may be misspelt.
    Near {
        /// Repeated in the answer.
        request: RequestId,
        /// The name.
        name: Arc<str>,
    },
    /// The read is no longer of interest; it may have been answered.
    Cancel {
        /// Which read.
        request: RequestId,
    },
}

/// From an agent to its process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// What became of a bind or an unbind.
    Done {
        /// Of the question.
        request: RequestId,
        /// What became of it.
        outcome: Outcome,
    },
    /// What the name means.
    Found {
        /// Of the question.
        request: RequestId,
        /// What it means.
        bound: Bound,
    },
    /// Nobody has bound the name.
    Free {
        /// Of the question.
        request: RequestId,
    },
    /// Names that are like the one that was asked about, the nearest first: of those that this agent keeps.
    Near {
        /// Of the question.
        request: RequestId,
        /// At most [`MAX_NEAR`](super::MAX_NEAR).
        names: Vec<Arc<str>>,
    },
}

impl Question {
    /// The number that its answer has.
    #[must_use]
    pub fn request(&self) -> RequestId {
        match self {
            Self::Bind { request, .. }
            | Self::Unbind { request, .. }
            | Self::Read { request, .. }
            | Self::Near { request, .. }
            | Self::Cancel { request } => *request,
        }
    }
}

impl Answer {
    /// The number of its question.
    #[must_use]
    pub fn request(&self) -> RequestId {
        match self {
            Self::Done { request, .. }
            | Self::Found { request, .. }
            | Self::Free { request }
            | Self::Near { request, .. } => *request,
        }
    }
}

impl Said {
    /// The name that it is about, if it is about one.
    pub(super) fn name(&self) -> Option<&Arc<str>> {
        match self {
            Self::Read { name, .. }
            | Self::Withdraw { name }
            | Self::Change { name, .. }
            | Self::Found { name, .. }
            | Self::Free { name, .. }
            | Self::Full { name }
            | Self::Changed { name, .. }
            | Self::Revoke { name, .. }
            | Self::Revoked { name, .. }
            | Self::Copy { name, .. }
            | Self::Copied { name, .. } => Some(name),
            Self::Hand { .. } | Self::Handed { .. } | Self::Ready | Self::Established => None,
        }
    }
}
