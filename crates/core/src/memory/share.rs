//! Regions for lanes and arenas: heap memory inside a process, sealed segments between processes.
#![allow(unsafe_code)]

use std::sync::Arc;
use std::time::Duration;

use mizzen_lane::{Backing, Lender, NoBlock, Region, Returns, Revocations};
use mizzen_shm::{Fault, Segment, SegmentError};

use crate::error::ArenaError;
use crate::rank::ProcessId;

/// The arena of a process.
pub(crate) type Arena = mizzen_lane::Arena<Memory>;
/// A block of it.
pub(crate) type Block = mizzen_lane::Block<Memory>;
/// A peer that borrows of it.
pub(crate) type Borrower = mizzen_lane::Borrower<Memory>;

/// Where this process makes memory that its peers look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Memory {
    /// All peers are threads of this process.
    Heap,
    /// Some peers are other processes of this host.
    Segments,
}

/// A region of ours, and the segment to pass to peers if it is one.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    pub(crate) region: Region,
    pub(crate) segment: Option<Arc<Segment>>,
}

impl Memory {
    /// Memory that only we write.
    pub(crate) fn make(self, label: &str, bytes: usize) -> Result<Shared, SegmentError> {
        self.make_with(bytes, || Segment::create(label, bytes, Fault::Now))
    }

    /// Memory that every peer may write.
    pub(crate) fn make_open(self, label: &str, bytes: usize) -> Result<Shared, SegmentError> {
        self.make_with(bytes, || Segment::create_open(label, bytes, Fault::Now))
    }

    fn make_with(
        self,
        bytes: usize,
        segment: impl FnOnce() -> Result<Segment, SegmentError>,
    ) -> Result<Shared, SegmentError> {
        match self {
            Self::Heap => Ok(Shared {
                region: Region::heap(bytes),
                segment: None,
            }),
            Self::Segments => {
                let segment = Arc::new(segment()?);
                Ok(Shared {
                    region: mizzen_shm::region_of_segment(&segment),
                    segment: Some(segment),
                })
            }
        }
    }
}

// SAFETY: the memory is fresh, and of the bytes that were asked for; nobody but the arena has it, and peers in other processes
// map it read-only.
unsafe impl Backing for Memory {
    type Slab = Shared;
    type Error = SegmentError;
    type Holder = ProcessId;

    fn make(&self, bytes: usize) -> Result<Shared, SegmentError> {
        Self::make(*self, "mizzen-arena", bytes)
    }

    fn region(slab: &Shared) -> &Region {
        &slab.region
    }
}

/// The peer to which we give back blocks in `returns`, a table for that peer alone, and which says in `revocations` what it took
/// back itself.
pub(crate) fn lender(returns: Returns, revocations: Revocations) -> Lender {
    // SAFETY: a link makes one, of a table that its peer alone reads and it alone writes. Tickets are used where they come out
    // of the peer's lane, once, with slabs that the peer showed. In this process it is our own code that sends them, for
    // blocks that it then hands over or fills, and withdraws only when nobody can have got them. What was handed on is taken over
    // by the ticket of that hop, with the owner's slab.
    unsafe { Lender::new(returns, revocations) }
}

impl From<NoBlock<SegmentError>> for ArenaError {
    fn from(none: NoBlock<SegmentError>) -> Self {
        match none {
            NoBlock::TooLong { bytes, limit } => Self::TooLong { bytes, limit },
            NoBlock::Backing(error) => Self::Memory(error),
            NoBlock::AllOut => Self::AllOut {
                waited: Duration::ZERO,
            },
        }
    }
}
