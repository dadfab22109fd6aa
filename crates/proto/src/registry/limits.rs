//! How many and how long the things of the registry may be.

use std::time::Duration;

use crate::membership::Pace;

/// How many agents keep a name, besides the agent of its owner: the holder, which answers, and two more.
pub const COPIES: usize = 3;

/// An agent that keeps so many names takes no new one: with names of 64 bytes about 10 MiB. A bind beyond is refused.
pub const MAX_NAMES: usize = 65_536;

/// The most names that one agent keeps at all, with what other holders copy and hand to it. What comes beyond is not kept: its
/// owner's agent has it.
pub const MAX_KEPT: usize = 4 * MAX_NAMES;

/// The most agents that wait at one holder, over all names. A fetch beyond is refused.
pub const MAX_WAITING: usize = 65_536;

/// The most leases of one holder, over all names. Answers beyond are good for once.
pub const MAX_LEASES: usize = 65_536;

/// The most asks of one name that wait at its holder for a change that is under way: two from each agent. What comes beyond is asked again.
pub const MAX_QUEUED: usize = 8192;

/// The most answers to wishes of one agent that a holder keeps, to say them again: as many as an agent has open.
pub const MAX_ANSWERED: usize = MAX_QUESTIONS;

/// The most questions of one process that are open.
pub const MAX_OPEN: usize = 4096;

/// The most questions of all processes of a host that are open.
pub const MAX_QUESTIONS: usize = 65_536;

/// The most answers that an agent remembers for its processes.
pub const MAX_CACHED: usize = 4096;

/// The most names in one frame of a handover: with the longest names some 20 KiB.
pub const MAX_HANDED: usize = 64;

/// The most names that are suggested in place of one that nobody has bound.
pub const MAX_NEAR: usize = 3;

/// How long an asking agent may use an answer again. Longer spares more asks, and makes a holder wait longer for who cannot be told.
pub(super) fn lease(pace: &Pace) -> Duration {
    pace.beat
}

/// How long a holder waits for a lease to be over: clocks may differ by a hundredth.
pub(super) fn lease_at_holder(pace: &Pace) -> Duration {
    pace.beat + pace.beat / 64
}

/// How long nothing is said again that was not answered; then twice as long, and so on.
pub(super) fn first_gap(pace: &Pace) -> Duration {
    (pace.beat / 16).min(FIRST_GAP)
}

/// What comes a moment before its receiver knows of the same hosts is not heard: when a job starts, that is usual, and names are what it
/// waits for.
const FIRST_GAP: Duration = Duration::from_millis(5);

/// The longest time between two times of saying the same.
pub(super) fn last_gap(pace: &Pace) -> Duration {
    pace.suspect.min(LAST_GAP)
}

/// However patient a job is, a network that is back is not waited for longer than this.
const LAST_GAP: Duration = Duration::from_secs(1);
