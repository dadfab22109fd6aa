//! What is counted of a link through memory.

use super::mailbox_lane::Taken;
use crate::counters::Counter;

/// What slow paths count. Messages are not among it: the positions of the lanes tell.
#[derive(Debug, Default)]
pub(crate) struct LinkCounts {
    /// Posts that found no credit, and no room in the lane.
    pub(crate) credits_exhausted: Counter,
    pub(crate) lane_full: Counter,
    /// Messages that waited in memory of their own until there was room.
    pub(crate) left_behind: Counter,
    /// Sleeps of posters, and receivers at the other end that were woken.
    pub(crate) sleeps: Counter,
    pub(crate) wakes: Counter,
    /// Slots of the shared lanes that were not messages but words between runtimes. Of those sent, credits are counted by
    /// the accounts, each of which has one owner.
    pub(crate) notices_sent: Counter,
    pub(crate) notices_received: Counter,
    /// Messages that went over lanes of the peer's mailboxes that are closed, and that came over lanes of ours.
    pub(crate) mailbox_lanes_sent: Counter,
    pub(crate) mailbox_lanes_taken: Taken,
    /// Long messages to the peer, and their bytes.
    pub(crate) long_messages: Counter,
    pub(crate) long_bytes: Counter,
    /// Long messages of the peer that were read in its own memory, and their bytes.
    pub(crate) pulled_messages: Counter,
    pub(crate) pulled_bytes: Counter,
}

impl LinkCounts {
    /// A long message went to the peer.
    pub(crate) fn note_long(&self, bytes: usize) {
        self.long_messages.add(1);
        self.long_bytes.add(bytes as u64);
    }

    /// A long message of the peer was pulled.
    pub(crate) fn note_pulled(&self, bytes: usize) {
        self.pulled_messages.add(1);
        self.pulled_bytes.add(bytes as u64);
    }
}
