//! Channels: over one network, or joined from several.

use crate::Hosts;

/// A channel over one network: a plane of its own, on which mailboxes of its processes are reached over that network and no other.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Channel {
    /// What it is called. No other channel of the file has this name.
    pub name: String,
    /// The network that carries it.
    pub network: String,
    /// The hosts that are on it, all of them on its network.
    pub hosts: Hosts,
    /// Whether the file names it. One that is not stands for its network, and for that only.
    pub is_declared: bool,
}

/// A channel that joins others: a host that is on two of them is a gateway between them, without being declared one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct VirtualChannel {
    /// What it is called. No other channel of the file has this name.
    pub name: String,
    /// The channels it joins, in order of preference.
    pub channels: Vec<String>,
}

/// What the channel is called that everybody is on.
pub const DEFAULT_CHANNEL: &str = "default";
