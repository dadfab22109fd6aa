//! Looking for what some ranks sent, and leaving what the others did.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{Outcome, Places, Reach, take_entry};
use crate::delivery::{Core, Entry, LaneIn, Searched};
use crate::process::Process;
use crate::progress::Progress;
use crate::rank::Rank;

/// Whose messages are looked for.
pub(in crate::mailbox) struct Among<'a> {
    pub(in crate::mailbox) wants: &'a dyn Fn(Rank) -> bool,
    /// Whether the news of ends is wanted, too.
    pub(in crate::mailbox) news: bool,
}

impl Among<'_> {
    fn is(&self, entry: &Entry) -> bool {
        match entry {
            Entry::Message(delivery) => (self.wants)(delivery.source.rank),
            Entry::Gone(_) => self.news,
        }
    }

    fn is_its(&self, lane: &LaneIn) -> bool {
        (self.wants)(lane.link.peer.rank)
    }
}

impl Places {
    /// Looks once for a message of some ranks. What others sent stays where it is, as in a look for one rank.
    pub(in crate::mailbox) fn poll_among(
        &self,
        process: &Arc<Process>,
        core: &Arc<Core>,
        among: &Among<'_>,
        searched: &mut Searched,
        reach: Reach,
    ) -> Option<Outcome> {
        if core.has_news() {
            self.take_news(core);
        }
        // Lanes of their own and what was posted take turns.
        let lanes_last = !self.lanes_last_of_rank.get();
        self.lanes_last_of_rank.set(lanes_last);
        if lanes_last {
            self.poll_queue_among(core, among, searched)
                .or_else(|| self.poll_lanes_among(core, among))
        } else {
            self.poll_lanes_among(core, among)
                .or_else(|| self.poll_queue_among(core, among, searched))
        }
        .or_else(|| self.poll_links_among(process, core, among, reach))
        .or_else(|| {
            process.poll_networks();
            self.poll_queue_among(core, among, searched)
        })
    }

    fn poll_lanes_among(&self, core: &Core, among: &Among<'_>) -> Option<Outcome> {
        loop {
            let count = self.lanes.borrow().len();
            let first = self.next_lane.get();
            for step in 0..count {
                let index = (first + step) % count;
                let Some(life) = self.life_at(index).filter(|life| (among.wants)(life.rank)) else {
                    continue;
                };
                // News that is not wanted waits for somebody else, and nothing waits for it.
                let is_due = match among.news {
                    true => self.is_due(core, index),
                    false => !self.is_life_too_early(core, life),
                };
                if !is_due {
                    continue;
                }
                if let Some(outcome) = self.take_of_lane(core, index) {
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

    fn poll_queue_among(
        &self,
        core: &Core,
        among: &Among<'_>,
        searched: &mut Searched,
    ) -> Option<Outcome> {
        let is_too_early = |entry: &Entry| self.is_too_early(core, entry);
        let entry = core.next_entry_where(|entry| among.is(entry), is_too_early, searched)?;
        self.note_network(&entry);
        Some(take_entry(entry))
    }

    fn poll_links_among(
        &self,
        process: &Arc<Process>,
        core: &Arc<Core>,
        among: &Among<'_>,
        reach: Reach,
    ) -> Option<Outcome> {
        self.refresh_links(process);
        let links = self.links.borrow();
        let count = links.len();
        for _ in 0..reach.of(count) {
            let index = self.next_link.get() % count;
            self.next_link.set(index + 1);
            let link = &links[index];
            if !(among.wants)(link.peer.rank) {
                // What is there may be for others, who wait for it.
                link.pump(&process.mailboxes);
                continue;
            }
            let taken = self.take_of_link(process, core, index, link);
            if taken.is_some() {
                return taken;
            }
        }
        None
    }

    /// Whether a look would find a message of these ranks, or something to move.
    pub(in crate::mailbox) fn is_ready_among(
        &self,
        process: &Process,
        core: &Core,
        among: &Among<'_>,
        searched: &mut Searched,
    ) -> bool {
        let wants_a_look = |lane: &LaneIn| among.is_its(lane) && lane.wants_a_look();
        core.has_news()
            || self.links_version.get() != process.links.version()
            || self.lanes.borrow().iter().any(wants_a_look)
            || self.links.borrow().iter().any(|link| link.peek.is_ready())
            || core.has_entry_where(|entry| among.is(entry), searched)
    }

    /// Whether anything is here that one rank sent: in lanes, in the queue, or on its way there.
    pub(in crate::mailbox) fn has_message_of(
        &self,
        process: &Process,
        core: &Core,
        rank: Rank,
    ) -> bool {
        let is_its = |lane: &LaneIn| lane.link.peer.rank == rank && lane.consumer.is_ready();
        let is_entry = |entry: &Entry| matches!(entry, Entry::Message(delivery) if delivery.source.rank == rank);
        core.has_news()
            || self.links_version.get() != process.links.version()
            || self.lanes.borrow().iter().any(is_its)
            || self.links.borrow().iter().any(|link| link.peek.is_ready())
            || core.queued.load(Ordering::Acquire) > 0
                && core.has_entry_where(is_entry, &mut Searched::default())
    }
}
