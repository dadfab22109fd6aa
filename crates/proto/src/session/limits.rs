//! How much one session may hold, and how long it waits before it tries again.

use std::time::Duration;

/// How many bytes of frames are kept until they are acknowledged (docs/wire-sessions.md §22.4): the window of one mailbox, so that a
/// session holds no more for a peer that is away than a mailbox does for one that does not read.
pub const KEPT_MAX: u64 = crate::credit::WINDOW.bytes;

/// What a kept frame counts beside its bytes, so that the number of kept frames is bounded too: 16,384 of them.
pub const KEPT_OVERHEAD: u64 = 64;

/// How many bodies a greeting names (docs/wire-sessions.md §21.1): those that a link may have asked for, and those that may be pushed.
pub const EXPECTED_MAX: usize = crate::link::BODIES_MAX + crate::link::OFFERS_MAX;

/// How many bodies of ours may be under way: the parts and the offers that a link lets a peer have open.
pub const SENDING_MAX: usize = crate::link::PULLS_MAX + crate::link::OFFERS_MAX;

/// How many bodies one frame says that they were taken (docs/wire-sessions.md §23.3).
pub const TAKEN_MAX: usize = 64;

/// By how much a connection number may grow at once (docs/wire-sessions.md §21.4): nobody may use up all numbers with one greeting.
pub const CONNECTION_STEP: u64 = 1 << 32;

/// How long an acknowledgement waits for a frame to ride on (docs/wire-sessions.md §22.3).
pub const ACKNOWLEDGE_WITHIN: Duration = Duration::from_millis(25);

/// The first pause between two attempts to connect (docs/wire-sessions.md §25.1).
pub const PAUSE_MIN: Duration = Duration::from_millis(20);

/// The longest one: traffic must go on within a second after the network is back.
pub const PAUSE_MAX: Duration = Duration::from_millis(500);

/// How long an end that was dialled lets the other dial again first (docs/wire-sessions.md §25.1).
pub const OTHERS_TURN: Duration = Duration::from_millis(250);

/// How long a greeting waits for its answer, and a frame for any sign of the peer, before the connection is replaced
/// (docs/wire-sessions.md §25.2). It ends no session.
pub const SILENCE_MAX: Duration = Duration::from_secs(4);
