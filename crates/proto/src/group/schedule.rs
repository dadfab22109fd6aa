//! What a schedule consists of.

use core::fmt;
use core::ops::Range;

use serde::{Deserialize, Serialize};

/// A member of a group, by its number in it, from 0. Ranks number the processes of a job; a process may have several members in a group, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Member(pub u32);

impl Member {
    /// Its place among all members.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<u32> for Member {
    fn from(number: u32) -> Self {
        Self(number)
    }
}

impl PartialEq<u32> for Member {
    fn eq(&self, other: &u32) -> bool {
        self.0 == *other
    }
}

/// What a member does at the same time, and has done before its next round: what it sends is what it had when the round began.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Round {
    /// What it sends.
    pub sends: Vec<Transfer>,
    /// What it receives.
    pub receives: Vec<Transfer>,
}

/// Blocks, as runs of their numbers.
pub type Runs = Vec<Range<u32>>;

/// Blocks that go from one member to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transfer {
    /// The other member.
    pub member: Member,
    /// Which blocks, in this order: what a block is, the [`Space`](super::plan::Space) of the stage says.
    pub blocks: Runs,
    /// What the receiver does with them.
    pub fold: Fold,
}

/// What becomes of a block that comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fold {
    /// It takes the place of what was there.
    Replace,
    /// It is combined with what is there, and stands before it.
    Before,
    /// It is combined with what is there, and stands behind it.
    After,
}

impl Round {
    pub(super) fn send(mut self, to: u32, blocks: Runs, fold: Fold) -> Self {
        self.sends.push(transfer(to, blocks, fold));
        self
    }

    pub(super) fn receive(mut self, from: u32, blocks: Runs, fold: Fold) -> Self {
        self.receives.push(transfer(from, blocks, fold));
        self
    }
}

fn transfer(member: u32, blocks: Runs, fold: Fold) -> Transfer {
    Transfer {
        member: Member(member),
        blocks,
        fold,
    }
}

/// `count` blocks from `first` on, of `size` that lie in a circle: one run, or two.
pub(super) fn circle(first: u32, count: u32, size: u32) -> Runs {
    let first = first % size;
    let end = first + count;
    if end <= size {
        return runs(first..end);
    }
    vec![first..size, 0..end - size]
}

/// Blocks that follow each other: none if there are none.
pub(super) fn runs(blocks: Range<u32>) -> Runs {
    core::iter::once(blocks)
        .filter(|run| !run.is_empty())
        .collect()
}

/// Which of `len` elements are part `part` of `parts`: as even as can be, the longer ones first.
#[must_use]
pub fn part(len: usize, parts: u32, part: u32) -> Range<usize> {
    let (parts, part) = (parts.max(1) as usize, part as usize);
    let (each, more) = (len / parts, len % parts);
    let start = |part: usize| part * each + part.min(more);
    start(part)..start(part + 1)
}
