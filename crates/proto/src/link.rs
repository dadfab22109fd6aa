//! One link to one life of one peer (docs/wire.md §4 to §6).
//!
//! The link decides; the engine moves bytes. Frames of one direction arrive in the order they were sent,
//! so messages reach a mailbox in the order of [`Link::post`]: the link keeps no sequence numbers. An
//! offer takes its place in that order with its head; its body comes when the receiver has a place for it.
//!
//! ```text
//!   ours:   silent ──poll_transmit: hello──▶ open ──leave──▶ leaving ──poll_transmit: bye──▶ left
//!   theirs: silent ──handle_frame: hello───▶ open ─────────────────────handle_frame: bye───▶ left
//! ```
//!
//! Offers have their own table of states, in the private module `offers`.
//!
//! ```
//! use mizzen_proto::id::{Incarnation, MailboxId, ProcessId, Rank, StreamId};
//! use mizzen_proto::link::{Action, Link, LinkOptions, Plan};
//! use mizzen_proto::wire::Frame;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let [p, q] = [0, 1].map(|rank| ProcessId::new(Rank(rank), Incarnation(0)));
//! let (mut at_p, mut at_q) = (Link::new(LinkOptions::new(p, q)), Link::new(LinkOptions::new(q, p)));
//! let mut wire = Vec::new();
//!
//! // What the link itself has to say goes first: here, hello.
//! while let Some(frame) = at_p.poll_transmit() {
//!     wire.push(frame.to_vec());
//! }
//! let (to, stream, message) = (MailboxId(7), StreamId(0), b"four".as_slice());
//! assert_eq!(at_p.post(to, message.len() as u64, 0)?, Plan::Eager);
//! wire.push(Frame::Post { to, stream, message }.to_vec());
//!
//! assert_eq!(at_q.handle_frame(Frame::decode(&wire[0])?)?, Action::Greeted);
//! assert_eq!(at_q.handle_frame(Frame::decode(&wire[1])?)?, Action::Deliver { to, stream, message });
//! at_q.consumed(to, message.len() as u64); // when the owner of the mailbox has taken it out
//! # Ok(())
//! # }
//! ```

mod flows;
mod limits;
mod offers;
mod outcome;

use std::collections::VecDeque;

use crate::ProtocolError;
use crate::credit::{Credits, WINDOW};
use crate::id::{BodyId, MailboxId, OfferId, PingToken, ProcessId};
use crate::wire::{BODY_MAX, FRAME_MAX, Frame, OFFER_HEADER, POST_HEADER, PUSH_MAX, VERSION};
use flows::{Due, Flows};
use offers::{Incoming, Outgoing, Range, pushed_body, pushed_offer};

pub use limits::{BODIES_MAX, CONTROL_MAX, GONE_MAX, OFFERS_MAX, PULLS_MAX};
pub use offers::{AcceptRefused, UnknownBody};
pub use outcome::{Action, Direction, Outstanding, Plan, Refused};

/// Who is at the two ends of a link, and what it may use.
#[derive(Debug, Clone)]
pub struct LinkOptions {
    /// This process.
    pub local: ProcessId,
    /// The process at the other end.
    pub peer: ProcessId,
    /// The longest frame that the driver takes, header included; at most [`FRAME_MAX`].
    pub frame_max: usize,
    /// The longest message with a body that is sent whole in one frame, rather than offered. A trade of a
    /// copy against a round trip, so it depends on the driver.
    pub eager_max: u64,
    /// What each mailbox grants; the same at both ends.
    pub window: Credits,
}

impl LinkOptions {
    /// The limits of `docs/wire.md`.
    pub const fn new(local: ProcessId, peer: ProcessId) -> Self {
        Self {
            local,
            peer,
            frame_max: FRAME_MAX,
            eager_max: (FRAME_MAX - POST_HEADER) as u64,
            window: WINDOW,
        }
    }
}

