//! Links between places of one OS process: ranks of a local job, or a process with itself.

use core::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};

use mizzen_lane::{Consumer, Region, Returns, Ring, SharedProducer};
use mizzen_proto::wire::NameFrame;

use crate::bells::ring;
use crate::delivery::LaneIn;
use crate::error::{Departure, PostError};
use crate::link::Fate;
use crate::link::{Channel, Hangup, LaneEnd, OpenLane, SENDER_LANE, SHARED_LANE};
use crate::link::{MemoryLink, Parts};
use crate::lock::lock;
use crate::memory::{Arena, Shared, SlabId};
use crate::net::Control;
use crate::peers::Path;
use crate::process::Process;
use crate::progress::Progress;
use crate::rank::{MailboxId, ProcessId};

/// The way to a place in the same OS process.
struct Together {
    me: ProcessId,
    /// The bells of our threads.
    bells: Region,
    other: Weak<Process>,
}

impl Together {
    fn their_link(&self) -> Option<(Arc<Process>, Arc<MemoryLink>)> {
        let other = self.other.upgrade()?;
        let link = other.peers.link_to(self.me)?;
        Some((other, link))
    }
}

impl Channel for Together {
    fn open_lane(&self, peer: &Fate, mailbox: MailboxId) -> Result<OpenLane, PostError> {
        let rank = peer.peer.rank;
        let closed = || PostError::Closed { rank };
        let gone = || peer.gone_or(Departure::Died);
        let other = self.other.upgrade().ok_or_else(gone)?;
        let core = other.mailboxes.get(mailbox).ok_or_else(closed)?;
        let (_, theirs) = self.their_link().ok_or_else(gone)?;
        let bells = self.bells.clone();
        let (producer, consumer) =
            Ring::heap(SENDER_LANE).ends_calling(move |bell| ring(&bells, bell));
        let (closed, done) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicBool::new(false)),
        );
        let (closed_by_owner, seen_by_owner) = (Arc::clone(&closed), Arc::clone(&done));
        core.add_lane(LaneIn::new(consumer, theirs, seen_by_owner, move || {
            closed_by_owner.store(true, Ordering::Release);
        }));
        other.mailboxes.wake(&core);
        let (other, mailbox) = (Arc::downgrade(&other), core.id);
        let end = LaneEnd::new(move || {
            done.store(true, Ordering::Release);
            let Some(other) = other.upgrade() else { return };
            if let Some(core) = other.mailboxes.get(mailbox) {
                core.look();
                other.mailboxes.wake(&core);
            }
        });
        Ok(OpenLane {
            producer,
            closed,
            _end: end,
        })
    }

    fn show_slab(&self, slab: SlabId, shared: &Shared) -> Result<(), Hangup> {
        let (_, theirs) = self.their_link().ok_or(Hangup)?;
        let added = theirs.add_slab(slab, shared.region.clone());
        added.then_some(()).ok_or(Hangup)
    }

    fn hide_slab(&self, slab: SlabId) {
        if let Some((_, theirs)) = self.their_link() {
            theirs.remove_slab(slab);
        }
    }

    fn ends_with_its_process(&self) -> bool {
        false
    }

    fn send_name(&self, frame: NameFrame<'_>) -> Result<(), Hangup> {
        let other = self.other.upgrade().ok_or(Hangup)?;
        Control::handle_name(&*other, self.me, frame);
        Ok(())
    }

    fn remind(&self) {
        if let Some(other) = self.other.upgrade() {
            other.pump_all();
        }
    }

    fn cut(&self) {}
}

impl fmt::Debug for Together {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Together")
    }
}

/// The way to a place for somebody who is none: for peers that tests play.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn channel_to(other: Weak<Process>) -> Box<dyn Channel> {
    Box::new(Together {
        me: ProcessId::from_u64(0),
        bells: Region::heap(crate::bells::BELL_BYTES),
        other,
    })
}

/// Links two places of one OS process, or a place with itself.
pub(crate) fn link_together(one: &Arc<Process>, other: &Arc<Process>) -> Path {
    // One pair is linked at a time in the whole OS process: it is rare, and both sides must see both links.
    static LINKING: Mutex<()> = Mutex::new(());
    let _one_at_a_time = lock(&LINKING);
    if let Some(path) = one.peers.known(other.id.rank) {
        return path;
    }
    let (to_other, from_one) = lane_from(one);
    let (ours, theirs) = (returns(), returns());
    if Arc::ptr_eq(one, other) {
        return link(one, one, (to_other, from_one), (&ours, &ours));
    }
    let (to_one, from_other) = lane_from(other);
    link(other, one, (to_one, from_one), (&theirs, &ours));
    link(one, other, (to_other, from_other), (&ours, &theirs))
}

/// The lane that all threads of `sender` share. Its receiver calls its sender.
fn lane_from(sender: &Process) -> (SharedProducer, Consumer) {
    let bells = sender.bells.shared.region.clone();
    Ring::heap(SHARED_LANE).shared_ends_calling(move |bell| ring(&bells, bell))
}

fn returns() -> Returns {
    Returns::new(
        Region::heap(Returns::bytes(Arena::MAX_BLOCKS)),
        Arena::MAX_BLOCKS,
    )
}

/// Makes the link of `me` to `peer`: over lanes out and back, with the tables in which each gives buffers back.
fn link(
    me: &Arc<Process>,
    peer: &Arc<Process>,
    (lane, inbound): (SharedProducer, Consumer),
    (mine, its): (&Returns, &Returns),
) -> Path {
    let parts = Parts {
        lane,
        inbound,
        watches: peer.mailboxes.watches.region.clone(),
        bells: peer.bells.shared.region.clone(),
        returns: mine.clone(),
        their_returns: its.clone(),
    };
    let channel = Together {
        me: me.id,
        bells: me.bells.shared.region.clone(),
        other: Arc::downgrade(peer),
    };
    let link = Arc::new(MemoryLink::new(peer.id, parts, Box::new(channel)));
    let path = Path::Memory(Arc::clone(&link));
    me.peers.add(path.clone());
    me.links.add(link);
    path
}
