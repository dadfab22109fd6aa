//! What a link tells its engine: how to send, what to do, what was open.

use super::OFFERS_MAX;
use crate::credit::Credits;
use crate::id::{BodyId, MailboxId, OfferId, PingToken, StreamId};
use crate::wire::BODY_MAX;

/// How a message is to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plan {
    /// Head and body in one [`Frame::Post`](crate::wire::Frame::Post).
    Eager,
    /// The head in a [`Frame::Offer`](crate::wire::Frame::Offer) with this number; the body when asked for.
    Offer(OfferId),
    /// The head in a [`Frame::Push`](crate::wire::Frame::Push) with this number, and the body behind it under this name.
    Push(OfferId, BodyId),
}

/// Why a message cannot be sent now, or at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The mailbox has too much unread. Wait for [`Action::CreditArrived`].
    #[error("no credit for the mailbox")]
    NoCredit,
    /// Too many offers are open. Wait for one to end.
    #[error("{OFFERS_MAX} offers are open")]
    TooManyOffers,
    /// The mailbox is closed, or never was.
    #[error("the mailbox is gone")]
    Gone,
    /// The peer left, or this process is leaving.
    #[error("the link is closing")]
    Leaving,
    /// The head fits no frame: move pieces of it to the body.
    #[error("head of {len} bytes, at most {limit} fit a frame")]
    HeadTooLong {
        /// Its length.
        len: u64,
        /// What fits.
        limit: u64,
    },
    /// The body is above [`BODY_MAX`].
    #[error("body of {len} bytes, at most {BODY_MAX} allowed")]
    BodyTooLong {
        /// Its length.
        len: u64,
    },
}

/// What the engine is to do about a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Action<'a> {
    /// Nothing: the link dealt with it.
    Nothing,
    /// The peer is who it should be.
    Greeted,
    /// Append a message to a mailbox. If there is no such mailbox, [`Link::close_mailbox`](super::Link::close_mailbox).
    Deliver {
        /// The mailbox.
        to: MailboxId,
        /// Who posted, within the peer.
        stream: StreamId,
        /// Head, and body if it has one.
        message: &'a [u8],
    },
    /// Append a message to a mailbox, its body to follow after [`Link::accept`](super::Link::accept). If there is no such
    /// mailbox, [`Link::decline`](super::Link::decline) and [`Link::close_mailbox`](super::Link::close_mailbox).
    Announce {
        /// The mailbox.
        to: MailboxId,
        /// Who posted, within the peer.
        stream: StreamId,
        /// What to accept or decline.
        offer: OfferId,
        /// Bytes in the body.
        body_len: u64,
        /// The head of the message.
        head: &'a [u8],
        /// Whether the body comes without being asked for. Then it cannot be declined: it must be accepted, and
        /// [`Link::taken`](super::Link::taken) says when.
        pushed: bool,
    },
    /// Send the body of an offer under the name that the peer gave it; then [`Link::handle_body_sent`](super::Link::handle_body_sent).
    SendBody {
        /// Our offer.
        offer: OfferId,
        /// The peer's name for its body.
        body: BodyId,
    },
    /// Send some of the body of an offer under the name that the peer gave it; then
    /// [`Link::handle_body_sent`](super::Link::handle_body_sent).
    SendPart {
        /// Our offer.
        offer: OfferId,
        /// The peer's name for this part.
        body: BodyId,
        /// Its first byte, from the beginning of the body. It lies inside.
        from: u64,
        /// How many bytes.
        len: u64,
    },
    /// The peer will not ask for the body, or for no more of it, and all that it asked for was sent: its memory is free.
    OfferDeclined {
        /// Our offer.
        offer: OfferId,
    },
    /// The peer took back an offer: remove it from its mailbox and [`Link::consumed`](super::Link::consumed) it, or, if it was
    /// read in parts, tell its reader.
    Retracted {
        /// The peer's offer.
        offer: OfferId,
    },
    /// A message that was offered for want of room may be pushed.
    Returned,
    /// A post to this mailbox that was refused for want of credit may be tried again.
    CreditArrived {
        /// The peer's mailbox.
        to: MailboxId,
    },
    /// The peer has no such mailbox, or no longer.
    MailboxGone {
        /// The peer's mailbox.
        to: MailboxId,
        /// What was sent there and never taken out of it (docs/wire.md §6.6).
        unread: Credits,
    },
    /// The answer to [`Link::ping`](super::Link::ping).
    Pong {
        /// As in the ping.
        token: PingToken,
    },
    /// The peer left: nothing more comes. Call [`Link::handle_lost`](super::Link::handle_lost) when its bodies are done.
    Left,
}

/// Which way a body goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From this process to the peer.
    Outgoing,
    /// From the peer to this process.
    Incoming,
}

/// What was open when a link ended, each list in the order of its numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outstanding {
    /// Our offers that were not answered, or in part: their bodies were not read to the end.
    pub offered: Vec<OfferId>,
    /// Our bodies under way.
    pub sending: Vec<(BodyId, OfferId)>,
    /// The peer's offers that were not answered, or in part: the rest of their bodies will not come.
    pub announced: Vec<OfferId>,
    /// The peer's bodies under way: their places may be half written.
    pub receiving: Vec<(BodyId, OfferId)>,
    /// What was sent to mailboxes and may not have been read.
    pub unread: Vec<(MailboxId, Credits)>,
}
