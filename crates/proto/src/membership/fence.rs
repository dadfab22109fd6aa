//! What a process keeps of the verdicts: which lives have ended, so that nothing of them is taken any more.
//!
//! Neighbours that ended in the same life take one entry together, so that the memory does not grow with the job when many end.
//! A life that ended with exit code 0 is not fenced: it is followed by no other, and what it sent before may still be under way.

use std::collections::BTreeMap;

use super::members::{Members, Standing};
use super::{Change, Epoch, Notice};
use crate::boot::Death;
use crate::id::{Incarnation, ProcessId, Rank};

/// The ended lives, as of an epoch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fence {
    epoch: Epoch,
    /// By the first rank of each run.
    ended: BTreeMap<Rank, Run>,
}

/// Neighbouring ranks that ended in the same life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Run {
    last: Rank,
    life: Incarnation,
}

/// What to do with a frame of a life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// Take it.
    Admit,
    /// Refuse it: the life has ended.
    Ended,
    /// Let it wait: the end of the life before it has not been told here yet.
    NotYet,
}

/// News are missing before these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("news of epoch {got} came after those of epoch {known}")]
pub struct Gap {
    /// The latest known.
    pub known: Epoch,
    /// What came.
    pub got: Epoch,
}

impl Fence {
    /// What a process that starts now has to know.
    #[must_use]
    pub fn new(members: &Members) -> Self {
        let mut fence = Self {
            epoch: members.epoch(),
            ended: BTreeMap::new(),
        };
        for (rank, state) in members.exceptions() {
            match state.standing {
                Standing::Ended(how) => fence.handle_ended(ProcessId::new(rank, state.life), how),
                // Only who died was started again.
                Standing::Running | Standing::Left => {
                    if let Some(before) = state.life.0.checked_sub(1) {
                        fence.insert(rank, Incarnation(before));
                    }
                }
            }
        }
        fence
    }

    /// Takes the news of the next epoch; what is known already is ignored. Returns whether it was new.
    ///
    /// # Errors
    ///
    /// [`Gap`], and nothing has changed.
    pub fn handle_notice(&mut self, notice: &Notice) -> Result<bool, Gap> {
        if !self.handle_epoch(notice.epoch)? {
            return Ok(false);
        }
        for change in &notice.changes {
            if let Change::Ended { process, how } = change {
                self.handle_ended(*process, *how);
            }
        }
        Ok(true)
    }

    /// Lives up to this one of neighbouring ranks have ended: what is known before the first epoch is told.
    pub fn handle_fenced(&mut self, first: Rank, last: Rank, life: Incarnation) {
        for rank in first.0..=last.0 {
            self.insert(Rank(rank), life);
        }
    }

    /// This was all that had happened before: the first epoch that is told. The next follows it.
    pub fn begin(&mut self, epoch: Epoch) {
        self.epoch = epoch;
    }

    /// All ends of an epoch were told. Returns whether it is a new one.
    ///
    /// # Errors
    ///
    /// [`Gap`], and nothing has changed.
    pub fn handle_epoch(&mut self, epoch: Epoch) -> Result<bool, Gap> {
        if epoch <= self.epoch {
            return Ok(false);
        }
        if self.epoch.next() != Some(epoch) {
            return Err(Gap {
                known: self.epoch,
                got: epoch,
            });
        }
        self.epoch = epoch;
        Ok(true)
    }

    /// A life ended.
    pub fn handle_ended(&mut self, process: ProcessId, how: Death) {
        if how != Death::Exit(0) {
            self.insert(process.rank, process.incarnation);
        } else if let Some(before) = process.incarnation.0.checked_sub(1) {
            self.insert(process.rank, Incarnation(before));
        }
    }

    /// What to do with a frame of `process`.
    #[must_use]
    pub fn admission(&self, process: ProcessId) -> Admission {
        let next = self
            .ended(process.rank)
            .map_or(0, |life| u64::from(life.0) + 1);
        match u64::from(process.incarnation.0).cmp(&next) {
            std::cmp::Ordering::Less => Admission::Ended,
            std::cmp::Ordering::Equal => Admission::Admit,
            std::cmp::Ordering::Greater => Admission::NotYet,
        }
    }

