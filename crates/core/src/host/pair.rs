//! The memory that two processes of a host share: one segment written by each.
//!
//! | offset | content |
//! | --- | --- |
//! | 0 | this side's shared lane to the other (the sender's region of a lane) |
//! | after it | how far this side has read the other's shared lane |
//! | after it | the other's lent buffers that this side has given back |
//! | after it | how far this side has read each lane of the other's senders, one line each |

use std::os::fd::OwnedFd;

use mizzen_lane::{LaneError, Region, Returns, Ring, Shape};
use mizzen_shm::{Access, AttachError, Fault, SegmentError, View, region_of_view};

use crate::bells::BELL_BYTES;
use crate::link::SHARED_LANE;
use crate::memory::{Arena, Memory, Shared};
use crate::process::Process;
use crate::rank::WATCH_BYTES;

/// The most lanes that senders of one process have open to mailboxes of another at once.
pub(super) const MAX_LINES: u32 = 1024;

const LANE_AT: usize = 0;
const LANE_LINE_AT: usize = LANE_AT + SHARED_LANE.sender_bytes();
const RETURNS_AT: usize = LANE_LINE_AT + Shape::RECEIVER_BYTES;
const LINES_AT: usize = RETURNS_AT + Returns::bytes(Arena::MAX_BLOCKS);
const PAIR_BYTES: usize = LINES_AT + MAX_LINES as usize * Shape::RECEIVER_BYTES;

/// One side's segment of a pair.
#[derive(Clone, Debug)]
pub(super) struct Pair {
    region: Region,
}

/// What the other side of a new link gave us.
#[derive(Debug)]
pub(super) struct Theirs {
    pub(super) pair: Pair,
    pub(super) watches: Region,
    pub(super) bells: Region,
}

impl Pair {
    /// A fresh segment of ours.
    pub(super) fn make(memory: Memory) -> Result<(Self, Shared), SegmentError> {
        let shared = memory.make("mizzen-pair", PAIR_BYTES)?;
        Ok((
            Self {
                region: shared.region.clone(),
            },
            shared,
        ))
    }

    /// Maps what a peer sent with its hello: its pair segment, its watches and its bells.
    pub(super) fn attach(fds: Vec<OwnedFd>) -> Result<Option<Theirs>, AttachError> {
        let Ok([pair, watches, bells]) = <[OwnedFd; 3]>::try_from(fds) else {
            return Ok(None);
        };
        let read =
            |fd, bytes| View::attach(fd, bytes, Access::ReadOnly, Fault::Now).map(region_of_view);
        Ok(Some(Theirs {
            pair: Self {
                region: read(pair, PAIR_BYTES)?,
            },
            watches: read(watches, WATCH_BYTES)?,
            bells: region_of_view(View::attach(
                bells,
                BELL_BYTES,
                Access::ReadWrite,
                Fault::Now,
            )?),
        }))
    }

    /// The lane from the side that made this segment to the side that made `receiver`.
    pub(super) fn shared_lane(&self, receiver: &Self) -> Result<Ring, LaneError> {
        let lane = self.region.part(LANE_AT, SHARED_LANE.sender_bytes());
        let line = receiver.region.part(LANE_LINE_AT, Shape::RECEIVER_BYTES);
        Ring::new(lane, line, SHARED_LANE)
    }

    /// Where the side that made this segment gives buffers back.
    pub(super) fn returns(&self) -> Returns {
        let table = self
            .region
            .part(RETURNS_AT, Returns::bytes(Arena::MAX_BLOCKS));
        Returns::new(table, Arena::MAX_BLOCKS)
    }

    /// The line of a sender's lane that the side that made this segment reads.
    pub(super) fn line(&self, line: u32) -> Option<Region> {
        let offset = LINES_AT + line as usize * Shape::RECEIVER_BYTES;
        (line < MAX_LINES).then(|| self.region.part(offset, Shape::RECEIVER_BYTES))
    }
}

/// The descriptors of a hello, in order.
pub(super) fn hello_segments<'a>(process: &'a Process, pair: &'a Shared) -> Vec<&'a Shared> {
    vec![pair, &process.mailboxes.watches, &process.bells.shared]
}
