//! What can go wrong in a group.

use core::fmt;
use std::any::Any;

use mizzen_core::{Error, ErrorScope, Gone, Rank, ServiceError};
use mizzen_proto::group::schedule::Member;

/// Why members did not do something together. But for [`Taken`](Self::Taken) and [`Late`](Self::Late), such an error ends the group at all members: each gets one in
/// the operation it is in, or in its next one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GroupError {
    /// A member is gone.
    #[error("{call} cannot be done: member {member} is gone: {gone}")]
    Lost {
        /// Which member.
        member: Member,
        /// Its process.
        gone: Gone,
        /// What this member was doing.
        call: String,
    },
    /// Two members are in different operations, or in one with different lengths, types or roots.
    #[error(
        "members of a group do different things at the same time: {first}, but {second}; all must call the same operations in the same order"
    )]
    Differs {
        /// One of them.
        first: Doing,
        /// The other one.
        second: Doing,
    },
    /// A member has ended the group.
    #[error("{call} cannot be done: member {member} has revoked the group")]
    Revoked {
        /// Which member.
        member: Member,
        /// What this member was doing.
        call: String,
    },
    /// A member's operation panicked before it was done.
    #[error("{call} cannot be done: an operation of member {member} panicked")]
    Panicked {
        /// Which member.
        member: Member,
        /// What this member was doing.
        call: String,
    },
    /// What a member gave an operation does not fit the group.
    #[error("{call} cannot be done: member {member} gave it what does not fit: {what}")]
    Misfit {
        /// Which member.
        member: Member,
        /// In which way it does not fit.
        what: String,
        /// What this member was doing.
        call: String,
    },
    /// The process has its seat in the group of all already.
    #[error(
        "this process has its seat in the group of all processes already; `split` makes another group of the same members"
    )]
    Taken,
    /// The process was started again, and the group of all consists of the first lives.
    #[error(
        "this process was started again after its rank had died; the group of all processes is made of those that were started first"
    )]
    Late,
    /// Messages between members do not come through.
    #[error("{call} cannot be done: {cause}")]
    Broken {
        /// What happened.
        cause: String,
        /// What this member was doing.
        call: String,
    },
}

/// What a member does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Doing {
    /// Which member.
    pub member: Member,
    /// Its operation, with its place in the program. `None` if it did not say.
    pub call: Option<String>,
}

impl fmt::Display for Doing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.call {
            Some(call) => write!(f, "member {} does {call}", self.member),
            None => write!(f, "member {} something else", self.member),
        }
    }
}

impl GroupError {
    /// Whether only this call is wrong, and the group goes on.
    pub(super) fn is_of_the_call(&self) -> bool {
        matches!(self, Self::Taken | Self::Late)
    }
}

impl From<GroupError> for Error {
    fn from(error: GroupError) -> Self {
        Self::Service(Box::new(error))
    }
}

impl ServiceError for GroupError {
    fn scope(&self) -> ErrorScope {
        if self.is_of_the_call() {
            ErrorScope::Message
        } else {
            ErrorScope::Peer
        }
    }

    fn lost(&self) -> Option<Rank> {
        match self {
            Self::Lost { gone, .. } => Some(gone.rank()),
            _ => None,
        }
    }

    fn as_any(&self) -> &(dyn Any + Send + Sync) {
        self
    }
}
