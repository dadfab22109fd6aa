//! How long and how many certificates may be.

/// The longest certificate of an authority or a process, in bytes. They have about 400; the longest cluster's name adds 126.
pub const MAX_CERTIFICATE: usize = 1024;

/// The most certificates that a peer may show. One is used; others may be needed when clusters have their own authorities.
pub const MAX_CHAIN: usize = 4;

/// The most bytes of all certificates that a peer may show.
pub const MAX_CHAIN_BYTES: usize = 16 * 1024;
