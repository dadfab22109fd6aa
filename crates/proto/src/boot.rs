//! What is said while a job starts, lives and ends: between a process and the agent of its host, and between the agents
//! and the launcher.
//!
//! Three parties:
//!
//! - the *launcher* (`mizzen run`) starts the agents, prints what the job says, and passes on what its user wants;
//! - an *agent* on each host starts the processes there, introduces them to each other and reports their ends. The agent of the first
//!   host is the root, which decides what a death means: agents speak [`membership`](crate::membership) with each other;
//! - a *process* finds a connected packet socket at the descriptor that [`AGENT_FD`] names.
//!
//! Between process and agent go packets ([`ToProcess`], [`FromProcess`]): a packet of the socket is one message.
//! Between launcher and agent goes a byte stream (of a remote shell), cut into frames ([`ToAgent`], [`FromAgent`]) by
//! [`split_frame`]. Secrets travel in these two only, never in arguments or the environment: the authority's [`Secret`] from
//! the launcher to the agents, and no further. A process has its own keys certified ([`FromProcess::Certify`]).
//!
//! This is a codec: it moves no bytes. All numbers are little-endian; a text is its length (`u32`) and its bytes; a
//! message starts with a byte that tells its kind. What is decoded is foreign: a wrong byte is an error, nothing is
//! allocated beyond what arrived, and what is left over is refused.

mod channel;
pub(crate) mod codec;
mod condition;
mod death;
mod launcher;
mod limits;
mod network;
mod process;
mod progress;
mod secret;
mod start;
mod topology;

pub use channel::{Channel, MAX_CHANNELS, MAX_OWN_DRIVERS};
pub use codec::{DecodeError, TooLarge};
pub use condition::Condition;
pub use death::{Death, Unreachable};
pub use launcher::{FromAgent, SignalOrigin, Stream, ToAgent, split_frame};
pub use limits::{
    FRAME_HEADER, MAX_ANSWER, MAX_CERTIFICATE, MAX_CLUSTER, MAX_ERROR, MAX_FRAME, MAX_HOST,
    MAX_LIST, MAX_LOCATOR, MAX_MAP_NAME, MAX_OUTPUT, MAX_PACKET, MAX_PASSED, MAX_PRESENT,
    MAX_PROCESSES, MAX_QUESTION, MAX_REQUEST, MAX_SECRET, MAX_WAITING, OUTPUT_ROOM,
};
pub use network::{
    Carrier, Door, MAX_INTERFACES, MAX_NETWORKS, MAX_RANGES, MAX_SPANS, MAX_STREAMS, Network, Span,
};
pub use process::{Boot, FromProcess, ToProcess};
pub use progress::Progress;
pub use secret::Secret;
pub use start::{OnDeath, Part, Preset, Start};
pub use topology::{ChannelOf, HostOf, MAX_TOPOLOGY, NetworkOf, TOPOLOGY_PAGE, Topology};

/// The environment variable that holds the number of the descriptor of the agent's socket, in decimal.
pub const AGENT_FD: &str = "MIZZEN_AGENT_FD";

/// Changes whenever anything in this module changes its meaning. Launcher and agent must agree.
pub const VERSION: u32 = 15;

#[cfg(test)]
mod tests;
