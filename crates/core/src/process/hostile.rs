//! A peer of this host that breaks the rules of the shared lane: what it does to us has a bound.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

use mizzen_lane::{Region, Ring, SharedProducer};

use super::Process;
use crate::bells::BELL_BYTES;
use crate::delivery::Core;
use crate::desk::Desk;
use crate::error::Departure;
use crate::host::Alone;
use crate::link::{MemoryLink, Parts, SHARED_LANE, WINDOW};
use crate::memory::{Arena, Memory, SlabId, Tables};
use crate::message::Flags;
use crate::peers::Path;
use crate::progress::Progress as _;
use crate::rank::{ChannelId, Incarnation, ProcessId, Rank, WATCH_BYTES};
use crate::together::channel_to;

/// A process with one mailbox, and a peer linked with it that can do what it likes.
struct Hostile {
    process: Arc<Process>,
    mailbox: Arc<Core>,
    link: Arc<MemoryLink>,
    lane: SharedProducer,
}

impl Hostile {
    /// `call` is called whenever the process makes room for a peer that says it waits for some.
    fn new(call: impl Fn(u32) + Send + Sync + 'static) -> Self {
        let id = |rank| ProcessId::new(Rank(rank), Incarnation(0));
        let (memory, nobody) = (Memory::Heap, Box::new(Alone(Desk::new(2))));
        let process = Process::new(id(0), 2, "local".into(), memory, nobody).unwrap();
        let (lane, inbound) = Ring::heap(SHARED_LANE).shared_ends_calling(call);
        let parts = Parts {
            lane: Ring::heap(SHARED_LANE).shared_producer(),
            inbound,
            watches: Region::heap(WATCH_BYTES),
            bells: Region::heap(BELL_BYTES),
            ours: Tables::heap(),
            theirs: Tables::heap(),
            owners: Weak::<crate::links::Links>::new(),
        };
        let link = Arc::new(MemoryLink::new(id(1), parts, channel_to(Weak::new())));
        process.peers.add(Path::Memory(Arc::clone(&link)));
        process.links.add(Arc::clone(&link));
        Self {
            mailbox: process.mailboxes.open(ChannelId::DEFAULT).unwrap(),
            process,
            link,
            lane,
        }
    }

    /// Posts to the mailbox, without asking for credits.
    fn post(&self, count: u32) {
        for number in 0..count {
            let posted = || {
                let to = self.mailbox.id.0;
                self.lane
                    .try_short(Flags::SINGLE.0, to, &number.to_ne_bytes())
            };
            if posted().is_err() {
                self.process.pump_all();
                assert!(posted().is_ok() || self.link.fate.is_ended());
            }
        }
        for _ in 0..16 {
            self.process.pump_all();
        }
    }

    fn queued(&self) -> u32 {
        self.mailbox.queued.load(Ordering::Acquire) as u32
    }
}

#[test]
fn a_peer_that_posts_more_than_its_window_is_cut_off() {
    let hostile = Hostile::new(|_| ());
    hostile.post(WINDOW);
    assert!(!hostile.link.fate.is_ended(), "it may have a window unread");
    hostile.post(2 * WINDOW);
    assert_eq!(hostile.queued(), WINDOW);
    let gone = hostile.link.gone().expect("the link ended");
    assert_eq!(gone.how(), Departure::Misbehaved);
}

#[test]
fn what_was_taken_out_of_a_mailbox_makes_room_for_as_much() {
    let hostile = Hostile::new(|_| ());
    hostile.post(WINDOW);
    for _ in 0..10 * WINDOW {
        let entry = hostile.mailbox.next_entry(|_| false);
        entry.expect("a message");
        hostile.post(1);
    }
    assert_eq!(hostile.queued(), WINDOW);
    assert!(!hostile.link.fate.is_ended());
}

/// What a peer posts while its lane is drained, if nobody stops it.
const PATIENCE: usize = 100_000;

/// A peer that fills its lane whenever we have made room, and how many messages it posted so far.
fn insatiable() -> (Hostile, Arc<AtomicUsize>) {
    let lane: Arc<Mutex<Option<SharedProducer>>> = Arc::default();
    let posted = Arc::new(AtomicUsize::new(0));
    let refill = {
        let (lane, posted) = (Arc::clone(&lane), Arc::clone(&posted));
        move |_| {
            let lane = lane.lock().unwrap();
            let Some(lane) = lane.as_ref() else { return };
            while posted.load(Ordering::Relaxed) < PATIENCE
                && lane.try_short(Flags::CONTROL.0, 9, &[1, 0, 0, 0]).is_ok()
            {
                posted.fetch_add(1, Ordering::Relaxed);
            }
        }
    };
    let hostile = Hostile::new(refill.clone());
    *lane.lock().unwrap() = Some(hostile.lane.clone());
    // It waits for room all the time, so that it is called whenever there is some.
    hostile.lane.ring().room().wait(0);
    refill(0);
    (hostile, posted)
}

#[test]
fn the_end_of_a_link_does_not_wait_for_a_peer_that_goes_on_posting() {
    let (hostile, posted) = insatiable();
    hostile.process.end_link(&hostile.link, Departure::Left);
    let posted = posted.load(Ordering::Relaxed);
    assert!(posted < 3000, "the peer posted {posted} messages meanwhile");
}

#[test]
fn what_came_before_a_link_is_taken_without_waiting_for_the_peer_to_stop() {
    let (hostile, posted) = insatiable();
    hostile.link.take_backlog(&hostile.process.mailboxes);
    let posted = posted.load(Ordering::Relaxed);
    assert!(posted < 3000, "the peer posted {posted} messages meanwhile");
}

#[test]
fn the_slabs_of_a_peer_have_a_bound_in_bytes_and_are_counted_once() {
    const SLAB: usize = 64 << 20;
    let hostile = Hostile::new(|_| ());
    let region = Region::heap(SLAB);
    let most = (16usize << 30) / SLAB;
    for number in 0..most {
        assert!(hostile.link.add_slab(SlabId(number as u32), region.clone()));
    }
    let again = SlabId(3);
    assert!(hostile.link.add_slab(again, region.clone()), "shown twice");
    assert!(!hostile.link.has_room_for_slab(SLAB));
    hostile.link.remove_slab(again);
    assert!(hostile.link.has_room_for_slab(SLAB));
    assert!(!hostile.link.has_room_for_slab(Arena::LARGEST_SLAB + 1));
}
