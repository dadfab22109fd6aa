//! How two linked processes talk about their link: opening lanes, showing slabs, names.

use core::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use mizzen_lane::{Producer, Shape};

use super::fate::Fate;
use super::mailbox_lane::MailboxLane;
use crate::error::PostError;
use crate::memory::{Place, Shared, SlabId};
use crate::rank::{MailboxId, ProcessId};

/// The lane of a `Sender`: enough slots that a burst does not wait, bytes for four eager messages of the longest kind.
pub(crate) const SENDER_LANE: Shape = Shape::new(512, 1 << 17);
/// The lane that all threads of a process share towards another process.
pub(crate) const SHARED_LANE: Shape = Shape::new(512, 1 << 17);

/// The peer is gone.
#[derive(Debug)]
pub(crate) struct Disconnected;

/// The way to the other side of a link: a place in this OS process (`together`), or a socket to another process of this
/// host (`host::channel`).
pub(crate) trait Channel: Debug + Send + Sync {
    /// Opens a lane to one of the peer's mailboxes.
    fn open_lane(&self, peer: &Fate, mailbox: MailboxId) -> Result<OpenLane, PostError>;

    /// Whether mailboxes of the peer have lanes of their own, which our threads share: they are in this OS process.
    fn has_mailbox_lanes(&self) -> bool {
        false
    }

    /// Opens the lane of one of the peer's mailboxes. `None`: it is closed.
    fn open_mailbox_lane(&self, _: MailboxId) -> Option<MailboxLane> {
        None
    }

    /// Shows the peer one of our slabs.
    fn show_slab(&self, slab: SlabId, shared: &Shared) -> Result<(), Disconnected>;

    /// Others will hand on our buffers to the peer, which keeps what we showed it also when we are gone.
    fn foretell_handed(&self) -> Result<(), Disconnected>;

    /// Asks the peer to show one of its slabs to another process, so that we can hand on a buffer of it: the number of that
    /// process at the peer. `None`: it cannot.
    fn ask_to_show(&self, peer: &Fate, slab: SlabId, to: ProcessId) -> Option<Place>;

    /// One of our slabs is gone.
    fn hide_slab(&self, slab: SlabId);

    /// Whether the peer is a process of its own: when it is dead, nobody reads its memory any more.
    fn ends_with_its_process(&self) -> bool;

    /// The number of the peer's process, if it is another one of this host, as this process sees it.
    fn pid(&self) -> Option<u32> {
        None
    }

    /// The peer does not drain its lane: some thread of it shall.
    fn remind(&self);

    /// Ends the connection with a peer that misbehaved.
    fn cut(&self);
}

/// A lane of our own to a mailbox, and the mark that its receiver is gone.
#[derive(Debug)]
pub(crate) struct OpenLane {
    pub(crate) producer: Producer,
    pub(crate) closed: Arc<AtomicBool>,
    /// Dropped with the lane.
    pub(crate) _end: LaneEnd,
}

/// Says, when dropped, that the sender will not touch its lane again.
pub(crate) struct LaneEnd(Option<Box<dyn FnOnce() + Send>>);

impl LaneEnd {
    pub(crate) fn new(say: impl FnOnce() + Send + 'static) -> Self {
        Self(Some(Box::new(say)))
    }
}

impl Drop for LaneEnd {
    fn drop(&mut self) {
        if let Some(say) = self.0.take() {
            say();
        }
    }
}

impl Debug for LaneEnd {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("LaneEnd")
    }
}
