//! Where the bytes of a received message lie until they are unpacked.
//!
//! Some lie in memory that a broken or hostile sender can still write. These are only ever copied out, and the copy is what is
//! checked; references are given only to bytes in our own memory.

use mizzen_driver::PartMut;
use mizzen_lane::{Eager, Short};
use mizzen_proto::id::OfferId;

use crate::error::UnpackError;
use crate::memory::{Loan, Spare};

/// A long message of which chunks come one after the other.
pub(crate) trait Streaming: core::fmt::Debug + Send {
    /// Length of the whole message.
    fn len(&self) -> usize;

    /// How many bytes are here, from the first on.
    fn here(&self) -> usize;

    /// Takes in what came since the last look: whether there was something.
    fn look(&mut self) -> Result<bool, UnpackError>;

    /// Waits until the first `until` bytes are here.
    fn arrive(&mut self, until: usize) -> Result<(), UnpackError>;

    /// Copies bytes that are here, and were not released.
    fn copy_out(&self, at: usize, target: &mut [u8]);

    /// Copies as many bytes from `at` on as are here: how many. If nothing is read twice, those before them are let go.
    fn copy_here(&mut self, at: usize, target: &mut [u8]) -> usize;

    /// Copies bytes as they come. If nothing is read twice, those before them are let go.
    fn copy_coming(&mut self, at: usize, target: &mut [u8]) -> Result<(), UnpackError>;

    /// Whether all of it can be here at once. If not, it is read in order, and nothing twice but its table of pieces.
    fn holds_all(&self) -> bool;

    /// From now on, nothing is read twice.
    fn read_once(&mut self);

    /// Whether some of it was let go.
    fn is_spent(&self) -> bool;

    /// Waits until the first `until` bytes are here, which belong to the table of pieces and can be read again and again.
    fn arrive_table(&mut self, until: usize) -> Result<(), UnpackError>;

    /// How many of the first bytes can be read again and again.
    fn table_len(&self) -> usize;
}

/// A long message from another host: its head is here, its body comes when it is asked for, into place. Dropping it declines
/// the body.
pub(crate) trait Offered: core::fmt::Debug + Send {
    /// Length of head and body.
    fn len(&self) -> usize;

    /// The bytes that came with the announcement.
    fn head(&self) -> &[u8];

    /// In how many parts the body may be received.
    fn max_parts(&self) -> usize;

    /// Asks for the body, and waits until all of it is in `parts`.
    fn receive(&mut self, parts: &mut [&mut [u8]]) -> Result<(), UnpackError>;

    /// Asks for the body, and does not wait. The memory of the parts must not be touched before
    /// [`poll_received`](Self::poll_received) says how it ended, or [`stop_receiving`](Self::stop_receiving) has returned.
    fn start_receiving(&mut self, parts: Vec<PartMut>) -> Result<(), UnpackError>;

    /// Whether all of the body is in the parts. `None`: not yet.
    fn poll_received(&mut self) -> Option<Result<(), UnpackError>>;

    /// How many bytes of the body are in the parts, as far as it comes in more than one part.
    fn received(&self) -> usize;

    /// Nobody wants the body any more: when this returns, nobody writes the parts.
    fn stop_receiving(&mut self);

    /// The same message, read from its beginning to its end, through little memory.
    fn into_stream(self: Box<Self>) -> Box<dyn Streaming>;

    /// Whether it is this offer of the link at this address in memory.
    fn is(&self, link: usize, offer: OfferId) -> bool;
}

/// The bytes of a received message.
#[derive(Debug)]
pub(crate) enum Payload {
    /// Copied out of a slot; the bytes from `from` on.
    Short { short: Short, from: u8 },
    /// In a lane's byte ring.
    Eager(Eager),
    /// In memory of our own.
    Owned(Vec<u8>),
    /// The same, in memory that is used again.
    Spare(Spare),
    /// In a block of the sender's arena: elsewhere, because few messages are, and all would be as large.
    Block(Box<Loan>),
    /// In chunks of the sender's arena, or from another host, which come one after the other.
    Stream(Box<dyn Streaming>),
    /// The head of a message from another host; the body comes when it is asked for.
    Offered(Box<dyn Offered>),
}

impl Payload {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Short { short, from } => short.bytes().len() - usize::from(*from),
            Self::Eager(eager) => eager.len(),
            Self::Owned(bytes) => bytes.len(),
            Self::Spare(spare) => spare.bytes().len(),
            Self::Block(block) => block.len(),
            Self::Stream(stream) => stream.len(),
            Self::Offered(offered) => offered.len(),
        }
    }

    /// How many of the bytes are here, from the first on.
    pub(crate) fn here(&self) -> usize {
        match self {
            Self::Offered(offered) => offered.head().len(),
            Self::Stream(stream) => stream.here(),
            other => other.len(),
        }
    }

    /// Copies the bytes from `at` on into `target`. The caller has checked that they exist, and are here.
    pub(crate) fn copy_out(&self, at: usize, target: &mut [u8]) {
        match self {
            Self::Eager(eager) => eager.copy_out(at, target),
            Self::Stream(stream) => stream.copy_out(at, target),
            Self::Block(block) => block.copy_out(at, target),
            Self::Short { .. } | Self::Owned(_) | Self::Spare(_) | Self::Offered(_) => {
                target.copy_from_slice(&self.in_place().unwrap_or_default()[at..at + target.len()])
            }
        }
    }

    /// The bytes that are here, if they are in memory that nobody else writes.
    pub(crate) fn in_place(&self) -> Option<&[u8]> {
        match self {
            Self::Short { short, from } => Some(&short.bytes()[usize::from(*from)..]),
            Self::Eager(_) | Self::Stream(_) | Self::Block(_) => None,
            Self::Owned(bytes) => Some(bytes),
            Self::Spare(spare) => Some(spare.bytes()),
            Self::Offered(offered) => Some(offered.head()),
        }
    }

    /// The same bytes in memory of our own, no more than they need, if they hold memory that others wait for.
    pub(crate) fn detach(self) -> Self {
        match self {
            Self::Eager(_) | Self::Stream(_) | Self::Block(_) | Self::Spare(_) => {
                let mut bytes = vec![0; self.len()];
                self.copy_out(0, &mut bytes);
                Self::Owned(bytes)
            }
            other => other,
        }
    }
}
