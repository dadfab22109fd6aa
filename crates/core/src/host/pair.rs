//! The memory that two processes of a host share: one segment written by each.
//!
//! | offset | content |
//! | --- | --- |
//! | 0 | how far this side has read the other's shared lane |
//! | after it | this side's shared lane to the other (the sender's region of a lane): its first 62 slots are in the first page |
//! | after it | what this side did with the other's lent buffers, and which of its own the other must not take over |
//! | after it | how far this side has read each lane of the other's senders, one line each |
//!
//! The segment is sparse: a pair that exchanges a few short messages has one page of it in memory for each direction
//! (docs/design/pairs.md).
//!
//! Lanes in it are made here, and nowhere else: that each has one end on either side is what makes them safe.
#![allow(unsafe_code)]

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mizzen_lane::{Producer, Region, Ring, Shape};
use mizzen_shm::{
    Access, AttachError, Fault, Segment, SegmentError, View, fault_in, region_of_view,
};

use crate::bells::BELL_BYTES;
use crate::link::{SENDER_LANE, SHARED_LANE};
use crate::memory::Tables;
use crate::process::Process;
use crate::rank::WATCH_BYTES;

/// The most lanes that senders of one process have open to mailboxes of another at once.
pub(super) const MAX_LINES: u32 = 1024;

const LANE_LINE_AT: usize = 0;
// Slots lie in blocks of two lines.
const LANE_AT: usize = LANE_LINE_AT + 2 * Shape::RECEIVER_BYTES;
const RETURNS_AT: usize = LANE_AT + SHARED_LANE.sender_bytes();
const LINES_AT: usize = RETURNS_AT + Tables::BYTES;
const PAIR_BYTES: usize = LINES_AT + MAX_LINES as usize * Shape::RECEIVER_BYTES;

/// One side's segment of a pair.
#[derive(Clone, Debug)]
pub(super) struct Pair {
    region: Region,
    /// Whether the two shared lanes were made.
    linked: Arc<AtomicBool>,
}

/// What the other side of a new link gave us.
#[derive(Debug)]
pub(super) struct Theirs {
    pub(super) pair: Pair,
    pub(super) watches: Region,
    pub(super) bells: Region,
}

impl Pair {
    /// A fresh segment of ours, and its descriptor for the other side: nobody else needs it.
    pub(super) fn make() -> Result<(Self, OwnedFd), SegmentError> {
        let (view, fd) = Segment::create("mizzen-pair", PAIR_BYTES, Fault::Sparse)?.into_parts();
        Ok((Self::new(region_of_view(view)), fd))
    }

    /// Maps what a peer sent with its hello: its pair segment, its watches and its bells.
    pub(super) fn attach(fds: Vec<OwnedFd>) -> Result<Option<Theirs>, AttachError> {
        let Ok([pair, watches, bells]) = <[OwnedFd; 3]>::try_from(fds) else {
            return Ok(None);
        };
        let map =
            |fd, bytes, access, fault| View::attach(fd, bytes, access, fault).map(region_of_view);
        Ok(Some(Theirs {
            pair: Self::new(map(pair, PAIR_BYTES, Access::ReadOnly, Fault::Sparse)?),
            watches: map(watches, WATCH_BYTES, Access::ReadOnly, Fault::OnTouch)?,
            bells: map(bells, BELL_BYTES, Access::ReadWrite, Fault::OnTouch)?,
        }))
    }

    fn new(region: Region) -> Self {
        Self {
            region,
            linked: Arc::default(),
        }
    }

    /// The shared lanes to and from the side that made `theirs`: once, `None` afterwards.
    pub(super) fn shared_lanes(&self, theirs: &Self) -> Option<(Ring, Ring)> {
        if self.linked.swap(true, Ordering::AcqRel) || theirs.linked.swap(true, Ordering::AcqRel) {
            return None;
        }
        let lane = |from: &Self, to: &Self| {
            let lane = from.region.part(LANE_AT, SHARED_LANE.sender_bytes());
            let line = to.region.part(LANE_LINE_AT, Shape::RECEIVER_BYTES);
            // SAFETY: the flags above see to it that either lane is made once; these parts of the segments are used by
            // nothing else.
            unsafe { Ring::new(lane, line, SHARED_LANE) }.ok()
        };
        Some((lane(self, theirs)?, lane(theirs, self)?))
    }

    /// The end of a sender's lane in `memory`, which was made for it, to the side that made this segment, which reads it by
    /// `line`. `None` if there is no such line.
    pub(super) fn sending_end(&self, memory: Region, line: u32) -> Option<Producer> {
        let line = self.line(line)?;
        let whole = memory.clone();
        // SAFETY: `SocketChannel::open_lane`, which alone calls this, has just made the memory, and drops its own handle; the
        // copy here stores nothing. The line is the peer's, and stored to by nobody here.
        let ring = unsafe { Ring::new(memory, line, SENDER_LANE) };
        // The memory is sparse until the lane proves to be used.
        Some(ring.ok()?.producer().once_used(move || {
            fault_in(&whole);
        }))
    }

    /// The lane of a sender of the other side, whose memory was just mapped, read by `line` of ours.
    pub(super) fn receiving_end(&self, view: View, line: u32) -> Option<Ring> {
        let line = self.line(line)?;
        // The line may have served another lane before.
        line.word(0).store(0, Ordering::Release);
        // SAFETY: the view is ours alone. `SocketChannel` gives a line to another lane only when nobody uses it any more
        // (`LineInUse`).
        unsafe { Ring::new(region_of_view(view), line, SENDER_LANE) }.ok()
    }

    /// Where the side that made this segment gives buffers back, and takes its own back.
    pub(super) fn tables(&self) -> Tables {
        Tables::new(&self.region.part(RETURNS_AT, Tables::BYTES))
    }

    /// The line of a sender's lane that the side that made this segment reads.
    fn line(&self, line: u32) -> Option<Region> {
        let offset = LINES_AT + line as usize * Shape::RECEIVER_BYTES;
        (line < MAX_LINES).then(|| self.region.part(offset, Shape::RECEIVER_BYTES))
    }
}

/// The descriptors of a hello, in order.
pub(super) fn hello_segments<'a>(process: &'a Process, pair: &'a OwnedFd) -> Vec<BorrowedFd<'a>> {
    let ours = [&process.mailboxes.watches, &process.bells.shared];
    let ours = ours.into_iter().filter_map(|ours| ours.segment.as_ref());
    let ours = ours.map(|segment| segment.fd());
    std::iter::once(pair.as_fd()).chain(ours).collect()
}
