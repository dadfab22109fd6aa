//! Two links joined by queues in memory, each with the least engine that can drive it.
//!
//! Frames travel as bytes, in order. Bodies travel apart and arrive whenever the test says.

use std::collections::{BTreeMap, VecDeque};

use mizzen_proto::ProtocolError;
use mizzen_proto::credit::Credits;
use mizzen_proto::id::{
    BodyId, Incarnation, MailboxId, OfferId, PingToken, ProcessId, Rank, StreamId,
};
use mizzen_proto::link::{Action, Link, LinkOptions, Plan, Refused};
use mizzen_proto::wire::Frame;

/// Which end of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    A,
    B,
}

impl Side {
    pub(crate) fn other(self) -> Side {
        match self {
            Side::A => Side::B,
            Side::B => Side::A,
        }
    }
}

pub(crate) struct Pair {
    pub(crate) a: End,
    pub(crate) b: End,
}

/// One process: its link, its mailboxes, and what happened to it.
pub(crate) struct End {
    pub(crate) link: Link,
    /// Frames on their way here.
    pub(crate) frames: VecDeque<Vec<u8>>,
    /// Bodies on their way here.
    pub(crate) bodies: Vec<(BodyId, Vec<u8>)>,
    pub(crate) mailboxes: BTreeMap<MailboxId, VecDeque<Waiting>>,
    /// Bodies of offers that the peer did not answer.
    pub(crate) offered: BTreeMap<OfferId, Vec<u8>>,
    /// What was read, in order; a body is `None` until it came.
    pub(crate) read: Vec<Read>,
    pub(crate) declined: Vec<OfferId>,
    pub(crate) retracted: Vec<(MailboxId, Vec<u8>)>,
    pub(crate) gone: Vec<(MailboxId, Credits)>,
    pub credit_arrived: Vec<MailboxId>,
    pub(crate) pongs: Vec<PingToken>,
    pub(crate) left: bool,
    /// Offers that were taken back while they were read in parts.
    pub(crate) retracted_reading: Vec<OfferId>,
    expected: BTreeMap<BodyId, Place>,
    reading: Option<Reading>,
}

/// Where a body goes: the message that was read, and how much of its body comes before.
type Place = (usize, usize);

/// A message that is read in parts.
struct Reading {
    offer: OfferId,
    read: usize,
    at: usize,
    len: usize,
}

/// A message in a mailbox.
pub(crate) struct Waiting {
    pub(crate) stream: StreamId,
    pub(crate) payload: Vec<u8>,
    pub(crate) offer: Option<OfferId>,
    pub(crate) body_len: usize,
}

/// A message out of a mailbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Read {
    pub(crate) mailbox: MailboxId,
    pub(crate) stream: StreamId,
    pub(crate) payload: Vec<u8>,
    pub(crate) offer: Option<OfferId>,
    pub(crate) body: Option<Vec<u8>>,
}

pub(crate) const BOX: MailboxId = MailboxId(7);

pub(crate) fn process(rank: u32) -> ProcessId {
    ProcessId::new(Rank(rank), Incarnation(0))
}

impl Pair {
    /// Two processes that have said hello, each with the mailbox [`BOX`].
    pub(crate) fn new() -> Self {
        Self::with_options(|_| {})
    }

    /// With frames of at most 256 bytes, messages above 64 offered, and windows of `messages` and 1 KiB.
    pub(crate) fn with_window(messages: u32) -> Self {
        Self::with_options(|options| {
            options.frame_max = 256;
            options.eager_max = 64;
            options.window = Credits::new(messages, 1024);
        })
    }

    fn with_options(change: impl Fn(&mut LinkOptions)) -> Self {
        let end = |local, peer| {
            let mut options = LinkOptions::new(process(local), process(peer));
            change(&mut options);
            End::new(Link::new(options))
        };
        let mut pair = Self {
            a: end(0, 1),
            b: end(1, 0),
        };
        pair.drive();
        pair
    }

    pub(crate) fn end(&mut self, side: Side) -> &mut End {
        match side {
            Side::A => &mut self.a,
            Side::B => &mut self.b,
        }
    }

