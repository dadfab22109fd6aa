//! What a gateway sees of a fragment.

use crate::id::ProcessId;
use crate::membership::HostId;

/// What belongs together: from one process to another, in one job. Fragments of one flow take the same way while it is whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId {
    /// Which job, as the gateway numbers them.
    pub job: u32,
    /// Which flow of it, as its origin numbers them.
    pub flow: u64,
}

/// What a gateway sees of a fragment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Heading {
    /// What it belongs to.
    pub flow: FlowId,
    /// The host it is for.
    pub to: HostId,
    /// The process there.
    pub process: ProcessId,
    /// How many gateways it has passed.
    pub hop: u8,
    /// Its bytes.
    pub length: u32,
}

/// The buffer that a fragment is in, as whoever drives the gateway numbers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(pub u64);
