//! How long and how many the parts of a message may be.

/// The largest packet between process and agent: as many networks and channels as a process may have, and some more.
pub const MAX_PACKET: usize = 64 * 1024;

/// The largest frame between launcher and agent: all that Linux takes as arguments and environment (6 MiB), and some more.
pub const MAX_FRAME: usize = 8 << 20;

/// The longest host name (RFC 1035) or address to listen on.
pub const MAX_HOST: usize = 255;

/// The longest locator: addresses and ports of all networks of a process, and of its channels.
pub const MAX_LOCATOR: usize = 16 * 1024;

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

/// The longest answer of a process to a roll-call: a packet has room for it.
pub const MAX_PRESENT: usize = MAX_PACKET - 1024;

/// The longest question about names: one name, and some more.
pub const MAX_QUESTION: usize = 512;

/// The longest answer to a question about names: three that are like the one that was asked for.
pub const MAX_ANSWER: usize = 1024;

/// The longest name of a map that is shown, in bytes: more would not leave room for the bar.
pub const MAX_MAP_NAME: usize = 64;

/// The most output in one frame.
pub const MAX_OUTPUT: usize = 1 << 20;

/// The most that an agent has passed on to another at a time: a snapshot of the largest job.
pub const MAX_PASSED: usize = MAX_FRAME - 64;

/// How much output of an agent may be on its way before the launcher asks for more. It bounds what a launcher keeps for
/// each host while nobody reads what it prints, and is far more than what a link of 100 MB/s delivers in a round trip.
///
/// An agent sends a frame if there is any room at all, so that a frame of [`MAX_OUTPUT`] may exceed it once.
pub const OUTPUT_ROOM: u32 = 256 * 1024;

/// The bytes of a frame that hold its length.
pub const FRAME_HEADER: usize = 4;
