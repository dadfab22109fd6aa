//! What waits to be reported.

use mizzen_driver::{Event, PeerId};

/// Something to be reported before anything new.
#[derive(Debug)]
pub(crate) enum Report {
    Event(Event<'static>),
    /// A frame of a link that has ended since, and its port perhaps with it.
    Frame {
        peer: PeerId,
        bytes: Vec<u8>,
    },
}

impl Report {
    pub(crate) fn peer(&self) -> PeerId {
        match self {
            Self::Event(event) => event.peer(),
            Self::Frame { peer, .. } => *peer,
        }
    }
}

impl From<Event<'static>> for Report {
    fn from(event: Event<'static>) -> Self {
        Self::Event(event)
    }
}