    /// The latest epoch that is known.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// The ended lives: neighbouring ranks, the first and the last, and the latest life that has ended.
    pub fn runs(&self) -> impl Iterator<Item = (Rank, Rank, Incarnation)> + '_ {
        self.ended
            .iter()
            .map(|(first, run)| (*first, run.last, run.life))
    }

    /// How many entries it takes.
    #[must_use]
    pub fn entries(&self) -> usize {
        self.ended.len()
    }

    fn ended(&self, rank: Rank) -> Option<Incarnation> {
        let (_, run) = self.ended.range(..=rank).next_back()?;
        (rank <= run.last).then_some(run.life)
    }

    /// Remembers that `life` and those before it have ended.
    fn insert(&mut self, rank: Rank, life: Incarnation) {
        if self.ended(rank).is_some_and(|known| known >= life) {
            return;
        }
        self.cut_out(rank);
        let (mut first, mut last) = (rank, rank);
        let before = self.ended.range(..rank).next_back();
        if let Some((start, run)) = before.map(|(start, run)| (*start, *run)) {
            if run.life == life && run.last.0 + 1 == rank.0 {
                first = start;
            }
        }
        if let Some(after) = rank.0.checked_add(1).map(Rank) {
            if let Some(run) = self
                .ended
                .get(&after)
                .copied()
                .filter(|run| run.life == life)
            {
                self.ended.remove(&after);
                last = run.last;
            }
        }
        self.ended.insert(first, Run { last, life });
    }

    /// Takes a rank out of the run that it is in.
    fn cut_out(&mut self, rank: Rank) {
        let Some((start, run)) = self.ended.range(..=rank).next_back() else {
            return;
        };
        let (start, run) = (*start, *run);
        if run.last < rank {
            return;
        }
        self.ended.remove(&start);
        if start < rank {
            let last = Rank(rank.0 - 1);
            self.ended.insert(start, Run { last, ..run });
        }
        if rank < run.last {
            self.ended.insert(Rank(rank.0 + 1), run);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn process(rank: u32, life: u32) -> ProcessId {
        ProcessId::new(Rank(rank), Incarnation(life))
    }

    fn died(rank: u32, life: u32) -> Change {
        Change::Ended {
            process: process(rank, life),
            how: Death::Signal(9),
        }
    }

    #[test]
    fn a_frame_of_an_ended_life_is_refused_and_one_of_the_next_is_taken() {
        let mut fence = Fence::default();
        let changes = vec![died(3, 0)];
        let notice = Notice {
            epoch: Epoch(1),
            changes,
        };
        assert_eq!(fence.admission(process(3, 0)), Admission::Admit);
        assert_eq!(fence.admission(process(3, 1)), Admission::NotYet);
        assert_eq!(fence.handle_notice(&notice), Ok(true));
        assert_eq!(fence.admission(process(3, 0)), Admission::Ended);
        assert_eq!(fence.admission(process(3, 1)), Admission::Admit);
        assert_eq!(fence.admission(process(2, 0)), Admission::Admit);
    }

    #[test]
    fn news_come_in_order_without_gaps() {
        let mut fence = Fence::default();
        let notice = |epoch| Notice {
            epoch: Epoch(epoch),
            changes: vec![],
        };
        let gap = Gap {
            known: Epoch(0),
            got: Epoch(2),
        };
        assert_eq!(fence.handle_notice(&notice(2)), Err(gap));
        assert_eq!(fence.handle_notice(&notice(1)), Ok(true));
        assert_eq!(fence.handle_notice(&notice(1)), Ok(false));
        assert_eq!(fence.handle_notice(&notice(2)), Ok(true));
    }

    #[test]
    fn who_ended_well_may_still_be_heard() {
        let mut fence = Fence::default();
        fence.handle_ended(process(1, 0), Death::Exit(0));
        assert_eq!(fence.admission(process(1, 0)), Admission::Admit);
    }

    #[test]
    fn what_a_process_is_told_when_it_starts_is_what_the_fence_was() {
        let mut fence = Fence::default();
        for rank in [1, 2, 3, 7] {
            fence.handle_ended(process(rank, rank / 3), Death::HostLost);
        }
        fence.begin(Epoch(9));
        let mut told = Fence::default();
        for (first, last, life) in fence.runs() {
            told.handle_fenced(first, last, life);
        }
        told.begin(fence.epoch());
        assert_eq!(told, fence);
        assert_eq!(told.handle_epoch(Epoch(10)), Ok(true));
    }

    #[test]
    fn a_lost_block_of_ranks_is_one_entry() {
        let mut fence = Fence::default();
        for rank in (0..5000).step_by(2).chain((1..5000).step_by(2)) {
            fence.handle_ended(process(rank, 0), Death::HostLost);
        }
        assert_eq!(fence.entries(), 1);
    }

    proptest! {
        #[test]
        fn runs_say_what_a_plain_map_says(ends in proptest::collection::vec((0..12u32, 0..4u32), 0..60)) {
            let mut fence = Fence::default();
            let mut plain = BTreeMap::new();
            for (rank, life) in ends {
                fence.insert(Rank(rank), Incarnation(life));
                let known = plain.entry(rank).or_insert(life);
                *known = life.max(*known);
                for rank in 0..13 {
                    let expected = plain.get(&rank).copied().map(Incarnation);
                    prop_assert_eq!(fence.ended(Rank(rank)), expected);
                }
            }
        }
    }
}
