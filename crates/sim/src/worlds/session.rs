//! [`Session`](mizzen_proto::session::Session)s between processes, over a network that loses connections.
//!
//! What a session accepted arrives exactly once and in order, or is in its account; two processes that live are never separated,
//! whatever becomes of their connections. Who meets a later life of a process holds the earlier one to be over, as membership
//! would say.

mod oracle;
mod speaker;

use crate::campaign::Scenario;
use crate::faults::{Fault, Faults};
use crate::kernel::run;
use oracle::Sessions;

/// Sessions between processes that live to the end.
pub const LIVING: Scenario = Scenario {
    name: "session",
    about: "sessions over connections that break: exactly once and in order, and everybody leaves",
    expected: &[],
    sometimes: &[
        "a connection broke",
        "a connection broke by silence",
        "a session went on over another connection",
        "the window was full",
        "a body went on from its middle",
        "a body arrived",
        "a greeting was refused",
        "a way was cut",
        "a host paused",
    ],
    run: |seed, record| {
        let mortal = [Fault::Crash, Fault::PowerLoss, Fault::Restart];
        let faults = mortal.into_iter().fold(Faults::all(), Faults::without);
        run(Sessions::new(seed, faults), seed, record)
    },
};

/// Sessions between processes that die and start again.
pub const MORTAL: Scenario = Scenario {
    name: "session-lives",
    about: "sessions between lives that end: nothing after the end, and the account lists what may be missing",
    expected: &[],
    sometimes: &[
        "a connection broke",
        "a session went on over another connection",
        "a verdict ended a session",
        "the account was not empty",
        "a machine crashed",
        "a host lost power",
        "a machine started again",
    ],
    run: |seed, record| run(Sessions::new(seed, Faults::all()), seed, record),
};
