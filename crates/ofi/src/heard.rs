//! What the bootstrap says of its links, kept until it is looked at.

use mizzen_driver::{ConnectFailure, Event, LossReason, PeerId};

use crate::hello::Hello;

/// Something that the bootstrap said.
#[derive(Debug)]
pub(crate) enum Heard {
    /// A link, and whether we dialled.
    Connected(PeerId, bool),
    ConnectFailed(PeerId, ConnectFailure),
    /// A frame, if it is short enough for a hello.
    Frame(PeerId, Option<Vec<u8>>),
    Writable(PeerId),
    Lost(PeerId, LossReason),
}

impl Heard {
    pub(crate) fn peer(&self) -> PeerId {
        match *self {
            Self::Connected(peer, _)
            | Self::ConnectFailed(peer, _)
            | Self::Frame(peer, _)
            | Self::Writable(peer)
            | Self::Lost(peer, _) => peer,
        }
    }

    pub(crate) fn from(event: Event<'_>) -> Option<Self> {
        Some(match event {
            Event::Connected { peer, dialled } => Self::Connected(peer, dialled),
            Event::ConnectFailed { peer, reason } => Self::ConnectFailed(peer, reason),
            Event::Frame { peer, bytes } => {
                let is_short = bytes.len() <= Hello::MAX_LEN;
                Self::Frame(peer, is_short.then(|| bytes.to_vec()))
            }
            Event::Writable { peer } => Self::Writable(peer),
            Event::Lost { peer, reason } => Self::Lost(peer, reason),
            // It was asked for no body.
            Event::BodySent { .. }
            | Event::BodyReceived { .. }
            | Event::BodyWaiting { .. }
            | Event::BodyFailed { .. } => {
                return None;
            }
        })
    }
}
