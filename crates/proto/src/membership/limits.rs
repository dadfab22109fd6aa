//! How many and how long the things of the membership may be.

/// The most hosts of a job. A snapshot of so many, with locators, is below [`MAX_FRAME`](crate::boot::MAX_FRAME).
pub const MAX_HOSTS: usize = 4096;

/// The most blocks of ranks that are placed on hosts: some for each host.
pub const MAX_BLOCKS: usize = 4 * MAX_HOSTS;

/// The most entries of one epoch. The root closes an epoch that is full.
pub const MAX_ENTRIES: usize = 4096;

/// The longest locator of an agent: a handful of addresses and ports.
pub const MAX_LOCATOR: usize = 512;

/// The most reports of one agent that the root has not acknowledged: some for each process of a large host. An agent with
/// more keeps them, and sends them when it may.
pub const MAX_UNACKNOWLEDGED: usize = 1024;

/// The most epochs that are sent again at once to an agent that is behind.
pub const MAX_RESENT: usize = 64;

/// An agent that is so many epochs behind gets no grant until it has caught up: what the root keeps for it is bounded by
/// this and by what happens until the verdict on it.
pub const MAX_BEHIND: u64 = 1024;

/// The most news that an agent keeps because those before are missing.
pub const MAX_EARLY: usize = 64;

/// The most beats whose time an agent remembers: beyond the lease their grants would be worth nothing.
pub const MAX_BEATS: usize = 64;

/// How many others are asked to look for a host that is silent, and how many an agent asks to pass its beat on.
pub const PROBERS: usize = 2;

/// The most hosts for which an agent passes frames on at a time.
pub const MAX_RELAYED: usize = 64;

/// The longest frame about names: a handover of the longest ones.
pub const MAX_NAMES_FRAME: usize = 20 * 1024;
