//! How much one link may hold, whatever the peer does.

/// How many offers of one end may be open (docs/wire.md §5.6): each holds a head at the receiver and a
/// message at the sender, and a receiver that reads none of them must stay bounded.
pub const OFFERS_MAX: usize = 1024;

/// How many bodies one end may have asked for and not yet got. Above it, asking waits its turn.
pub const BODIES_MAX: usize = 1024;

/// How many parts of bodies a peer may have asked for that were not sent (docs/wire.md §5.10): 4 MiB for one that asks byte by
/// byte. One of ours asks for [`BODIES_MAX`] at a time; an end learns late that a part went, so the limit is far above that.
pub const PULLS_MAX: usize = 1 << 16;

/// How many mailboxes of the peer are remembered as gone. A forgotten one costs a message and its answer.
pub const GONE_MAX: usize = 1024;

/// How many frames of the link's own may wait (docs/wire.md §8.3): 2 MiB for a peer that makes us answer
/// and never reads, far above what an honest one can cause.
pub const CONTROL_MAX: usize = 1 << 16;
