//! Doors for the fuzz targets in `fuzz/targets`: a process at the mercy of a hostile peer of its host, which may do anything
//! with the memory it writes. For nobody else.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use mizzen_lane::{Producer, Region, Ring, SHORT_MAX, Shape, SharedProducer};

use crate::bells::BELL_BYTES;
use crate::delivery::LaneIn;
use crate::desk::Desk;
use crate::endpoint::Endpoint;
use crate::error::{Departure, Result, UnpackError};
use crate::host::{self, Alone};
use crate::incoming::Incoming;
use crate::link::{MemoryLink, Parts};
use crate::mailbox::Mailbox;
use crate::memory::{Memory, SlabId, Tables};
use crate::message::{Flags, Payload};
use crate::peers::Path;
use crate::process::Process;
use crate::rank::{Incarnation, MailboxId, ProcessId, Rank, WATCH_BYTES};
use crate::together::channel_to;

/// Reads a packet between two processes of a host.
///
/// # Panics
///
/// When one that was taken is not written as it was read.
pub fn packet(bytes: &[u8]) {
    host::fuzz_packet(bytes);
}

/// Memory that the hostile peer writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SharedMemory {
    /// The lane that all its threads share.
    SharedLane,
    /// The lane of one of its senders.
    SenderLane,
    /// A slab of its arena: number 0 or 1.
    Slab(usize),
    /// The watches of its mailboxes.
    Watches,
}

/// A process with one mailbox, a hostile peer, and all memory that the peer writes.
///
/// The peer is gone already, so that nothing is waited for that did not come: what it wrote is still read.
pub struct Victim {
    process: Arc<Process>,
    mailbox: Mailbox,
    id: u64,
    link: Arc<MemoryLink>,
    shared: SharedProducer,
    shared_memory: Region,
    sender: Producer,
    sender_memory: Region,
    /// The mailbox drops the lane of a sender whose process is gone when it finds nothing in it: there is another then.
    dropped: Arc<AtomicBool>,
    bells: Region,
    slabs: [Region; 2],
    watches: Region,
    _endpoint: Endpoint,
}

const PEER: ProcessId = ProcessId::new(Rank(1), Incarnation(0));

