//! Links between places of one OS process: ranks of a local job, or a process with itself.

use core::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};

use mizzen_lane::{Consumer, Region, Ring, SharedProducer};
use tracing::debug;

use crate::bells::ring;
use crate::delivery::LaneIn;
use crate::error::{Departure, PostError};
use crate::link::Fate;
use crate::link::{Channel, Disconnected, LaneEnd, OpenLane, SENDER_LANE, SHARED_LANE};
use crate::link::{Ending, MailboxLane, MemoryLink, Owners, Parts};
use crate::links::Links;
use crate::lock::lock;
use crate::memory::{Place, Shared, SlabId, Tables};
use crate::message::Payload;
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
    /// The other place, once it knows its own side of this link: the thread that links both makes one side known first.
    fn other(&self) -> Option<Arc<Process>> {
        let other = self.other.upgrade()?;
        if other.peers.known(self.me.rank).is_none() {
            drop(lock(&LINKING));
        }
        Some(other)
    }

    fn their_link(&self) -> Option<Arc<MemoryLink>> {
        self.other()?.peers.link_to(self.me)
    }
}

impl Channel for Together {
    fn open_lane(&self, peer: &Fate, mailbox: MailboxId) -> Result<OpenLane, PostError> {
        let rank = peer.peer.rank;
        let closed = || PostError::Closed { rank };
        let gone = || PostError::PeerGone(peer.gone_or(Departure::Died));
        let other = self.other.upgrade().ok_or_else(gone)?;
        let core = other.mailboxes.get(mailbox).ok_or_else(closed)?;
        let theirs = self.their_link().ok_or_else(gone)?;
        let bells = self.bells.clone();
        let (producer, consumer) =
            Ring::heap(SENDER_LANE).ends_calling(move |bell| ring(&bells, bell));
        let (closed, done) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicBool::new(false)),
        );
        let (closed_by_owner, seen_by_owner) = (Arc::clone(&closed), Arc::clone(&done));
        let added = core.add_lane(LaneIn::new(consumer, theirs, seen_by_owner, move || {
            closed_by_owner.store(true, Ordering::Release);
        }));
        if !added {
            return Err(PostError::Closed { rank });
        }
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

    fn has_mailbox_lanes(&self) -> bool {
        true
    }

    fn open_mailbox_lane(&self, mailbox: MailboxId) -> Option<MailboxLane> {
        let (other, theirs) = (self.other()?, self.their_link()?);
        let core = other.mailboxes.get(mailbox)?;
        let (producer, consumer) = Ring::heap(SHARED_LANE).shared_ends_calling(|_| ());
        let ending = Arc::new(Ending::of(producer.clone()));
        let reader = Arc::downgrade(&theirs);
        let discard = move |flags, payload: &Payload| {
            if let Some(link) = reader.upgrade() {
                link.discard(flags, payload);
            }
        };
        let peek = consumer.peek();
        let lane = MailboxLane::new(producer, peek, Arc::clone(&ending), discard);
        let added = core.add_lane(LaneIn::of_mailbox(consumer, theirs, ending));
        other.mailboxes.wake(&core);
        added.then_some(lane)
    }

    fn show_slab(&self, slab: SlabId, shared: &Shared) -> Result<(), Disconnected> {
        let theirs = self.their_link().ok_or(Disconnected)?;
        let added = theirs.add_slab(slab, shared.region.clone());
        added.then_some(()).ok_or(Disconnected)
    }

    fn foretell_handed(&self) -> Result<(), Disconnected> {
        self.their_link().ok_or(Disconnected)?.note_handed();
        Ok(())
    }

    fn ask_to_show(&self, _: &Fate, slab: SlabId, to: ProcessId) -> Option<Place> {
        self.other()?.show_to(self.me, slab, to)
    }

    fn hide_slab(&self, slab: SlabId) {
        if let Some(theirs) = self.their_link() {
            theirs.remove_slab(slab);
        }
    }

    fn ends_with_its_process(&self) -> bool {
        false
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

/// One pair is linked at a time in the whole OS process: it is rare, and both sides must see both links.
static LINKING: Mutex<()> = Mutex::new(());

/// Links two places of one OS process, or a place with itself.
pub(crate) fn link_together(one: &Arc<Process>, other: &Arc<Process>) -> Path {
    let _one_at_a_time = lock(&LINKING);
    if let Some(path) = one.peers.known(other.id.rank) {
        return path;
    }
    let (to_other, from_one) = lane_from(one);
    let (ours, theirs) = (Tables::heap(), Tables::heap());
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

/// Where buffers belong that others hand on to `me`.
pub(crate) fn owners_of(me: &Process) -> Weak<dyn Owners> {
    let links: Weak<Links> = Arc::downgrade(&me.links);
    links
}

/// Makes the link of `me` to `peer`: over lanes out and back, with the tables in which each gives buffers back.
fn link(
    me: &Arc<Process>,
    peer: &Arc<Process>,
    (lane, inbound): (SharedProducer, Consumer),
    (mine, its): (&Tables, &Tables),
) -> Path {
    let parts = Parts {
        lane,
        inbound,
        watches: peer.mailboxes.watches.region.clone(),
        bells: peer.bells.shared.region.clone(),
        ours: mine.clone(),
        theirs: its.clone(),
        owners: owners_of(me),
    };
    let channel = Together {
        me: me.id,
        bells: me.bells.shared.region.clone(),
        other: Arc::downgrade(peer),
    };
    let link = Arc::new(MemoryLink::new(peer.id, parts, Box::new(channel)));
    debug!(parent: &me.span, peer = %peer.id, "link within the process made");
    let path = Path::Memory(Arc::clone(&link));
    me.peers.add(path.clone());
    me.links.add(link);
    path
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::sync::{Arc, Mutex};
    use std::time::{Duration, Instant};

    use super::{LINKING, Tables, lane_from, link};
    use crate::error::ReachError;
    use crate::lock::lock;
    use crate::process::Process;
    use crate::rank::{Address, Rank};
    use crate::{Endpoint, Error, MailboxRef};

    /// What rank 1 does with a mailbox of rank 0 while both are being linked: it knows its side, and rank 0 does not yet.
    fn half_linked(act: impl Fn(&Endpoint, Address) -> Result<(), Error> + Sync) {
        let (tell, told) = channel();
        let (tell, told) = (Mutex::new(tell), Mutex::new(told));
        let (answered, is_answered) = channel();
        let (answered, is_answered) = (Mutex::new(answered), Mutex::new(is_answered));
        let (show, shown) = channel();
        let (show, shown) = (Mutex::new(show), Mutex::new(shown));
        crate::local(2, |deck| {
            if deck.id().rank == 1 {
                lock(&tell).send(Arc::clone(&deck)).unwrap();
                let inbox = lock(&shown).recv().unwrap();
                let begun = Instant::now();
                while deck.peers.known(Rank(0)).is_none() && begun.elapsed() < BOUND {
                    std::thread::yield_now();
                }
                act(&deck, inbox)?;
                lock(&answered).send(()).unwrap();
                return Ok(());
            }
            let inbox = crate::Mailbox::open_in(&deck)?;
            lock(&show).send(inbox.full_address()).unwrap();
            let one: &Arc<_> = &deck;
            let other = lock(&told).recv().unwrap();
            let one_at_a_time = lock(&LINKING);
            let ((to_other, from_one), (to_one, from_other)) = (lane_from(one), lane_from(&other));
            let (ours, theirs) = (Tables::heap(), Tables::heap());
            link(&other, one, (to_one, from_one), (&theirs, &ours));
            // Long enough for the other to act, if it does not wait.
            let _ = lock(&is_answered).recv_timeout(Duration::from_millis(100));
            link(one, &other, (to_other, from_other), (&ours, &theirs));
            drop(one_at_a_time);
            lock(&is_answered)
                .recv_timeout(BOUND)
                .expect("it is answered");
            Ok(())
        })
        .unwrap();
    }

    #[test]
    fn who_opens_a_lane_while_it_is_being_linked_has_it() {
        half_linked(|deck, inbox| {
            MailboxRef::new(deck.clone(), inbox).sender()?.send(&1u8)?;
            Ok(())
        });
    }

    #[test]
    fn who_shows_its_memory_while_it_is_being_linked_is_heard() {
        half_linked(|deck, inbox| {
            MailboxRef::new(deck.clone(), inbox).send(&vec![1u8; 1 << 20][..])?;
            Ok(())
        });
    }

    /// Rank 1 leaves while rank 0 is about to link with it, so that its leaving does not find the link.
    #[test]
    fn who_leaves_while_it_is_being_linked_is_gone_for_good() {
        let (tell, told) = channel();
        let (tell, told) = (Mutex::new(tell), Mutex::new(told));
        crate::local(2, |deck| {
            if deck.id().rank == 1 {
                let (held, holds) = channel();
                let me: Arc<Process> = Arc::clone(&deck);
                let holder = std::thread::spawn(move || {
                    let one_at_a_time = lock(&LINKING);
                    held.send(()).unwrap();
                    let begun = Instant::now();
                    while !me.has_left() && begun.elapsed() < BOUND {
                        std::thread::yield_now();
                    }
                    drop(one_at_a_time);
                });
                holds.recv().unwrap();
                lock(&tell).send(holder).unwrap();
                // Long enough for the other to see that we are here, and to wait for the lock.
                std::thread::sleep(Duration::from_millis(100));
                return Ok(());
            }
            let holder = lock(&told).recv().unwrap();
            for _ in 0..3 {
                let reached = deck.reach(Rank(1));
                assert!(matches!(reached, Err(ReachError::Gone(_))), "{reached:?}");
            }
            holder.join().unwrap();
            Ok(())
        })
        .unwrap();
    }

    const BOUND: Duration = Duration::from_secs(10);
}
