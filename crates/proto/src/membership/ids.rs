//! Hosts, lives of their agents, epochs.

use std::fmt;

/// Number of a host in its job, from 0. It never means another host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostId(pub u32);

/// One life of the agent of a host. Whoever starts an agent numbers it, so that a later one has a higher number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgentId {
    /// Whose agent.
    pub host: HostId,
    /// Which life of it, from 1.
    pub life: u32,
}

/// How many times the root has told news. Issued by the root; nobody else counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Epoch(pub u64);

impl AgentId {
    /// The given life of the agent of the given host.
    #[must_use]
    pub const fn new(host: HostId, life: u32) -> Self {
        Self { host, life }
    }
}

impl Epoch {
    /// The one after, or `None` at the end of numbers.
    pub(crate) fn next(self) -> Option<Self> {
        self.0.checked_add(1).map(Self)
    }
}

impl fmt::Display for HostId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}