    /// Posts from `side` into a mailbox of the other.
    pub(crate) fn post(
        &mut self,
        side: Side,
        to: MailboxId,
        head: &[u8],
        body: &[u8],
    ) -> Result<Plan, Refused> {
        let stream = StreamId(1);
        let end = self.end(side);
        let plan = end.link.post(to, head.len() as u64, body.len() as u64)?;
        let bytes = match plan {
            Plan::Eager => {
                let message = &[head, body].concat();
                let frame = Frame::Post {
                    to,
                    stream,
                    message,
                };
                frame.to_vec()
            }
            Plan::Offer(offer) => {
                end.offered.insert(offer, body.to_vec());
                let frame = Frame::Offer {
                    to,
                    stream,
                    offer,
                    body_len: body.len() as u64,
                    head,
                };
                frame.to_vec()
            }
            Plan::Push(..) => unreachable!("`post` does not push"),
        };
        self.pump(side);
        self.end(side.other()).frames.push_back(bytes);
        Ok(plan)
    }

    /// Sends what the link of `side` wants to say.
    pub(crate) fn pump(&mut self, side: Side) {
        while let Some(frame) = self.end(side).link.poll_transmit() {
            self.end(side.other()).frames.push_back(frame.to_vec());
        }
    }

    /// Lets `side` receive one frame; whether there was one.
    pub(crate) fn step(&mut self, side: Side) -> Result<bool, ProtocolError> {
        self.pump(side);
        let end = self.end(side);
        let Some(bytes) = end.frames.pop_front() else {
            return Ok(false);
        };
        let send = end.handle(&bytes)?;
        if let Some((body, bytes)) = send {
            self.end(side.other()).bodies.push((body, bytes));
            let end = self.end(side);
            let offer = end.link.handle_body_sent(body).unwrap();
            if end.link.has_ended(offer) {
                end.offered.remove(&offer);
            }
        }
        self.pump(side);
        Ok(true)
    }

    /// Lets `side` receive one of the bodies on their way to it; whether there was one.
    pub(crate) fn step_body(&mut self, side: Side, pick: usize) -> bool {
        let end = self.end(side);
        if end.bodies.is_empty() {
            return false;
        }
        let (body, bytes) = end.bodies.swap_remove(pick % end.bodies.len());
        end.link.handle_body_received(body).unwrap();
        let (read, at) = end.expected.remove(&body).unwrap();
        let whole = end.read[read].body.get_or_insert_default();
        whole.resize(whole.len().max(at + bytes.len()), 0);
        whole[at..at + bytes.len()].copy_from_slice(&bytes);
        true
    }

    /// Lets everything on its way arrive.
    pub(crate) fn drive(&mut self) {
        loop {
            let mut moved = false;
            self.pump(Side::A);
            self.pump(Side::B);
            for side in [Side::A, Side::B] {
                moved |= self.step(side).expect("both ends keep the rules");
                moved |= self.step_body(side, 0);
            }
            if !moved {
                return;
            }
        }
    }
}

impl End {
    fn new(link: Link) -> Self {
        Self {
            link,
            frames: VecDeque::new(),
            bodies: Vec::new(),
            mailboxes: BTreeMap::from([(BOX, VecDeque::new())]),
            offered: BTreeMap::new(),
            read: Vec::new(),
            declined: Vec::new(),
            retracted: Vec::new(),
            gone: Vec::new(),
            credit_arrived: Vec::new(),
            pongs: Vec::new(),
            left: false,
            retracted_reading: Vec::new(),
            reading: None,
            expected: BTreeMap::new(),
        }
    }

    /// Asks for some more of the message that is read in parts, or else begins to read one so, if there is one.
    pub(crate) fn pull(&mut self, len: usize) {
        if self.reading.is_none() {
            let mailboxes = self.mailboxes.iter();
            let mut offered = mailboxes.filter(|(_, waiting)| {
                let first = waiting.front();
                first.is_some_and(|waiting| waiting.offer.is_some())
            });
            if let Some(mailbox) = offered.next().map(|(mailbox, _)| *mailbox) {
                self.take_out(mailbox, |_, _| ());
            }
        }
        let Some(reading) = &mut self.reading else {
            return;
        };
        let len = len.min(reading.len - reading.at);
        let pulled = self.link.pull(reading.offer, reading.at as u64, len as u32);
        self.expected
            .insert(pulled.unwrap(), (reading.read, reading.at));
        reading.at += len;
        if reading.at == reading.len {
            self.reading = None;
        }
    }

