//! Who and where: hosts, machines, their lives, and the connections between them.

use std::fmt;

/// A host of the simulated cluster, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostId(pub u32);

/// A machine: a process, an agent, a root. It keeps its number when it starts again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MachineId(pub u32);

/// Which life of a machine, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Life(pub u32);

/// One life of one machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// Which machine.
    pub machine: MachineId,
    /// Which life of it.
    pub life: Life,
}

/// A connection; never used again. Both ends know it by the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u64);

impl HostId {
    /// The number as an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl MachineId {
    /// The number as an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// `m3` for the first life of machine 3, `m3+2` for its third.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.life {
            Life(0) => write!(f, "m{}", self.machine.0),
            Life(later) => write!(f, "m{}+{later}", self.machine.0),
        }
    }
}
