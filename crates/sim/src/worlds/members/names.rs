//! Names at agents: what processes, agents and oracles of the job do with names (docs/design/names-at-agents.md).

mod caller;
mod desk;
mod object;
mod oracle;

pub(super) use caller::Caller;
pub(super) use desk::Desk;
pub(super) use oracle::Oracle;
