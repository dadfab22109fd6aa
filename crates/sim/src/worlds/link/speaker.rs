//! A process that posts over [`Link`]s, reads what comes, and asks for bodies.

use std::collections::BTreeMap;
use std::time::Duration;

use mizzen_proto::credit::Credits;
use mizzen_proto::id::{BodyId, Incarnation, MailboxId, OfferId, ProcessId, Rank, StreamId};
use mizzen_proto::link::{Action, Link, LinkOptions, Plan, Refused};
use mizzen_proto::time::Time;
use mizzen_proto::wire::Frame;

use super::super::mesh::{DIAL_AGAIN, Mesh};
use crate::ids::{ConnectionId, MachineId, Place};
use crate::machine::{Context, Machine, Opened, Payload};

/// How many messages go to each mailbox over each link.
pub(super) const MESSAGES: u64 = 12;
pub(super) const MAILBOXES: u64 = 2;
/// Small, so that posts wait.
const WINDOW: Credits = Credits::new(4, 8 << 10);
const FRAME: usize = 2 << 10;
const EAGER: u64 = 512;

const DIAL: u64 = 0;
const WORK: u64 = 1;

/// What goes between drivers: frames, and bodies straight into place.
#[derive(Debug, Hash)]
pub(super) enum Wire {
    Frame(Vec<u8>),
    Body { body: u64, number: u64, len: u64 },
}

impl Payload for Wire {
    fn wire_len(&self) -> usize {
        match self {
            Wire::Frame(bytes) => bytes.len(),
            Wire::Body { len, .. } => *len as usize,
        }
    }
}

#[derive(Debug, Hash)]
pub(super) enum Note {
    Accepted(Place, u64, u64),
    Delivered(Place, u64, u64),
    /// A body arrived, or was declined.
    Body(Place, u64),
    /// Whether nothing is under way, when that changed.
    Idle(bool),
    Broken(String),
}

#[derive(Debug)]
pub(super) struct Speaker {
    pub(super) mesh: Mesh,
    me: ProcessId,
    links: BTreeMap<MachineId, Talk>,
    is_idle: bool,
}

/// One link, and what its two users have in hand.
#[derive(Debug)]
struct Talk {
    connection: ConnectionId,
    peer: Place,
    link: Link,
    /// Messages posted to each mailbox of the peer.
    posted: BTreeMap<MailboxId, u64>,
    /// Bodies of ours that wait to be asked for.
    offered: BTreeMap<OfferId, (u64, u64)>,
    /// What came and was not taken out of its mailbox.
    unread: Vec<Unread>,
    /// Bodies that were asked for, with the number of their message.
    expected: BTreeMap<BodyId, u64>,
}

#[derive(Debug)]
struct Unread {
    mailbox: MailboxId,
    bytes: u64,
    offer: Option<(OfferId, u64)>,
}

fn process(place: Place) -> ProcessId {
    ProcessId::new(Rank(place.machine.0), Incarnation(place.life.0))
}

/// The number of a message, unique on its link: mailbox and place in its order.
fn token(mailbox: MailboxId, number: u64) -> u64 {
    mailbox.0 << 32 | number
}

impl Talk {
    fn new(connection: ConnectionId, me: ProcessId, peer: Place) -> Self {
        let mut options = LinkOptions::new(me, process(peer));
        (options.frame_max, options.eager_max, options.window) = (FRAME, EAGER, WINDOW);
        Self {
            connection,
            peer,
            link: Link::new(options),
            posted: BTreeMap::new(),
            offered: BTreeMap::new(),
            unread: Vec::new(),
            expected: BTreeMap::new(),
        }
    }

    /// Sends what the link itself has to say.
    fn pump(&mut self, context: &mut Context<'_, Speaker>) {
        while let Some(frame) = self.link.poll_transmit() {
            context.send(self.connection, Wire::Frame(frame.to_vec()));
        }
    }

    fn post(&mut self, context: &mut Context<'_, Speaker>) {
        let to = MailboxId(1 + context.rng().u64(..MAILBOXES));
        let posted = self.posted.entry(to).or_default();
        if *posted >= MESSAGES {
            return;
        }
        let number = *posted + 1;
        let body_len = match context.rng().u32(..4) {
            0 => context.rng().u64(EAGER + 1..100_000),
            1 => context.rng().u64(1..EAGER / 2),
            _ => 0,
        };
        let head = token(to, number).to_le_bytes().to_vec();
        let stream = StreamId(0);
        let plan = match self.link.post(to, head.len() as u64, body_len) {
            Ok(plan) => plan,
            Err(Refused::NoCredit) => return context.sometimes("a post waited for credit"),
            Err(other) => return context.note(Note::Broken(other.to_string())),
        };
        *posted = number;
        let frame = match plan {
            Plan::Offer(offer) | Plan::Push(offer, _) => {
                self.offered.insert(offer, (token(to, number), body_len));
                Frame::Offer {
                    to,
                    stream,
                    offer,
                    body_len,
                    head: &head,
                }
                .to_vec()
            }
            Plan::Eager => {
                let mut message = head;
                message.resize(message.len() + body_len as usize, 7);
                let message = &message;
                Frame::Post {
                    to,
                    stream,
                    message,
                }
                .to_vec()
            }
        };
        context.note(Note::Accepted(self.peer, to.0, number));
        context.send(self.connection, Wire::Frame(frame));
    }

