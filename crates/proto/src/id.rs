//! Who and what: the numbers that frames carry, each with its own type.

use std::cmp::Ordering;
use std::fmt;
use std::ops::{Add, Div, Mul, Rem, Sub};

use serde::{Deserialize, Serialize};

/// Number of a process in its job, from 0. It compares and computes with integers, so that neighbours, halves and rings of
/// ranks are written as one would on paper.
///
/// ```
/// # mod mizzen { pub use mizzen_proto::id::Rank; }
/// use mizzen::Rank;
///
/// let (me, size) = (Rank(3), 4);
/// assert_eq!((me + 1) % size, 0);
/// assert_eq!((me + size - 1) % size, Rank(2));
/// assert_eq!(vec![10, 11, 12, 13][me.index()], 13);
/// assert!((0..size).filter(|other| *other != me).all(|other| other < me));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Rank(pub u32);

/// Which life of a restarted process; a higher one is later.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Incarnation(pub u32);

/// One life of one process (docs/wire.md §1.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ProcessId {
    /// Which process of the job.
    pub rank: Rank,
    /// Which life of it.
    pub incarnation: Incarnation,
}

impl ProcessId {
    /// The given life of the given process.
    pub const fn new(rank: Rank, incarnation: Incarnation) -> Self {
        Self { rank, incarnation }
    }

    /// One word: rank in the low half, incarnation in the high half.
    pub const fn to_u64(self) -> u64 {
        (self.incarnation.0 as u64) << 32 | self.rank.0 as u64
    }

    /// The inverse of [`to_u64`](Self::to_u64); every word is some process.
    pub const fn from_u64(word: u64) -> Self {
        Self::new(Rank(word as u32), Incarnation((word >> 32) as u32))
    }

    /// Whether `self` is an earlier life of the same process than `other`, or the same life.
    pub fn is_fenced_by(self, other: ProcessId) -> bool {
        self.rank == other.rank && self.incarnation <= other.incarnation
    }
}

/// A mailbox of one process: index and generation, chosen by its owner and never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MailboxId(pub u64);

/// What a name is bound to: a mailbox and the life of the process that owns it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    /// The owner of the mailbox.
    pub process: ProcessId,
    /// The mailbox, in the owner's numbering.
    pub mailbox: MailboxId,
}

/// Which sender or posting thread of a process a message comes from; opaque to the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct StreamId(pub u32);

/// A message whose body waits to be asked for; chosen by its sender, increasing on a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OfferId(pub u64);

/// A body under way; chosen by its receiver, increasing on a link and in a direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BodyId(pub u64);

/// A question to a name holder; chosen by who asks, and repeated in the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// What a ping carries and its pong repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PingToken(pub u64);

impl fmt::Display for Rank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Display for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl Rank {
    /// The number as an index, for what has one entry a process.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl PartialEq<u32> for Rank {
    fn eq(&self, other: &u32) -> bool {
        self.0 == *other
    }
}

impl PartialEq<Rank> for u32 {
    fn eq(&self, other: &Rank) -> bool {
        *self == other.0
    }
}

impl PartialOrd<u32> for Rank {
    fn partial_cmp(&self, other: &u32) -> Option<Ordering> {
        self.0.partial_cmp(other)
    }
}

impl PartialOrd<Rank> for u32 {
    fn partial_cmp(&self, other: &Rank) -> Option<Ordering> {
        self.partial_cmp(&other.0)
    }
}

impl Add<u32> for Rank {
    type Output = Self;

    #[track_caller]
    fn add(self, other: u32) -> Self {
        Self(self.0 + other)
    }
}

impl Sub<u32> for Rank {
    type Output = Self;

    #[track_caller]
    fn sub(self, other: u32) -> Self {
        Self(self.0 - other)
    }
}

impl Mul<u32> for Rank {
    type Output = u32;

    fn mul(self, other: u32) -> u32 {
        self.0 * other
    }
}

impl Div<u32> for Rank {
    type Output = u32;

    fn div(self, other: u32) -> u32 {
        self.0 / other
    }
}

impl Rem<u32> for Rank {
    type Output = Self;

    fn rem(self, other: u32) -> Self {
        Self(self.0 % other)
    }
}

impl From<u32> for Rank {
    fn from(number: u32) -> Self {
        Self(number)
    }
}

impl From<Rank> for u32 {
    fn from(rank: Rank) -> Self {
        rank.0
    }
}

impl From<Rank> for usize {
    fn from(rank: Rank) -> Self {
        rank.index()
    }
}

impl From<Rank> for u64 {
    fn from(rank: Rank) -> Self {
        rank.0.into()
    }
}

impl From<Rank> for f64 {
    fn from(rank: Rank) -> Self {
        rank.0.into()
    }
}

/// `3` for the first life of process 3, `3+2` for its third.
impl fmt::Display for ProcessId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.incarnation {
            Incarnation(0) => write!(f, "{}", self.rank),
            later => write!(f, "{}+{later}", self.rank),
        }
    }
}

impl fmt::Display for MailboxId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}", self.0)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.process, self.mailbox)
    }
}

impl fmt::Display for OfferId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Display for BodyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_survives_being_packed_in_a_word() {
        let process = ProcessId::new(Rank(7), Incarnation(2));
        assert_eq!(process.to_u64(), 0x0000_0002_0000_0007);
        assert_eq!(ProcessId::from_u64(process.to_u64()), process);
    }

    #[test]
    fn a_later_life_fences_earlier_ones_of_the_same_process_only() {
        let life = |rank, incarnation| ProcessId::new(Rank(rank), Incarnation(incarnation));
        assert!(life(1, 0).is_fenced_by(life(1, 1)));
        assert!(life(1, 1).is_fenced_by(life(1, 1)));
        assert!(!life(1, 2).is_fenced_by(life(1, 1)));
        assert!(!life(2, 0).is_fenced_by(life(1, 1)));
    }

    #[test]
    fn a_process_prints_its_life_only_when_restarted() {
        assert_eq!(ProcessId::new(Rank(3), Incarnation(0)).to_string(), "3");
        assert_eq!(ProcessId::new(Rank(3), Incarnation(2)).to_string(), "3+2");
    }
}
