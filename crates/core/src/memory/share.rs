//! Regions for lanes and arenas: heap memory inside a process, sealed segments between processes.

use std::sync::Arc;

use mizzen_lane::Region;
use mizzen_shm::{Fault, Segment, SegmentError};

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
