//! What a driver refuses, and why.

use std::io;

use crate::{BodyId, PeerId};

/// Why something was not taken for sending or receiving. Nothing of it was, or will be, sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// No room just now: back-pressure. Offer it again after `Event::Writable`.
    #[error("no room towards {peer} just now")]
    Busy {
        /// The peer whose link is full.
        peer: PeerId,
    },
    /// There is no link to this peer (yet, or any more).
    #[error("no link to {peer}")]
    NotConnected {
        /// The peer without a link.
        peer: PeerId,
    },
    /// Longer than the capabilities say. Cut it.
    #[error("{len} bytes where at most {max} are carried")]
    TooLong {
        /// The length that was offered.
        len: usize,
        /// The longest that is carried.
        max: usize,
    },
    /// More parts than the capabilities say. Pack some of them together.
    #[error("{parts} parts where at most {max} are taken")]
    TooManyParts {
        /// The parts that were offered.
        parts: usize,
        /// The most that are taken.
        max: usize,
    },
    /// As many bodies are in flight as the capabilities say. Wait until one has finished.
    #[error("{max} bodies are in flight already")]
    TooManyBodies {
        /// The most that can be in flight with one peer in one direction.
        max: usize,
    },
    /// This driver sends no bodies that were not asked for. Have the peer ask for it.
    #[error("this network carries no bodies that were not asked for")]
    CannotPush,
    /// This body is in flight in this direction already. Choose another id.
    #[error("{body} is in flight already")]
    BodyInUse {
        /// The body in flight.
        body: BodyId,
    },
}

/// Why `connect` did not even start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// A process does not reach itself through a network.
    #[error("{peer} is this process")]
    Myself {
        /// This process.
        peer: PeerId,
    },
    /// There is a link, an attempt under way, or a loss that was not yet reported.
    #[error("{peer} is connected, or about to be")]
    Already {
        /// The peer in question.
        peer: PeerId,
    },
    /// The locator is none of this driver's.
    #[error("locator not understood: {why}")]
    BadLocator {
        /// What is wrong with it.
        why: String,
    },
}

/// The driver itself is unusable; every link of it is gone.
#[derive(Debug, thiserror::Error)]
#[error("network attachment unusable: {cause}")]
pub struct DriverError {
    /// What the system said.
    #[source]
    pub cause: io::Error,
}
