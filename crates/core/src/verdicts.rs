//! The verdicts that this process was told: nothing of a life that has ended is taken any more.
//!
//! The agent tells which lives have ended before anything else happens, then each epoch's ends and the epoch
//! (docs/design/membership.md). An end counts as soon as it is told; epochs only show that none is missing.

use std::sync::Mutex;

use mizzen_proto::boot::Death;
use mizzen_proto::membership::{Admission, Epoch, Fence, Gap};

use crate::lock::lock;
use crate::rank::{Incarnation, ProcessId, Rank};

/// Who has ended, as far as this process was told.
#[derive(Debug, Default)]
pub(crate) struct Verdicts(Mutex<Told>);

#[derive(Debug, Default)]
struct Told {
    fence: Fence,
    /// Whether an epoch was told. Where nobody tells any (threads of a test), nobody waits for the end of a life.
    has_begun: bool,
}

impl Verdicts {
    /// Lives up to this one of neighbouring ranks had ended before this process began.
    pub(crate) fn handle_fenced(&self, first: Rank, last: Rank, life: Incarnation) {
        lock(&self.0).fence.handle_fenced(first, last, life);
    }

    /// A life has ended.
    pub(crate) fn handle_ended(&self, life: ProcessId, how: Death) {
        lock(&self.0).fence.handle_ended(life, how);
    }

    /// All that happened up to this epoch was told.
    ///
    /// # Errors
    ///
    /// [`Gap`]: an epoch was left out. What was told counts all the same.
    pub(crate) fn handle_epoch(&self, epoch: Epoch) -> Result<(), Gap> {
        let mut told = lock(&self.0);
        if std::mem::replace(&mut told.has_begun, true) {
            let known = told.fence.handle_epoch(epoch);
            // The next gap is told, too, and not this one again.
            known.map(drop).inspect_err(|_| told.fence.begin(epoch))
        } else {
            told.fence.begin(epoch);
            Ok(())
        }
    }

    /// What to do with what comes from a life.
    pub(crate) fn admission(&self, life: ProcessId) -> Admission {
        let told = lock(&self.0);
        match told.fence.admission(life) {
            Admission::NotYet if !told.has_begun => Admission::Admit,
            admission => admission,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn life(rank: u32, incarnation: u32) -> ProcessId {
        ProcessId::new(Rank(rank), Incarnation(incarnation))
    }

    #[test]
    fn a_life_that_had_ended_before_we_began_is_refused_and_the_next_taken() {
        let verdicts = Verdicts::default();
        verdicts.handle_fenced(Rank(1), Rank(3), Incarnation(0));
        assert_eq!(verdicts.handle_epoch(Epoch(7)), Ok(()));
        assert_eq!(verdicts.admission(life(2, 0)), Admission::Ended);
        assert_eq!(verdicts.admission(life(2, 1)), Admission::Admit);
        assert_eq!(verdicts.admission(life(4, 0)), Admission::Admit);
    }

    #[test]
    fn an_end_counts_before_its_epoch_is_complete() {
        let verdicts = Verdicts::default();
        assert_eq!(verdicts.handle_epoch(Epoch(1)), Ok(()));
        verdicts.handle_ended(life(1, 0), Death::HostLost);
        assert_eq!(verdicts.admission(life(1, 0)), Admission::Ended);
        assert_eq!(verdicts.handle_epoch(Epoch(2)), Ok(()));
    }

    #[test]
    fn a_life_waits_until_the_end_of_the_one_before_it_is_told() {
        let verdicts = Verdicts::default();
        assert_eq!(verdicts.admission(life(1, 1)), Admission::Admit);
        assert_eq!(verdicts.handle_epoch(Epoch(1)), Ok(()));
        assert_eq!(verdicts.admission(life(1, 1)), Admission::NotYet);
    }

    #[test]
    fn an_epoch_that_is_left_out_is_noticed_once() {
        let verdicts = Verdicts::default();
        assert_eq!(verdicts.handle_epoch(Epoch(4)), Ok(()));
        let gap = Gap {
            known: Epoch(4),
            got: Epoch(6),
        };
        assert_eq!(verdicts.handle_epoch(Epoch(6)), Err(gap));
        assert_eq!(verdicts.handle_epoch(Epoch(7)), Ok(()));
    }
}