    /// Takes the next message out of a mailbox and asks for its body, or for the rest of one that is read in parts; whether there
    /// was one.
    pub(crate) fn take(&mut self, mailbox: MailboxId) -> bool {
        if self.reading.is_some() {
            self.pull(usize::MAX);
            return true;
        }
        self.take_out(mailbox, |end, reading| {
            let body = end.link.accept(reading.offer).unwrap();
            end.expected.insert(body, (reading.read, 0));
            end.reading = None;
        })
    }

    fn take_out(&mut self, mailbox: MailboxId, ask: impl FnOnce(&mut Self, Reading)) -> bool {
        let Some(waiting) = self
            .mailboxes
            .get_mut(&mailbox)
            .and_then(VecDeque::pop_front)
        else {
            return false;
        };
        self.link.consumed(mailbox, waiting.payload.len() as u64);
        if let Some(offer) = waiting.offer {
            let (read, at, len) = (self.read.len(), 0, waiting.body_len);
            let reading = || Reading {
                offer,
                read,
                at,
                len,
            };
            self.reading = Some(reading());
            ask(self, reading());
        }
        self.read.push(Read {
            mailbox,
            stream: waiting.stream,
            payload: waiting.payload,
            offer: waiting.offer,
            body: None,
        });
        true
    }

    pub(crate) fn close(&mut self, mailbox: MailboxId) {
        for waiting in self.mailboxes.remove(&mailbox).unwrap_or_default() {
            if let Some(offer) = waiting.offer {
                self.link.decline(offer);
            }
        }
        self.link.close_mailbox(mailbox);
    }

    /// The payloads read so far, in order.
    pub(crate) fn payloads(&self) -> Vec<&[u8]> {
        self.read.iter().map(|read| &read.payload[..]).collect()
    }

    /// Does what the link says about one frame; returns a body to send.
    pub(crate) fn handle(
        &mut self,
        bytes: &[u8],
    ) -> Result<Option<(BodyId, Vec<u8>)>, ProtocolError> {
        match self.link.handle_frame(Frame::decode(bytes)?)? {
            Action::Nothing | Action::Greeted | Action::Returned => {}
            Action::Deliver {
                to,
                stream,
                message,
            } => self.append(to, stream, message, None, 0),
            Action::Announce {
                to,
                stream,
                offer,
                head,
                body_len,
                ..
            } => self.append(to, stream, head, Some(offer), body_len as usize),
            Action::SendPart {
                offer,
                body,
                from,
                len,
            } => {
                let bytes = &self.offered[&offer][from as usize..][..len as usize];
                return Ok(Some((body, bytes.to_vec())));
            }
            Action::SendBody { offer, body } => {
                let bytes = self.offered.remove(&offer).unwrap();
                return Ok(Some((body, bytes)));
            }
            Action::OfferDeclined { offer } => {
                self.offered.remove(&offer).unwrap();
                self.declined.push(offer);
            }
            Action::Retracted { offer } => self.remove(offer),
            Action::CreditArrived { to } => self.credit_arrived.push(to),
            Action::MailboxGone { to, unread } => self.gone.push((to, unread)),
            Action::Pong { token } => self.pongs.push(token),
            Action::Left => self.left = true,
        }
        Ok(None)
    }

    fn append(
        &mut self,
        to: MailboxId,
        stream: StreamId,
        payload: &[u8],
        offer: Option<OfferId>,
        body_len: usize,
    ) {
        if let Some(mailbox) = self.mailboxes.get_mut(&to) {
            let payload = payload.to_vec();
            mailbox.push_back(Waiting {
                stream,
                payload,
                offer,
                body_len,
            });
            return;
        }
        if let Some(offer) = offer {
            self.link.decline(offer);
        }
        self.link.close_mailbox(to);
    }

    fn remove(&mut self, offer: OfferId) {
        let reading = self.reading.as_ref();
        if reading.is_some_and(|reading| reading.offer == offer) {
            self.reading = None;
            self.retracted_reading.push(offer);
        }
        for (&mailbox, waiting) in &mut self.mailboxes {
            let Some(place) = waiting.iter().position(|w| w.offer == Some(offer)) else {
                continue;
            };
            let waiting = waiting.remove(place).unwrap();
            self.link.consumed(mailbox, waiting.payload.len() as u64);
            self.retracted.push((mailbox, waiting.payload));
        }
    }
}
