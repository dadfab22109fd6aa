//! What a peer can do wrong.

use crate::credit::{CreditOverflow, WindowExceeded};
use crate::id::{BodyId, MailboxId, OfferId, ProcessId};
use crate::kind::FrameKind;

/// A rule of `docs/wire.md` that the peer broke. It costs the peer its link (docs/wire.md §8.1).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolError {
    /// A frame without a kind.
    #[error("empty frame")]
    Empty,
    /// A frame above [`FRAME_MAX`](crate::wire::FRAME_MAX).
    #[error("frame of {len} bytes, at most {limit} allowed")]
    FrameTooLong {
        /// Its length.
        len: usize,
        /// The limit.
        limit: usize,
    },
    /// A kind that this version does not have.
    #[error("unknown frame kind {kind:#04x}")]
    UnknownKind {
        /// Byte 0 of the frame.
        kind: u8,
    },
    /// A frame shorter than its header.
    #[error("{kind:?} frame of {have} bytes, its header has {need}")]
    Truncated {
        /// The kind of frame.
        kind: FrameKind,
        /// The header's length.
        need: usize,
        /// The frame's length.
        have: usize,
    },
    /// Bytes after a frame that has no payload.
    #[error("{kind:?} frame with {extra} bytes after byte {end}, where it ends")]
    Trailing {
        /// The kind of frame.
        kind: FrameKind,
        /// Where it should have ended.
        end: usize,
        /// How many follow.
        extra: usize,
    },
    /// A reserved byte that is not zero.
    #[error("{kind:?} frame with a reserved byte that is not zero")]
    Reserved {
        /// The kind of frame.
        kind: FrameKind,
    },
    /// An offer of nothing, or of more than [`BODY_MAX`](crate::wire::BODY_MAX).
    #[error("offer of a body of {len} bytes, 1 to {limit} allowed")]
    BodyLength {
        /// The announced length.
        len: u64,
        /// The limit.
        limit: u64,
    },
    /// The peer speaks another version.
    #[error("peer speaks wire version {theirs}, this process {ours}")]
    Version {
        /// Our version.
        ours: u16,
        /// Its version.
        theirs: u16,
    },
    /// The peer is not who it should be, or looks for another process or an earlier life of this one.
    #[error("peer is {from} looking for {to}, expected {expected_from} looking for {expected_to}")]
    WrongProcess {
        /// Who it says it is.
        from: ProcessId,
        /// Whom it looks for.
        to: ProcessId,
        /// Whom this link is to.
        expected_from: ProcessId,
        /// Who this process is.
        expected_to: ProcessId,
    },
    /// The peer's windows are not ours.
    #[error("peer grants windows of {messages} messages and {bytes} bytes, not this process's")]
    WrongWindow {
        /// Messages in its window.
        messages: u32,
        /// Bytes in its window.
        bytes: u64,
    },
    /// A frame before the peer's hello.
    #[error("{kind:?} frame before hello")]
    BeforeHello {
        /// The kind of frame.
        kind: FrameKind,
    },
    /// A second hello.
    #[error("second hello")]
    SecondHello,
    /// A frame after the peer's bye.
    #[error("{kind:?} frame after bye")]
    AfterBye {
        /// The kind of frame.
        kind: FrameKind,
    },
    /// A message beyond the window of a mailbox.
    #[error("message to mailbox {to}: {source}")]
    Window {
        /// The mailbox.
        to: MailboxId,
        /// By how much.
        source: WindowExceeded,
    },
    /// Credits that the peer cannot owe.
    #[error("credits for mailbox {to}: {source}")]
    Credit {
        /// The mailbox.
        to: MailboxId,
        /// By how much.
        source: CreditOverflow,
    },
    /// An offer that does not follow the one before.
    #[error("offer {offer} after offer {last}")]
    OfferOrder {
        /// The offer.
        offer: OfferId,
        /// The highest seen.
        last: OfferId,
    },
    /// More unanswered offers than [`OFFERS_MAX`](crate::link::OFFERS_MAX).
    #[error("offer {offer} while {limit} wait for an answer")]
    TooManyOffers {
        /// The offer.
        offer: OfferId,
        /// The limit.
        limit: usize,
    },
    /// An answer to an offer that does not wait for one, or a retraction of one never made.
    #[error("{kind:?} frame for offer {offer}, which is not open")]
    UnknownOffer {
        /// The kind of frame.
        kind: FrameKind,
        /// The offer.
        offer: OfferId,
    },
    /// A body that does not follow the one before.
    #[error("body {body} after body {last}")]
    BodyOrder {
        /// The body.
        body: BodyId,
        /// The highest seen.
        last: BodyId,
    },
    /// A part of a body that is empty, too long, not behind the one before, or not inside of the body.
    #[error(
        "{len} bytes from {from} on of offer {offer}, which are not the next of it, or too many"
    )]
    PullRange {
        /// The offer.
        offer: OfferId,
        /// Where they begin.
        from: u64,
        /// How many.
        len: u32,
    },
    /// More parts of bodies asked for than [`PULLS_MAX`](crate::link::PULLS_MAX).
    #[error("offer {offer} pulled while {limit} parts wait to be sent")]
    TooManyPulls {
        /// The offer.
        offer: OfferId,
        /// The limit.
        limit: usize,
    },
    /// More pushed than the window holds.
    #[error("{len} bytes pushed beyond the window")]
    PushedTooMuch {
        /// The length of the body.
        len: u64,
    },
    /// More returned than was pushed, or nothing.
    #[error("{bytes} bytes returned of {pushed} that were pushed")]
    ReturnedTooMuch {
        /// What was returned.
        bytes: u64,
        /// What was pushed and not returned.
        pushed: u64,
    },
    /// The peer causes answers faster than it reads them.
    #[error("{limit} answers wait for a peer that does not read them")]
    AnswersUnread {
        /// The limit, [`CONTROL_MAX`](crate::link::CONTROL_MAX).
        limit: usize,
    },
}
