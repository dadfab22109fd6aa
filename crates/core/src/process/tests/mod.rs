//! What only a link's insides can bring about.
#![allow(unsafe_code)]

mod lives;
mod returns;
mod short_slots;

use std::sync::{Arc, Weak};

use mizzen_lane::{Region, Ring, Shape};

use crate::bells::BELL_BYTES;
use crate::desk::Desk;
use crate::host::Alone;
use crate::link::{MemoryLink, Parts};
use crate::memory::{Memory, Tables};
use crate::process::Process;
use crate::rank::{Incarnation, ProcessId, Rank, WATCH_BYTES};
use crate::together::channel_to;

fn life(rank: u32, incarnation: u32) -> ProcessId {
    ProcessId::new(Rank(rank), Incarnation(incarnation))
}

fn place(id: ProcessId) -> Arc<Process> {
    Process::new(
        id,
        2,
        "local".into(),
        Memory::Heap,
        Box::new(Alone(Desk::new(2))),
    )
    .unwrap()
}

/// A link to a peer that never answers, and the memory of the lane over which it would post.
fn link(peer: ProcessId, other: Weak<Process>) -> (Arc<MemoryLink>, Region) {
    const LANE: Shape = Shape::new(16, 4096);
    let theirs = Region::heap(LANE.sender_bytes());
    // SAFETY: the only end made of it is the receiving one below; tests write its memory in the thread that reads it.
    let inbound = unsafe { Ring::new(theirs.clone(), Region::heap(Shape::RECEIVER_BYTES), LANE) };
    let parts = Parts {
        lane: Ring::heap(LANE).shared_producer(),
        inbound: inbound.unwrap().consumer_calling(|_| ()),
        watches: Region::heap(WATCH_BYTES),
        bells: Region::heap(BELL_BYTES),
        ours: Tables::heap(),
        theirs: Tables::heap(),
        owners: Weak::<crate::links::Links>::new(),
    };
    let link = MemoryLink::new(peer, parts, channel_to(other));
    (Arc::new(link), theirs)
}
