//! The sending end of a sender's own lane.

use std::sync::atomic::Ordering;

use mizzen_lane::{Producer, Refused, SHORT_MAX, Watch};

use super::channel::OpenLane;
use crate::message::Encoded;
use crate::rank::MailboxId;

/// A lane to a mailbox of a peer on this host, and the mailbox's watch.
#[derive(Debug)]
pub(crate) struct LaneOut {
    pub(crate) mailbox: MailboxId,
    pub(crate) open: OpenLane,
    pub(crate) watch: Watch,
}

impl LaneOut {
    /// Whether the owner of the mailbox will not read it any more.
    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        self.open.closed.load(Ordering::Relaxed)
    }
}

/// Sends over a lane, if there is room and the message is not too long for it.
#[inline]
pub(crate) fn try_send(lane: &mut Producer, message: &impl Encoded) -> Result<(), Refused> {
    let flags = message.flags();
    match message.with_short(SHORT_MAX, |bytes| lane.try_short(flags.0, bytes)) {
        Some(outcome) => outcome,
        None => lane.try_eager(flags.0, 0, message),
    }
}
