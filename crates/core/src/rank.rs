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

/// The mailboxes that every process has from the start, known to all others without a name: for services of the runtime that need no
/// names. And slates.
pub mod reserved {
    use super::{MailboxId, SlateUse};

    /// For the orderly end of a job.
    pub const FINISH: MailboxId = MailboxId(0);
    /// For the group of all processes.
    pub const GROUP: MailboxId = MailboxId(1);
    /// For the barrier of all processes.
    pub const BARRIER: MailboxId = MailboxId(2);
    /// How many there are.
    pub const COUNT: u32 = 3;

    /// The slate of the group of all processes, in its only use.
    pub const GROUP_SLATE: SlateUse = SlateUse::new(0, 1);
    /// The slate of the barrier of all processes, in its only use.
    pub const BARRIER_SLATE: SlateUse = SlateUse::new(1, 1);
    /// How many slates are reserved.
    pub const SLATES: u32 = 2;
}

/// The most mailboxes that programs have at once in a process.
pub(crate) const PROGRAM_MAILBOXES: usize = 16_384;
/// The most mailboxes a process has at once: the size of its table of watches.
pub(crate) const MAX_MAILBOXES: usize = reserved::COUNT as usize + PROGRAM_MAILBOXES;
/// The most slates a process has at once: its members of groups on this host have one each.
pub(crate) const MAX_SLATES: u32 = 128;
/// The lines of a slate: how far a member may be ahead of others.
pub(crate) const SLATE_LINES: usize = 8;
/// Bytes of the watches of a process: whole lines, the slates begin behind them.
const WATCHES_END: usize = (MAX_MAILBOXES * 4).next_multiple_of(64);
/// The lines that a slate has in all.
const SLATE_ROOM: usize = SLATE_LINES + 1;
/// Bytes of the memory with the watches and the slates of a process, which its peers read.
pub(crate) const WATCH_BYTES: usize = WATCHES_END + MAX_SLATES as usize * SLATE_ROOM * 64;

/// A slate of a process, and how often it was used before, which counts from 1: as others know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlateUse(u64);

impl SlateUse {
    pub(crate) const fn new(number: u32, time: u32) -> Self {
        Self((time as u64) << 32 | number as u64)
    }

    /// As a number that another process may be told.
    #[must_use]
    pub fn get(self) -> u64 {
        self.0
    }

    /// What another process told.
    #[must_use]
    pub fn from_told(told: u64) -> Self {
        Self(told)
    }

    pub(crate) fn number(self) -> u32 {
        self.0 as u32
    }

    pub(crate) fn time(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// Its first line, in the memory of its process with watches and slates.
    pub(crate) fn line(self) -> usize {
        WATCHES_END / 64 + (self.number() % MAX_SLATES) as usize * SLATE_ROOM
    }
}

/// A channel of the job, by its place among those that programs may name; 0 is the one that everybody is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct ChannelId(pub(crate) u8);

impl ChannelId {
    /// The channel that everybody is on.
    pub(crate) const DEFAULT: Self = Self(0);
}

/// A channel that programs may name, as a process knows it.
#[derive(Debug)]
pub(crate) struct KnownChannel {
    pub(crate) name: String,
    /// The ranks on it: ranges, the end not among them.
    pub(crate) ranks: Vec<(u32, u32)>,
}

impl KnownChannel {
    pub(crate) fn contains(&self, rank: Rank) -> bool {
        let holds = |(first, end): &(u32, u32)| (*first..*end).contains(&rank.0);
        self.ranks.iter().any(holds)
    }
}

/// Where a mailbox is in its owner's table: the low bits of its id. Above them stands the channel that it is on; the high half says
/// how often the place was used before.
pub(crate) fn slot_of(mailbox: MailboxId) -> u32 {
    mailbox.0 as u32 & ((1 << SLOT_BITS) - 1)
}

/// The channel that a mailbox is on.
pub(crate) fn channel_of(mailbox: MailboxId) -> ChannelId {
    ChannelId((mailbox.0 >> SLOT_BITS) as u8)
}

pub(crate) fn mailbox_id(slot: u32, channel: ChannelId, generation: u32) -> MailboxId {
    let (slot, channel) = (u64::from(slot), u64::from(channel.0));
    MailboxId(u64::from(generation) << 32 | channel << SLOT_BITS | slot)
}

/// Bits of an id that hold the place in the table.
const SLOT_BITS: u32 = 24;
const _: () = assert!(MAX_MAILBOXES < 1 << SLOT_BITS);
