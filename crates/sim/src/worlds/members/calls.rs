//! What is done with names, as the oracles are told.

use mizzen_proto::id::Address;
use mizzen_proto::membership::AgentId;
use mizzen_proto::registry::{Bound, Outcome};

/// What is done with names, as an observer of processes and agents would see it.
#[derive(Debug, Clone, Hash)]
pub(super) enum NameNote {
    /// A process calls.
    Calls(u64, u32, Call),
    /// A call returns.
    Returns(u64, Return),
    /// A process gave a fetch up.
    GivesUp(u64),
    /// An agent keeps this of a name.
    Keeps(AgentId, u32, Option<Bound>),
    /// An agent answers this for a name from now on; so it says all of these keep it.
    Holds(u32, Bound, Vec<AgentId>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Call {
    Bind(Address),
    Unbind(Address),
    Fetch,
    Look,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Return {
    Done(Outcome),
    Found(Bound),
    Free,
}

/// The name with this number.
pub(super) fn name(number: u32) -> String {
    format!("name {number}")
}
