//! A connect under way: which addresses are left, and what became of those tried.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Instant;

use mizzen_driver::ConnectFailure;

use crate::slots::Key;

/// A connect under way.
#[derive(Debug)]
pub(crate) struct Dial {
    /// Addresses not yet tried.
    pub(crate) addresses: VecDeque<SocketAddr>,
    pub(crate) serial: u64,
    /// The connection that is being made.
    pub(crate) attempt: Option<Key>,
    /// The address being tried, and until when.
    pub(crate) trying: Option<(SocketAddr, Instant)>,
    /// The peer's own dial, which waits for the end of this one.
    pub(crate) parked: Option<Key>,
    pub(crate) failure: ConnectFailure,
}
