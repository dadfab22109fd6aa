//! What is said while a job starts, lives and ends: between a process and the agent of its host, and between the agents
//! and the launcher.
//!
//! Three parties:
//!
//! - the *launcher* (`mizzen run`) knows the whole job and decides what a death means;
//! - an *agent* on each host starts the processes there, introduces them to each other and reports their ends;
//! - a *process* finds a connected packet socket at the descriptor that [`AGENT_FD`] names.
//!
//! Between process and agent go packets ([`ToProcess`], [`FromProcess`]): a packet of the socket is one message.
//! Between launcher and agent goes a byte stream (of a remote shell), cut into frames ([`ToAgent`], [`FromAgent`]) by
//! [`split_frame`]. Secrets travel in these two only, never in arguments or the environment: the authority's [`Secret`] from
//! the launcher to the agents, and no further. A process has keys of its own certified ([`FromProcess::Certify`]).
//!
//! This is a codec: it moves no bytes. All numbers are little-endian; a text is its length (`u32`) and its bytes; a
//! message starts with a byte that tells its kind. What is decoded is foreign: a wrong byte is an error, nothing is
//! allocated beyond what arrived, and what is left over is refused.

mod codec;
mod launcher;
mod network;
mod process;
mod secret;
mod start;

pub use codec::{DecodeError, TooLarge};
pub use launcher::{FromAgent, SignalOrigin, Stream, ToAgent, split_frame};
pub use network::{Carrier, MAX_INTERFACES, MAX_NETWORKS, Network};
pub use process::{Boot, FromProcess, ToProcess};
pub use secret::Secret;
pub use start::{OnDeath, Start};

/// The environment variable that holds the number of the descriptor of the agent's socket, in decimal.
pub const AGENT_FD: &str = "MIZZEN_AGENT_FD";
/// The environment variable that is 1 if what the launcher prints goes to a terminal: somebody looks.
pub const TERMINAL: &str = "MIZZEN_TERMINAL";

/// Changes whenever anything in this module changes its meaning. Launcher and agent must agree.
pub const VERSION: u32 = 5;

/// The largest packet between process and agent: as many networks as a process may have, and change.
pub const MAX_PACKET: usize = 16 * 1024;

/// The largest frame between launcher and agent: all that Linux takes as arguments and environment (6 MiB), and change.
pub const MAX_FRAME: usize = 8 << 20;

/// The longest host name (RFC 1035) or address to listen on.
pub const MAX_HOST: usize = 255;

/// The longest locator: a handful of addresses and ports.
pub const MAX_LOCATOR: usize = 1024;

/// The longest name of a cluster: a DNS label (RFC 1035).
pub const MAX_CLUSTER: usize = 63;

/// The longest certificate: of an authority or of a process.
pub const MAX_CERTIFICATE: usize = 2048;

/// The longest request for a certificate: a public key and a signature.
pub const MAX_REQUEST: usize = 256;

/// The longest secret of an authority: a key, and whose it is.
pub const MAX_SECRET: usize = 256;

/// The most processes of a job.
pub const MAX_PROCESSES: u32 = 65_536;

/// The most arguments, or variables of the environment.
pub const MAX_LIST: usize = 65_536;

/// The longest error an agent reports, in bytes.
pub const MAX_ERROR: usize = 16 * 1024;

/// The longest text about a wait, in bytes: a sentence, with the name of what is waited for.
pub const MAX_WAITING: usize = 512;

/// The most output in one frame.
pub const MAX_OUTPUT: usize = 1 << 20;

/// The bytes of a frame that hold its length.
pub const FRAME_HEADER: usize = 4;

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Death {
    /// It exited with this code.
    Exit(u8),
    /// It was killed by this signal.
    Signal(u8),
    /// Its host cannot be reached any more.
    HostLost,
}

/// Why a process cannot be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unreachable {
    /// The job has no such process, or it is the one that asks.
    NoSuchRank,
    /// It failed, and is not started again.
    Dead,
    /// It left the job, or ended with exit code 0.
    Left,
}

/// A job of several hosts needs an authority, and a job of one host has none.
fn check_hosts(hosts: u32, size: u32, authority: &[u8]) -> Result<(), DecodeError> {
    if (1..=size).contains(&hosts) && (hosts > 1) != authority.is_empty() {
        Ok(())
    } else {
        Err(DecodeError::Value)
    }
}

#[cfg(test)]
mod tests;