/// The protocol between this process and one peer.
#[derive(Debug)]
pub struct Link {
    options: LinkOptions,
    ours: Ours,
    theirs: Theirs,
    flows: Flows,
    outgoing: Outgoing,
    incoming: Incoming,
    control: VecDeque<Control>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ours {
    /// Hello is to be sent; perhaps bye soon after.
    Silent(Intent),
    Said(Intent),
    Left,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Intent {
    Stay,
    Leave,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Theirs {
    Silent,
    Open,
    Left,
}

/// A frame of the link's own, waiting to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Control {
    Accept(OfferId, BodyId),
    Pull(OfferId, BodyId, Range),
    Decline(OfferId),
    Retract(OfferId),
    /// Whatever is due when its turn comes.
    CreditDue(MailboxId),
    Credit(MailboxId, Credits),
    /// Whatever was taken of pushed bodies when its turn comes.
    ReturnedDue,
    Gone(MailboxId),
    Ping(PingToken),
    Pong(PingToken),
}

impl Link {
    /// A link over a connection that was just made.
    ///
    /// # Panics
    /// When `options` could never move a message: frames longer than [`FRAME_MAX`], shorter than an
    /// offer's header, or longer than half a window (docs/wire.md §6.5).
    pub fn new(options: LinkOptions) -> Self {
        let frames = OFFER_HEADER..=FRAME_MAX;
        assert!(
            frames.contains(&options.frame_max),
            "frame_max outside {frames:?}"
        );
        assert!(
            options.frame_max as u64 <= options.window.bytes / 2 && options.window.messages > 0,
            "a message must fit half a window, or it could wait for ever"
        );
        Self {
            flows: Flows::new(options.window),
            options,
            ours: Ours::Silent(Intent::Stay),
            theirs: Theirs::Silent,
            outgoing: Outgoing::default(),
            incoming: Incoming::default(),
            control: VecDeque::new(),
        }
    }

    /// A link inside of a session, whose greeting was its hello (docs/wire-sessions.md §20.1). Its bye is the session's.
    ///
    /// # Panics
    /// As [`new`](Self::new).
    pub fn in_session(options: LinkOptions) -> Self {
        Self {
            ours: Ours::Said(Intent::Stay),
            theirs: Theirs::Open,
            ..Self::new(options)
        }
    }

    // Commands of a sender.

    /// Pays for one message and says how to send it. On `Ok` the engine sends the frame before any later
    /// one of this link, or calls [`undo_post`](Self::undo_post).
    ///
    /// # Errors
    /// Nothing was paid, and the caller keeps the message.
    ///
    /// # Panics
    /// Before the first [`poll_transmit`](Self::poll_transmit), whose hello must be on its way.
    pub fn post(&mut self, to: MailboxId, head_len: u64, body_len: u64) -> Result<Plan, Refused> {
        self.plan(to, head_len, body_len, false)
    }

    /// As [`post`](Self::post), but a body of medium length may go without being asked for, if the peer has room.
    /// For drivers that can push.
    ///
    /// # Errors
    /// As for [`post`](Self::post).
    ///
    /// # Panics
    /// As [`post`](Self::post).
    pub fn post_or_push(
        &mut self,
        to: MailboxId,
        head_len: u64,
        body_len: u64,
    ) -> Result<Plan, Refused> {
        self.plan(to, head_len, body_len, true)
    }

    /// Takes back a post whose frame was never given to a driver; same arguments, and what it returned.
    pub fn undo_post(&mut self, to: MailboxId, head_len: u64, body_len: u64, plan: Plan) {
        if let Plan::Offer(offer) = plan {
            self.outgoing.undo(offer);
            // The peer must not hear of an offer that was never made.
            self.control
                .retain(|control| *control != Control::Retract(offer));
        }
        if let Plan::Push(_, body) = plan {
            self.outgoing.undo_push(body, body_len);
        }
        let eager = plan == Plan::Eager;
        self.flows.refund(to, cost(eager, head_len, body_len));
    }

    /// Asks to take an offer back, because its poster waited long enough. It ends as it would have:
    /// [`Action::OfferDeclined`] if the peer agrees, [`Action::SendBody`] if it had already accepted.
    /// An offer that is not waiting for an answer is left alone.
    pub fn retract(&mut self, offer: OfferId) {
        if self.outgoing.retract(offer) {
            self.control.push_back(Control::Retract(offer));
        }
    }

    // Commands of a receiver.

    /// The receiver has a place for the body. Give it to the driver under the returned name before the
    /// next [`poll_transmit`](Self::poll_transmit), which tells the peer; if the driver has no room,
    /// [`withdraw`](Self::withdraw).
    ///
    /// # Errors
    /// The offer was retracted or answered, or too many bodies are under way.
    pub fn accept(&mut self, offer: OfferId) -> Result<BodyId, AcceptRefused> {
        let body = self.incoming.accept(offer)?;
        if pushed_offer(body).is_none() {
            self.control.push_back(Control::Accept(offer, body));
        }
        Ok(body)
    }

    /// The receiver has a place for `len` bytes of the body from `from` on, which is not before the end of what was asked for
    /// earlier. As [`accept`](Self::accept) otherwise. Once the last byte was asked for, the offer is answered; before that,
    /// [`decline`](Self::decline) says that no more is wanted.
    ///
    /// # Errors
    /// As for [`accept`](Self::accept).
    ///
    /// # Panics
    /// When the bytes are not inside of the body, were asked for already, or are pushed: our mistake.
    pub fn pull(&mut self, offer: OfferId, from: u64, len: u32) -> Result<BodyId, AcceptRefused> {
        let range = Range { from, len };
        let body = self.incoming.pull(offer, range)?;
        self.control.push_back(Control::Pull(offer, body, range));
        Ok(body)
    }

    /// Takes back an [`accept`](Self::accept) or a [`pull`](Self::pull) that the peer was not told of: the offer waits again.
    ///
    /// # Errors
    /// The peer was told, or there is no such body.
    pub fn withdraw(&mut self, body: BodyId) -> Result<OfferId, UnknownBody> {
        if pushed_offer(body).is_some() {
            return self.incoming.withdraw(body);
        }
        let untold = |control: &Control| matches!(control, Control::Accept(_, b) | Control::Pull(_, b, _) if *b == body);
        let place = self.control.iter().rposition(untold).ok_or(UnknownBody)?;
        match self.control.remove(place) {
            Some(Control::Pull(_, _, range)) => self.incoming.withdraw_pull(body, range),
            _ => self.incoming.withdraw(body),
        }
    }

    /// The body, or more of it, will never be wanted; the offer is forgotten. One that is not waiting is left alone.
    pub fn decline(&mut self, offer: OfferId) {
        if self.incoming.decline(offer) {
            self.control.push_back(Control::Decline(offer));
        }
    }

    /// Whether a body has the name of one that goes without being asked for.
    pub fn is_pushed(body: BodyId) -> bool {
        pushed_offer(body).is_some()
    }

    /// The name of the body of a pushed offer.
    pub fn pushed_body(offer: OfferId) -> BodyId {
        pushed_body(offer)
    }

    /// The pushed offer that a body waits for, if it is one that was not accepted.
    pub fn waiting(&self, body: BodyId) -> Option<OfferId> {
        self.incoming.waiting(body)
    }

    /// A pushed body of `len` bytes is where it belongs, or was thrown away: the peer may push as much again.
    pub fn taken(&mut self, len: u64) {
        if self.incoming.taken(len) {
            self.control.push_back(Control::ReturnedDue);
        }
    }

    /// The owner of a mailbox took one message out of it, of `bytes` in its frame's payload: the length of
    /// `message` or `head` as it was handed over. A call that comes after the mailbox closed is harmless.
    pub fn consumed(&mut self, mailbox: MailboxId, bytes: u64) {
        if self.flows.consume(mailbox, bytes) == Due::Now {
            self.control.push_back(Control::CreditDue(mailbox));
        }
    }

    /// A mailbox closed, or does not exist: tells the peer if it sent something there. Offers still in the
    /// mailbox must be [declined](Self::decline) by the caller first.
    pub fn close_mailbox(&mut self, mailbox: MailboxId) {
        let Some(rest) = self.flows.close(mailbox) else {
            return;
        };
        // The sender then knows exactly what was never read (docs/wire.md §6.6).
        if rest != Credits::ZERO {
            self.control.push_back(Control::Credit(mailbox, rest));
        }
        let gone = Control::Gone(mailbox);
        if self.control.back() != Some(&gone) {
            self.control.push_back(gone);
        }
    }

    // Commands of both.

    /// Asks whether the peer is there.
    pub fn ping(&mut self, token: PingToken) {
        self.control.push_back(Control::Ping(token));
    }

    /// No more posts: says bye when every offer of ours has ended and no body is under way.
    pub fn leave(&mut self) {
        if let Ours::Silent(intent) | Ours::Said(intent) = &mut self.ours {
            *intent = Intent::Leave;
        }
    }

    // Input.

    /// A frame came from the peer.
    ///
    /// # Errors
    /// The peer broke a rule: disconnect it and call [`handle_lost`](Self::handle_lost).
    pub fn handle_frame<'a>(&mut self, frame: Frame<'a>) -> Result<Action<'a>, ProtocolError> {
        let kind = frame.kind();
        match (self.theirs, frame) {
            (Theirs::Silent, Frame::Hello { .. }) | (Theirs::Open, _) => {}
            (Theirs::Silent, _) => return Err(ProtocolError::BeforeHello { kind }),
            (Theirs::Left, _) => return Err(ProtocolError::AfterBye { kind }),
        }
        if self.control.len() >= CONTROL_MAX {
            return Err(ProtocolError::AnswersUnread { limit: CONTROL_MAX });
        }
        match frame {
            Frame::Hello {
                version,
                from,
                to,
                window,
            } => self.handle_hello(version, from, to, window),
            Frame::Post {
                to,
                stream,
                message,
            } => {
                self.flows.handle_message(to, message)?;
                Ok(Action::Deliver {
                    to,
                    stream,
                    message,
                })
            }
            Frame::Offer {
                to,
                stream,
                offer,
                body_len,
                head,
            } => {
                self.flows.handle_message(to, head)?;
                self.incoming.handle_offer(offer, body_len)?;
                Ok(Action::Announce {
                    to,
                    stream,
                    offer,
                    body_len,
                    head,
                    pushed: false,
                })
            }
            Frame::Push {
                to,
                stream,
                offer,
                body_len,
                head,
            } => {
                self.flows.handle_message(to, head)?;
                self.incoming.handle_push(offer, body_len)?;
                Ok(Action::Announce {
                    to,
                    stream,
                    offer,
                    body_len,
                    head,
                    pushed: true,
                })
            }
            Frame::Returned { bytes } => {
                self.outgoing.handle_returned(bytes)?;
                Ok(Action::Returned)
            }
            Frame::Accept { offer, body } => {
                self.outgoing.handle_accept(offer, body)?;
                Ok(Action::SendBody { offer, body })
            }
            Frame::Pull {
                offer,
                body,
                from,
                len,
            } => {
                self.outgoing
                    .handle_pull(offer, body, Range { from, len })?;
                let len = u64::from(len);
                Ok(Action::SendPart {
                    offer,
                    body,
                    from,
                    len,
                })
            }
            Frame::Decline { offer } => {
                self.outgoing.handle_decline(offer)?;
                Ok(match self.has_ended(offer) {
                    true => Action::OfferDeclined { offer },
                    // It ends with what is under way of it.
                    false => Action::Nothing,
                })
            }
            Frame::Retract { offer } => self.handle_retract(offer),
            Frame::Credit { to, credits } => {
                self.flows.handle_credit(to, credits)?;
                Ok(Action::CreditArrived { to })
            }
            Frame::Gone { mailbox: to } => Ok(match self.flows.handle_gone(to) {
                Some(unread) => Action::MailboxGone { to, unread },
                None => Action::Nothing,
            }),
            Frame::Ping { token } => {
                self.control.push_back(Control::Pong(token));
                Ok(Action::Nothing)
            }
            Frame::Pong { token } => Ok(Action::Pong { token }),
            Frame::Bye => {
                self.theirs = Theirs::Left;
                Ok(Action::Left)
            }
        }
    }

