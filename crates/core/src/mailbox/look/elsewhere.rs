//! A mailbox whose places somebody else has: while receives are posted, whoever waits for one looks for messages, and the owner
//! gets what nobody wanted.
//!
//! The places that the owner still has are empty then, and their hot place has had its turn for ever. So the short path finds
//! nothing, and has nothing to check.

use std::sync::Arc;

use super::{Elsewhere, Look, Origin, Outcome, Places, Reach, TURN};
use crate::delivery::Core;
use crate::process::Process;

impl Places {
    /// Moves them to `elsewhere`, which is given them.
    pub(in crate::mailbox) fn move_out(&self, elsewhere: Arc<dyn Elsewhere>) -> Self {
        let moved = Self::new();
        self.move_to(&moved);
        *self.elsewhere.borrow_mut() = Some(elsewhere);
        self.streak.set(TURN);
        moved
    }

    /// They are the owner's again.
    pub(in crate::mailbox) fn come_home(&self, places: &Self) {
        places.move_to(self);
        self.elsewhere.take();
        let is_holding = self.held.borrow().is_some();
        self.streak.set(if is_holding { TURN } else { 0 });
    }

    /// Whether somebody else has them.
    pub(in crate::mailbox) fn is_elsewhere(&self) -> bool {
        self.streak.get() >= TURN && self.elsewhere.borrow().is_some()
    }

    /// Whether a look has found news since this was last asked.
    pub(in crate::mailbox) fn has_seen_news(&self) -> bool {
        self.has_seen_news.take()
    }

    pub(super) fn elsewhere(&self) -> Option<Arc<dyn Elsewhere>> {
        if self.streak.get() < TURN {
            return None;
        }
        self.elsewhere.borrow().clone()
    }

    pub(super) fn poll_elsewhere(
        &self,
        process: &Arc<Process>,
        core: &Arc<Core>,
        reach: Reach,
    ) -> Option<Outcome> {
        match self.elsewhere()?.poll(reach) {
            Look::Found(outcome) => Some(outcome),
            Look::Nothing => None,
            Look::Home(places) => {
                self.come_home(&places);
                self.poll(process, core, Reach::All)
            }
        }
    }

    fn move_to(&self, other: &Self) {
        other.lanes.replace(self.lanes.take());
        other.links.replace(self.links.take());
        let version = self.links_version.replace(u64::MAX);
        other.links_version.set(version);
        other.hot.set(self.hot.replace(Origin::Lane(0)));
        other.next_lane.set(self.next_lane.get());
        other.next_link.set(self.next_link.get());
    }
}
