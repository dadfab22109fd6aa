//! What drivers call a process, and how a message begins.

use mizzen_driver::PeerId;

use crate::rank::ProcessId;

pub(super) fn driver_id(peer: ProcessId) -> PeerId {
    PeerId(peer.to_u64())
}

/// Bytes of the flags in front of a message.
pub(super) const FLAGS: usize = 2;