    /// The driver is done with a body that [`Action::SendBody`] or [`Action::SendPart`] asked for: returns its offer, of which
    /// [`has_ended`](Self::has_ended) says whether that was all.
    ///
    /// # Errors
    /// No such body is under way.
    pub fn handle_body_sent(&mut self, body: BodyId) -> Result<OfferId, UnknownBody> {
        self.outgoing.end(body)
    }

    /// A body is in the place that [`accept`](Self::accept) had for it: returns its offer.
    ///
    /// # Errors
    /// No such body is under way.
    pub fn handle_body_received(&mut self, body: BodyId) -> Result<OfferId, UnknownBody> {
        self.incoming.end(body)
    }

    /// The driver gave up a body while the link lives: returns its offer. The other end learns it from its
    /// own driver.
    ///
    /// # Errors
    /// No such body is under way.
    pub fn handle_body_failed(
        &mut self,
        body: BodyId,
        direction: Direction,
    ) -> Result<OfferId, UnknownBody> {
        match direction {
            Direction::Outgoing => self.outgoing.end(body),
            Direction::Incoming => self.incoming.end(body),
        }
    }

    /// The connection is no more: returns what was open, for each to be told.
    pub fn handle_lost(self) -> Outstanding {
        let (offered, sending) = self.outgoing.into_open();
        let (announced, receiving) = self.incoming.into_open();
        Outstanding {
            offered,
            sending,
            announced,
            receiving,
            unread: self.flows.into_unread(),
        }
    }

