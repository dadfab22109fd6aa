//! Names, kept by the agents of the hosts (docs/design/names-at-agents.md).
//!
//! | part | what it does |
//! | --- | --- |
//! | front | asks for the processes of this host, once for all, and remembers answers under a lease |
//! | holder | answers for the names whose holder this agent is, and changes them |
//! | keeping | what is kept of names, as a holder and for other holders |
//! | handover | from one set of hosts to the next |
//! | [`Asker`] | at a process: the questions that it waits for |
//! | [`Alone`] | the same without a network, for a test or a job of one host |
//!
//! Who holds a name follows from the hosts that are here ([`Placement`]). Whatever the machine is told comes with what the membership
//! says at that moment ([`Seen`]): it applies a new epoch before anything else, so that it never answers by two opinions. `handle_*` in,
//! `poll_action` out, and `next_wakeup` says when to call `handle_tick`. Frames may be lost: all that is not answered is said again.

mod alone;
mod asker;
mod codec;
mod frames;
mod front;
mod handover;
mod holder;
mod keeping;
mod limits;
mod machine;
mod name;
mod near;
mod outbox;
mod slot;
mod view;

pub use alone::Alone;
pub use asker::{AskError, Asker, Misfit};
pub use frames::{
    Answer, Bound, FencingNumber, Frame, Outcome, Patience, Question, Record, Refusal, Said, Wish,
};
pub use limits::{
    COPIES, MAX_ANSWERED, MAX_CACHED, MAX_HANDED, MAX_KEPT, MAX_LEASES, MAX_NAMES, MAX_NEAR,
    MAX_OPEN, MAX_QUESTIONS, MAX_QUEUED, MAX_WAITING,
};
pub use machine::{Registry, Sizes};
pub use name::{NAME_MAX, Name, NameFault};
pub use outbox::{Action, Seen};
pub use view::{Placement, View};

#[cfg(test)]
mod tests;
