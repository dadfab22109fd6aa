//! What comes before what: all that a process sent, then the news of its end, then what its next life sends.
//!
//! Links and lanes of a new life are there only after all of the one before it is: a look that finds the first finds the second.

use super::Places;
use crate::delivery::{Core, Entry, LaneIn};
use crate::rank::ProcessId;

impl Places {
    /// Whether something in the lanes comes before an entry of the queue. Lanes that were opened a moment ago may hold it, too.
    #[inline]
    pub(super) fn is_too_early(&self, core: &Core, entry: &Entry) -> bool {
        match entry {
            Entry::Message(delivery) => self.is_life_too_early(core, delivery.source),
            Entry::Gone(gone) => {
                let holds = |lane: &LaneIn| lane.still_holds_messages_of(*gone);
                core.has_news() || self.lanes.borrow().iter().any(holds)
            }
        }
    }

    /// Whether lanes of an earlier life of the same rank are to be looked at first.
    #[inline]
    pub(super) fn is_life_too_early(&self, core: &Core, life: ProcessId) -> bool {
        let is_before = |lane: &LaneIn| lane.is_unread_before(life);
        life.incarnation.0 > 0 && (core.has_news() || self.lanes.borrow().iter().any(is_before))
    }

    /// Whether a lane may be looked at: all that earlier lives sent was taken, and their end told.
    #[inline]
    pub(super) fn is_due(&self, core: &Core, index: usize) -> bool {
        let is_due = |lane: &LaneIn| lane.is_due;
        self.lanes.borrow().get(index).is_some_and(is_due) || self.becomes_due(core, index)
    }

    #[cold]
    fn becomes_due(&self, core: &Core, index: usize) -> bool {
        let Some(life) = self.life_at(index) else {
            return false;
        };
        let is_due = !self.is_life_too_early(core, life) && !core.has_gone_before(life);
        self.lanes.borrow_mut()[index].is_due = is_due;
        is_due
    }

    /// Who sends over a lane.
    pub(super) fn life_at(&self, index: usize) -> Option<ProcessId> {
        let lanes = self.lanes.borrow();
        lanes.get(index).map(|lane| lane.link.peer)
    }
}