    // Output.

    /// The next frame of the link's own to send, before anything that is posted later. The caller keeps
    /// it until a driver took it.
    pub fn poll_transmit(&mut self) -> Option<Frame<'static>> {
        if let Ours::Silent(intent) = self.ours {
            self.ours = Ours::Said(intent);
            return Some(self.hello());
        }
        if self.ours == Ours::Left || self.theirs == Theirs::Left {
            return None;
        }
        while let Some(control) = self.control.pop_front() {
            let frame = self.frame_of(control);
            if frame.is_some() {
                return frame;
            }
        }
        let done = self.outgoing.is_empty() && self.incoming.bodies() == 0;
        if self.ours == Ours::Said(Intent::Leave) && done {
            self.ours = Ours::Left;
            return Some(Frame::Bye);
        }
        None
    }

    // Getters.

    /// Whether [`poll_transmit`](Self::poll_transmit) may have something.
    #[inline]
    pub fn has_output(&self) -> bool {
        !self.control.is_empty() || !matches!(self.ours, Ours::Said(Intent::Stay))
    }

    /// The process at the other end.
    pub fn peer(&self) -> ProcessId {
        self.options.peer
    }

    /// The longest head of a message that has a body; what is longer moves to the body.
    pub fn head_max(&self) -> u64 {
        (self.options.frame_max - OFFER_HEADER) as u64
    }

    /// Whether nothing more of an offer of ours is to be sent, or under way.
    pub fn has_ended(&self, offer: OfferId) -> bool {
        self.outgoing.has_ended(offer)
    }

    /// Whether the peer said hello and not yet bye.
    pub fn is_open(&self) -> bool {
        self.theirs == Theirs::Open
    }

    /// Whether this process said bye: nothing more is to be sent.
    pub fn has_left(&self) -> bool {
        self.ours == Ours::Left
    }

    /// How many mailboxes, of either end, this link keeps something about.
    pub fn mailboxes_tracked(&self) -> usize {
        self.flows.len()
    }

    /// How many offers and bodies, of either end, are open.
    pub fn offers_open(&self) -> usize {
        self.outgoing.len() + self.incoming.len()
    }

    fn plan(
        &mut self,
        to: MailboxId,
        head_len: u64,
        body_len: u64,
        may_push: bool,
    ) -> Result<Plan, Refused> {
        assert!(
            !matches!(self.ours, Ours::Silent(_)),
            "hello is the first frame"
        );
        if self.ours != Ours::Said(Intent::Stay) || self.theirs == Theirs::Left {
            return Err(Refused::Leaving);
        }
        let eager = self.is_eager(head_len, body_len)?;
        if !eager && self.outgoing.is_full() {
            return Err(Refused::TooManyOffers);
        }
        self.flows.spend(to, cost(eager, head_len, body_len))?;
        if eager {
            return Ok(Plan::Eager);
        }
        if may_push && body_len <= PUSH_MAX {
            if let Some((offer, body)) = self.outgoing.push(body_len) {
                return Ok(Plan::Push(offer, body));
            }
        }
        Ok(Plan::Offer(self.outgoing.open(body_len)))
    }

    fn is_eager(&self, head_len: u64, body_len: u64) -> Result<bool, Refused> {
        let too_long = |limit| Refused::HeadTooLong {
            len: head_len,
            limit,
        };
        let post_max = (self.options.frame_max - POST_HEADER) as u64;
        if body_len == 0 {
            return (head_len <= post_max)
                .then_some(true)
                .ok_or(too_long(post_max));
        }
        if body_len > BODY_MAX {
            return Err(Refused::BodyTooLong { len: body_len });
        }
        let head_max = self.head_max();
        if head_len > head_max {
            return Err(too_long(head_max));
        }
        Ok(head_len + body_len <= post_max.min(self.options.eager_max))
    }

    fn hello(&self) -> Frame<'static> {
        Frame::Hello {
            version: VERSION,
            from: self.options.local,
            to: self.options.peer,
            window: self.options.window,
        }
    }

    fn frame_of(&mut self, control: Control) -> Option<Frame<'static>> {
        Some(match control {
            Control::Accept(offer, body) => Frame::Accept { offer, body },
            Control::Pull(offer, body, Range { from, len }) => Frame::Pull {
                offer,
                body,
                from,
                len,
            },
            Control::Decline(offer) => Frame::Decline { offer },
            Control::Retract(offer) => Frame::Retract { offer },
            Control::Credit(to, credits) => Frame::Credit { to, credits },
            Control::Gone(mailbox) => Frame::Gone { mailbox },
            Control::Ping(token) => Frame::Ping { token },
            Control::Pong(token) => Frame::Pong { token },
            Control::ReturnedDue => Frame::Returned {
                bytes: self.incoming.poll_returned()?,
            },
            Control::CreditDue(to) => {
                let credits = self.flows.poll_credit(to)?;
                Frame::Credit { to, credits }
            }
        })
    }

    fn handle_hello<'a>(
        &mut self,
        version: u16,
        from: ProcessId,
        to: ProcessId,
        window: Credits,
    ) -> Result<Action<'a>, ProtocolError> {
        if self.theirs != Theirs::Silent {
            return Err(ProtocolError::SecondHello);
        }
        if version != VERSION {
            return Err(ProtocolError::Version {
                ours: VERSION,
                theirs: version,
            });
        }
        if from != self.options.peer || to != self.options.local {
            return Err(ProtocolError::WrongProcess {
                from,
                to,
                expected_from: self.options.peer,
                expected_to: self.options.local,
            });
        }
        if window != self.options.window {
            return Err(ProtocolError::WrongWindow {
                messages: window.messages,
                bytes: window.bytes,
            });
        }
        self.theirs = Theirs::Open;
        Ok(Action::Greeted)
    }

    fn handle_retract<'a>(&mut self, offer: OfferId) -> Result<Action<'a>, ProtocolError> {
        if !self.incoming.handle_retract(offer)? {
            return Ok(Action::Nothing);
        }
        self.control.push_back(Control::Decline(offer));
        Ok(Action::Retracted { offer })
    }
}

/// What a message takes from the window: the payload of its frame (docs/wire.md §6.1).
fn cost(eager: bool, head_len: u64, body_len: u64) -> u64 {
    if eager { head_len + body_len } else { head_len }
}