impl Victim {
    /// A fresh one.
    ///
    /// # Panics
    ///
    /// When the system has no memory.
    #[must_use]
    #[allow(
        clippy::new_without_default,
        reason = "it is made for what is done to it"
    )]
    pub fn new() -> Self {
        let me = ProcessId::new(Rank(0), Incarnation(0));
        let process = Process::new(
            me,
            2,
            "local".into(),
            Memory::Heap,
            Box::new(Alone(Desk::new(2))),
        )
        .expect("heap memory");
        let endpoint = Endpoint::new(Arc::clone(&process));
        let mailbox = Mailbox::open_in(&endpoint).expect("the first mailbox");
        let core = Arc::clone(mailbox.core());
        let (shared, consumer, shared_memory) = lane();
        let watches = Region::heap(WATCH_BYTES);
        let bells = Region::heap(BELL_BYTES);
        let parts = Parts {
            lane: Ring::heap(LANE).shared_producer(),
            inbound: consumer.consumer_calling(calling(&bells)),
            watches: watches.clone(),
            bells: bells.clone(),
            ours: Tables::heap(),
            theirs: Tables::heap(),
            owners: Weak::<crate::links::Links>::new(),
        };
        let link = Arc::new(MemoryLink::new(PEER, parts, channel_to(Weak::new())));
        let slabs = [Region::heap(SLAB), Region::heap(SLAB)];
        for (number, slab) in slabs.iter().enumerate() {
            let added = link.add_slab(SlabId(number as u32), slab.clone());
            assert!(added, "a peer may show two slabs");
        }
        process.peers.add(Path::Memory(Arc::clone(&link)));
        process.links.add(Arc::clone(&link));
        link.end(Departure::Died);
        let (sender, _, sender_memory) = lane();
        let mut victim = Self {
            mailbox,
            id: core.id.0,
            link,
            shared: shared.shared_producer(),
            shared_memory,
            sender: sender.producer(),
            sender_memory,
            dropped: Arc::default(),
            bells,
            slabs,
            watches,
            process,
            _endpoint: endpoint,
        };
        victim.open_lane();
        victim
    }

    /// The peer writes into memory of its own, as far as there is any.
    pub fn write(&self, place: SharedMemory, offset: usize, bytes: &[u8]) {
        let region = match place {
            SharedMemory::SharedLane => &self.shared_memory,
            SharedMemory::SenderLane => &self.sender_memory,
            SharedMemory::Slab(number) => &self.slabs[number % self.slabs.len()],
            SharedMemory::Watches => &self.watches,
        };
        let offset = offset % region.len();
        let len = bytes.len().min(region.len() - offset);
        // SAFETY: the peer, its memory and the process that reads it are in the thread that calls this.
        unsafe { region.copy_in(offset, &bytes[..len]) };
    }

    /// The peer posts: to the mailbox, or to another on the shared lane. `false`: the lane is full.
    pub fn post(&mut self, lane: SharedMemory, tag: u16, to: Option<u64>, bytes: &[u8]) -> bool {
        let to = to.unwrap_or(self.id);
        if lane == SharedMemory::SharedLane {
            let posted = if bytes.len() <= SharedProducer::SHORT_MAX {
                self.shared.try_short(tag, to, bytes).map(drop)
            } else {
                self.shared.try_eager(tag, to, [bytes]).map(drop)
            };
            return posted.is_ok();
        }
        if self.dropped.load(Ordering::Relaxed) {
            self.open_lane();
        }
        let posted = if bytes.len() <= SHORT_MAX {
            self.sender.try_short(tag, bytes)
        } else {
            self.sender.try_eager(tag, to, [bytes])
        };
        posted.is_ok()
    }

    /// A sender of the peer opens a lane.
    fn open_lane(&mut self) {
        let (sender, receiver, memory) = lane();
        let (dropped, seen) = (Arc::new(AtomicBool::new(false)), Arc::default());
        self.dropped = Arc::clone(&dropped);
        if let Some(core) = self.process.mailboxes.get(MailboxId(self.id)) {
            core.add_lane(LaneIn::new(
                receiver.consumer_calling(calling(&self.bells)),
                Arc::clone(&self.link),
                seen,
                move || dropped.store(true, Ordering::Relaxed),
            ));
        }
        self.sender = sender.producer();
        self.sender_memory = memory;
    }

    /// The mailbox's next message.
    ///
    /// # Errors
    ///
    /// As [`Mailbox::try_retrieve`].
    pub fn next<'m>(&self) -> Result<Option<Incoming<'m>>> {
        self.mailbox.try_retrieve()
    }

    /// A message that came over a network whole.
    ///
    /// # Errors
    ///
    /// If it makes no sense.
    pub fn from_network<'m>(&self, flags: u16, bytes: &[u8]) -> Result<Incoming<'m>, UnpackError> {
        let flags = Flags(flags & Flags::ON_WIRE.0).with(Flags::FOREIGN);
        let payload = Payload::Owned(bytes.to_vec());
        Incoming::open(Arc::clone(&self.process), PEER, flags, payload, None)
    }

    /// How many mailboxes the link to the peer keeps something about.
    #[must_use]
    pub fn mailboxes_tracked(&self) -> usize {
        self.link.mailboxes_tracked()
    }
}

impl core::fmt::Debug for Victim {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Victim")
    }
}

/// A lane as its sender and as its receiver see it, and the memory that the sender writes.
fn lane() -> (Ring, Ring, Region) {
    let sender = Region::heap(LANE.sender_bytes());
    let receiver = Region::heap(Shape::RECEIVER_BYTES);
    // SAFETY: one sending end is made of the first and one receiving end of the second. `Victim::write` stores to the
    // memory in the thread of both.
    let ring = || unsafe { Ring::new(sender.clone(), receiver.clone(), LANE) };
    let large_enough = "the memory has the size of the shape";
    (
        ring().expect(large_enough),
        ring().expect(large_enough),
        sender,
    )
}

fn calling(bells: &Region) -> impl Fn(u32) + Send + Sync + use<> {
    let bells = bells.clone();
    move |bell| crate::bells::ring(&bells, bell)
}

/// Smaller than real ones: they are made anew for each input, and soon full.
const LANE: Shape = Shape::new(16, 4096);
/// Bytes of a slab: some pages, and a chunk of a long message.
const SLAB: usize = (64 << 10) + 3 * 4096;
