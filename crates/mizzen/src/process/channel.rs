//! How two linked processes talk about their link: opening lanes, showing slabs, names. Directly when both are in one OS
//! process; over a Unix socket otherwise.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use mizzen_lane::{Producer, Ring, Shape};
use mizzen_proto::wire::NameFrame;

use super::Process;
use super::bells::ring;
use super::link::MemoryLink;
use crate::error::PostError;
use crate::host::SocketChannel;
use crate::mailbox::LaneIn;
use crate::memory::{Shared, SlabId};
use crate::rank::{MailboxId, ProcessId};

/// The lane of a `Sender`: enough slots that a burst does not wait, bytes for four eager messages of the longest kind.
pub(crate) const SENDER_LANE: Shape = Shape::new(512, 1 << 17);
/// The lane that all threads of a process share towards another process.
pub(crate) const SHARED_LANE: Shape = Shape::new(512, 1 << 17);

/// The peer is gone.
#[derive(Debug)]
pub(crate) struct Hangup;

/// The way to the other side of a link.
#[derive(Debug)]
pub(crate) enum Channel {
    /// A place in this OS process.
    Direct(Weak<Process>),
    /// Another process of this host.
    Socket(Arc<SocketChannel>),
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

impl core::fmt::Debug for LaneEnd {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("LaneEnd")
    }
}

impl Channel {
    /// Opens a lane to one of the peer's mailboxes.
    pub(crate) fn open_lane(
        &self,
        process: &Arc<Process>,
        link: &Arc<MemoryLink>,
        mailbox: MailboxId,
    ) -> Result<OpenLane, PostError> {
        match self {
            Self::Direct(other) => {
                let closed = || PostError::Closed {
                    rank: link.peer.rank,
                };
                let other = other.upgrade().ok_or_else(|| link.gone_or_died())?;
                let core = other.mailbox(mailbox).ok_or_else(closed)?;
                let theirs = other
                    .peers
                    .link_to(process.id)
                    .ok_or_else(|| link.gone_or_died())?;
                let ring_of_lane = Ring::heap(SENDER_LANE);
                let bells = process.bells.region.clone();
                let consumer = ring_of_lane
                    .clone()
                    .consumer_calling(move |bell| ring(&bells, bell));
                let (closed, done) = (
                    Arc::new(AtomicBool::new(false)),
                    Arc::new(AtomicBool::new(false)),
                );
                let (closed_by_owner, seen_by_owner) = (Arc::clone(&closed), Arc::clone(&done));
                core.add_lane(LaneIn::new(consumer, theirs, seen_by_owner, move || {
                    closed_by_owner.store(true, Ordering::Release);
                }));
                other.wake(&core);
                let (other, mailbox) = (Arc::downgrade(&other), core.id);
                let end = LaneEnd::new(move || {
                    done.store(true, Ordering::Release);
                    let Some(other) = other.upgrade() else { return };
                    if let Some(core) = other.mailbox(mailbox) {
                        core.look();
                        other.wake(&core);
                    }
                });
                Ok(OpenLane {
                    producer: ring_of_lane.producer(),
                    closed,
                    _end: end,
                })
            }
            Self::Socket(socket) => socket.open_lane(link, mailbox),
        }
    }

    /// Shows the peer one of our slabs.
    pub(crate) fn show_slab(
        &self,
        process: &Process,
        slab: SlabId,
        shared: &Shared,
    ) -> Result<(), Hangup> {
        match self {
            Self::Direct(other) => {
                let other = other.upgrade().ok_or(Hangup)?;
                let theirs = other.peers.link_to(process.id).ok_or(Hangup)?;
                theirs.add_slab(slab, shared.region.clone());
                Ok(())
            }
            Self::Socket(socket) => socket.show_slab(slab, shared),
        }
    }

    /// One of our slabs is gone.
    pub(crate) fn hide_slab(&self, process: &Process, slab: SlabId) {
        match self {
            Self::Direct(other) => {
                let other = other.upgrade();
                let theirs = other.and_then(|other| other.peers.link_to(process.id));
                theirs
                    .into_iter()
                    .for_each(|theirs| theirs.remove_slab(slab));
            }
            Self::Socket(socket) => socket.hide_slab(slab),
        }
    }

    /// Whether the peer is a process of its own: when it is dead, nobody reads its memory any more.
    pub(crate) fn ends_with_its_process(&self) -> bool {
        matches!(self, Self::Socket(_))
    }

    /// Sends a frame about names.
    pub(crate) fn send_name(&self, from: ProcessId, frame: NameFrame<'_>) -> Result<(), Hangup> {
        match self {
            Self::Direct(other) => {
                other.upgrade().ok_or(Hangup)?.handle_name(from, frame);
                Ok(())
            }
            Self::Socket(socket) => socket.send_name(frame),
        }
    }

    /// The peer does not drain its lane: some thread of it shall.
    pub(crate) fn remind(&self) {
        match self {
            Self::Direct(other) => {
                if let Some(other) = other.upgrade() {
                    other.pump_all();
                }
            }
            Self::Socket(socket) => socket.remind(),
        }
    }

    /// Ends the connection with a peer that misbehaved.
    pub(crate) fn cut(&self) {
        if let Self::Socket(socket) = self {
            socket.cut();
        }
    }
}
