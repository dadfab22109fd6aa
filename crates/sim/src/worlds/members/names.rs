//! Names at agents: the same job, whose processes bind, fetch and unbind names (docs/design/names-at-agents.md).

mod caller;
mod desk;
mod object;
mod oracle;

pub(super) use caller::Caller;
pub(super) use desk::Desk;
pub(super) use oracle::Oracle;

use mizzen_proto::id::Address;
use mizzen_proto::membership::AgentId;
use mizzen_proto::registry::{Bound, Outcome};

use super::Job;
use super::plan::Plan;
use crate::campaign::Scenario;
use crate::kernel::run;

/// Names, and everything that goes wrong.
pub const SCENARIO: Scenario = Scenario {
    name: "registry",
    about: "names at agents: linear, one owner, numbers that grow, nothing waits for ever",
    expected: &[],
    sometimes: &[
        "a lease was over",
        "a process was started again",
        "a host was pronounced silent",
        "a host came back in a new life",
        "a partition",
        "a host paused",
        "a host lost power",
        "a name was taken",
        "a name was bound",
        "a name was unbound",
        "a name moved",
        "a fetch waited",
        "a fetch was cancelled",
        "a name was free",
        "an answer was remembered",
        "names were handed over",
        "a lease of a name was revoked",
        "a wish was answered in a later view",
    ],
    run: |seed, record| run(Job::of(Plan::with_names(seed)), seed, record),
};

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
