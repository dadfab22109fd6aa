//! Who is who in a job.

pub use mizzen_proto::id::{Address, MailboxId};
pub use mizzen_proto::id::{Incarnation, ProcessId, Rank};

/// The ranks of a job, in order: made by `Deck::ranks`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranks(core::ops::Range<u32>);

impl Ranks {
    /// Those of a job of `size` processes.
    #[must_use]
    pub fn new(size: u32) -> Self {
        Self(0..size)
    }
}

impl Iterator for Ranks {
    type Item = Rank;

    fn next(&mut self) -> Option<Rank> {
        self.0.next().map(Rank)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl DoubleEndedIterator for Ranks {
    fn next_back(&mut self) -> Option<Rank> {
        self.0.next_back().map(Rank)
    }
}

impl ExactSizeIterator for Ranks {}

/// The most mailboxes a process has at once: the size of its table of watches. One of them is not the program's.
pub(crate) const MAX_MAILBOXES: usize = 1 + 16_384;
/// The mailbox that every process has from the start, known to all others without a name: for services of the runtime that
/// need no names, such as the orderly end of a job.
pub const FIRST_MAILBOX: MailboxId = MailboxId(0);
/// Bytes of the watches of a process.
pub(crate) const WATCH_BYTES: usize = MAX_MAILBOXES * 4;

/// Where a mailbox is in its owner's table: the low half of its id. The high half says how often the place was
/// used before.
pub(crate) fn slot_of(mailbox: MailboxId) -> u32 {
    mailbox.0 as u32
}

pub(crate) fn mailbox_id(slot: u32, generation: u32) -> MailboxId {
    MailboxId(u64::from(generation) << 32 | u64::from(slot))
}
