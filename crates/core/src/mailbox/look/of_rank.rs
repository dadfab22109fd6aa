//! Looking for what one rank sent, and only that.

use std::sync::Arc;

use super::{Outcome, Places, Reach, TURN, take_entry};
use crate::delivery::{Core, Entry, LaneIn, Searched, Wanted};
use crate::process::Process;
use crate::progress::Progress;
use crate::rank::Rank;

impl Places {
    /// Looks once for a message of one rank. What others sent stays in their lanes, or comes into the queue and stays there:
    /// no more of it than their windows allow.
    pub(in crate::mailbox) fn poll_of(
        &self,
        process: &Arc<Process>,
        core: &Arc<Core>,
        wanted: Wanted,
        searched: &mut Searched,
        reach: Reach,
    ) -> Option<Outcome> {
        if core.has_news() {
            self.take_news(core);
        }
        if self.is_holding(Some(wanted.rank)) {
            return self.poll_opened();
        }
        if let Some(elsewhere) = self.elsewhere() {
            return elsewhere.poll_of(wanted, searched, reach);
        }
        let is_holding = self.is_holding(None);
        let outcome = self.poll_places_of(process, core, wanted, searched, reach);
        if is_holding {
            // Nothing but another rank's messages overtakes what is held.
            self.streak.set(TURN);
        }
        outcome
    }

    fn poll_places_of(
        &self,
        process: &Arc<Process>,
        core: &Arc<Core>,
        wanted: Wanted,
        searched: &mut Searched,
        reach: Reach,
    ) -> Option<Outcome> {
        // Its own lanes and what it posted take turns.
        let lanes_last = !self.lanes_last_of_rank.get();
        self.lanes_last_of_rank.set(lanes_last);
        if lanes_last {
            self.poll_queue_of(core, wanted, searched)
                .or_else(|| self.poll_lanes_of(core, wanted.rank))
        } else {
            self.poll_lanes_of(core, wanted.rank)
                .or_else(|| self.poll_queue_of(core, wanted, searched))
        }
        .or_else(|| self.poll_links_of(process, core, wanted.rank, reach))
        .or_else(|| {
            process.poll_networks();
            self.poll_queue_of(core, wanted, searched)
        })
    }

    fn poll_lanes_of(&self, core: &Core, rank: Rank) -> Option<Outcome> {
        loop {
            let count = self.lanes.borrow().len();
            let first = self.next_lane.get();
            for step in 0..count {
                let index = (first + step) % count;
                let is_its = |lane: &LaneIn| lane.link.peer.rank == rank;
                if !self.lanes.borrow().get(index).is_some_and(is_its) {
                    continue;
                }
                if let Some(outcome) = self.poll_lane(core, index) {
                    self.next_lane.set(index + 1);
                    return Some(outcome);
                }
            }
            // When a lane has ended, another one was moved to its place and may have been passed over.
            if self.lanes.borrow().len() >= count {
                return None;
            }
        }
    }

    fn poll_queue_of(
        &self,
        core: &Core,
        wanted: Wanted,
        searched: &mut Searched,
    ) -> Option<Outcome> {
        let is_too_early = |entry: &Entry| self.is_too_early(core, entry);
        let entry = core.next_entry_where(|entry| wanted.is(entry), is_too_early, searched)?;
        self.note_network(&entry);
        Some(take_entry(entry))
    }

    fn poll_links_of(
        &self,
        process: &Arc<Process>,
        core: &Arc<Core>,
        rank: Rank,
        reach: Reach,
    ) -> Option<Outcome> {
        self.refresh_links(process);
        let links = self.links.borrow();
        for (index, link) in links.iter().enumerate() {
            if link.peer.rank != rank {
                continue;
            }
            let taken = self.take_of_link(process, core, index, link);
            if taken.is_some() {
                return taken;
            }
        }
        // The rank may be waiting for somebody who waits for us: everything moves, as in any wait.
        let count = links.len();
        for _ in 0..reach.of(count) {
            let index = self.next_link.get() % count;
            self.next_link.set(index + 1);
            if links[index].peer.rank != rank {
                links[index].pump(&process.mailboxes);
            }
        }
        None
    }

    /// Whether a look at everything would find something of one rank, or something to move.
    pub(in crate::mailbox) fn is_ready_of(
        &self,
        process: &Process,
        core: &Core,
        wanted: Wanted,
        searched: &mut Searched,
    ) -> bool {
        if self.is_holding(Some(wanted.rank)) {
            return self.is_held_ready() || core.has_news();
        }
        if let Some(elsewhere) = self.elsewhere() {
            return elsewhere.is_ready_of(wanted, searched);
        }
        let is_its = |lane: &LaneIn| lane.link.peer.rank == wanted.rank && lane.wants_a_look();
        core.has_news()
            || self.links_version.get() != process.links.version()
            || self.lanes.borrow().iter().any(is_its)
            || self.links.borrow().iter().any(|link| link.peek.is_ready())
            || core.has_entry_of(wanted, searched)
    }
}
