//! Who belongs to the job and who lives: decided once, by the root, and told to all in one order (docs/design/membership.md).
//!
//! | who | holds | decides |
//! | --- | --- | --- |
//! | [`Root`] | [`Members`], the news that somebody may lack, a watch for each agent | everything: joins, ends, restarts, the end of the job |
//! | [`Agent`] | [`Members`], its lease, reports that the root has not taken | when to end its own processes |
//! | a process | a [`Fence`] | whose frames to refuse |
//!
//! What the root decides is one log of [`Entry`]s, cut into epochs ([`News`]). [`Members`] is what follows from it, at everybody
//! who has read the same log. Times, leases and suspicions are not in the log: a root that takes over waits for a
//! lease before it pronounces anybody.
//!
//! The machines have no IO: `handle_*` and commands in, `poll_action` out, and `next_wakeup` says when to call `handle_tick`. Whoever
//! drives one delivers all frames that have arrived before a tick, so that who was not scheduled does not take others for dead.

mod agent;
pub(crate) mod codec;
mod entry;
mod fence;
mod frames;
mod ids;
mod limits;
mod members;
mod pace;
mod root;

pub use agent::{Action as AgentAction, Agent, Why};
pub use entry::{Change, Ending, Entry, HostEnd, News, Notice};
pub use fence::{Admission, Fence, Gap};
pub use frames::{Between, FromAgent, FromRoot, Order, Report, Said, Spoken, VERSION};
pub use ids::{AgentId, Epoch, HostId};
pub use limits::{
    MAX_BEATS, MAX_BEHIND, MAX_BLOCKS, MAX_EARLY, MAX_ENTRIES, MAX_HOSTS, MAX_LOCATOR,
    MAX_NAMES_FRAME, MAX_RELAYED, MAX_RESENT, MAX_UNACKNOWLEDGED, PROBERS,
};
pub use members::{Contradiction, Host, HostStanding, Members, Standing, State};
pub use pace::Pace;
pub use root::{Action as RootAction, Policy, Root};

#[cfg(test)]
mod tests;
