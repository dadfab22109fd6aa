//! What happens in a history.

use crate::connection::Side;
use crate::faults::Fault;
use crate::ids::{ConnectionId, HostId, MachineId, Place};

/// What happens at some time.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Event {
    /// The next thing on the way from that side arrives.
    Arrive(ConnectionId, Side),
    /// That side learns that the connection broke.
    Tell(ConnectionId, Side),
    /// A dialler gives up, unless there was an answer.
    GiveUp(ConnectionId),
    /// Something on this connection may have been unacknowledged for too long.
    Stalled(ConnectionId),
    /// A timer of that life rings, if it was not set anew.
    Timer(Place, u64, u64),
    /// A machine starts, unless it lives.
    Start(MachineId),
    /// Another fault of that kind.
    Strike(Fault),
    /// That fault ends: its number among those that last.
    Heal(usize),
    Resume(HostId),
    PowerOn(HostId),
    Calm,
    End,
}