    /// Takes some messages out of their mailboxes.
    fn read(&mut self, context: &mut Context<'_, Speaker>) {
        let count = context.rng().usize(..=self.unread.len());
        for unread in self.unread.drain(..count) {
            if let Some((offer, number)) = unread.offer {
                if context.rng().u32(..8) == 0 {
                    self.link.decline(offer);
                    context.sometimes("a body was declined");
                    context.note(Note::Body(self.peer, number));
                } else if let Ok(body) = self.link.accept(offer) {
                    self.expected.insert(body, number);
                }
            }
            self.link.consumed(unread.mailbox, unread.bytes);
        }
    }

    fn handle_frame(&mut self, bytes: &[u8], context: &mut Context<'_, Speaker>) {
        let frame = Frame::decode(bytes);
        let action = frame.and_then(|frame| self.link.handle_frame(frame));
        let (to, bytes, message, offer) = match action {
            Err(error) => return context.note(Note::Broken(error.to_string())),
            Ok(Action::Deliver { to, message, .. }) => (to, message.len(), message, None),
            Ok(Action::Announce {
                to, offer, head, ..
            }) => (to, head.len(), head, Some(offer)),
            Ok(Action::SendBody { offer, body }) => {
                return self.send_body(offer, body, context);
            }
            Ok(Action::OfferDeclined { offer }) => {
                self.offered.remove(&offer);
                return;
            }
            Ok(_) => return,
        };
        let head = message[..8].try_into().map_or(0, u64::from_le_bytes);
        self.unread.push(Unread {
            mailbox: to,
            bytes: bytes as u64,
            offer: offer.map(|offer| (offer, head)),
        });
        let number = head & 0xffff_ffff;
        context.note(Note::Delivered(self.peer, to.0, number));
    }

    fn send_body(&mut self, offer: OfferId, body: BodyId, context: &mut Context<'_, Speaker>) {
        let Some((number, len)) = self.offered.remove(&offer) else {
            return context.note(Note::Broken(format!("offer {offer} was asked for twice")));
        };
        let body = body.0;
        context.send(self.connection, Wire::Body { body, number, len });
        if let Err(error) = self.link.handle_body_sent(BodyId(body)) {
            context.note(Note::Broken(error.to_string()));
        }
    }

    fn handle_body(&mut self, body: BodyId, number: u64, context: &mut Context<'_, Speaker>) {
        let wanted = self.expected.remove(&body);
        let known = self.link.handle_body_received(body);
        if known.is_err() || wanted != Some(number) {
            let sentence = format!("body {body} of message {number:x} came, not {wanted:x?}");
            return context.note(Note::Broken(sentence));
        }
        context.sometimes("a body arrived");
        context.note(Note::Body(self.peer, number));
    }

    fn is_idle(&self) -> bool {
        let all_posted =
            (1..=MAILBOXES).all(|to| self.posted.get(&MailboxId(to)) == Some(&MESSAGES));
        all_posted && self.unread.is_empty() && self.expected.is_empty() && self.offered.is_empty()
    }
}

impl Speaker {
    pub(super) fn new(place: Place, size: u32) -> Self {
        Self {
            mesh: Mesh::new(size),
            me: process(place),
            links: BTreeMap::new(),
            is_idle: true,
        }
    }
}

impl Machine for Speaker {
    type Message = Wire;
    type Note = Note;

    fn start(&mut self, context: &mut Context<'_, Self>) {
        context.set_timer(DIAL, Time(0));
        context.set_timer(WORK, Time(0));
    }

    fn receive(&mut self, from: ConnectionId, message: Wire, context: &mut Context<'_, Self>) {
        let Some(peer) = self.mesh.peer_of(from) else {
            return;
        };
        let Some(talk) = self.links.get_mut(&peer.machine) else {
            return;
        };
        match message {
            Wire::Frame(bytes) => talk.handle_frame(&bytes, context),
            Wire::Body { body, number, .. } => talk.handle_body(BodyId(body), number, context),
        }
        talk.pump(context);
    }

    fn timer(&mut self, key: u64, context: &mut Context<'_, Self>) {
        if key == DIAL {
            self.mesh.dial(context);
            return context.set_timer(DIAL, context.now() + DIAL_AGAIN);
        }
        let mut is_idle = true;
        for talk in self.links.values_mut() {
            for _ in 0..context.rng().u32(..4) {
                talk.post(context);
            }
            talk.read(context);
            talk.pump(context);
            is_idle &= talk.is_idle();
        }
        if std::mem::replace(&mut self.is_idle, is_idle) != is_idle {
            context.note(Note::Idle(is_idle));
        }
        let most = if is_idle { 2000 } else { 400 };
        let wait = Duration::from_millis(context.rng().u64(most / 8..most));
        context.set_timer(WORK, context.now() + wait);
    }

    fn connected(
        &mut self,
        connection: ConnectionId,
        peer: Place,
        _: Opened,
        context: &mut Context<'_, Self>,
    ) {
        let met = self.mesh.connected(connection, peer, context);
        if let Some(peer) = met.peer {
            let mut talk = Talk::new(connection, self.me, peer);
            talk.pump(context);
            self.links.insert(peer.machine, talk);
        }
    }

    fn lost(&mut self, connection: ConnectionId, _: &mut Context<'_, Self>) {
        if let Some(gone) = self.mesh.lost(connection) {
            self.links.remove(&gone.machine);
        }
    }

    fn refused(&mut self, connection: ConnectionId, to: MachineId, _: &mut Context<'_, Self>) {
        self.mesh.refused(connection, to);
    }
}
