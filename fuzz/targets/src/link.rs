//! The protocol of one link: a hostile peer's frames on one side, and an engine that makes use of everything on the other.

use mizzen_proto::credit::{Credits, WINDOW};
use mizzen_proto::id::{
    BodyId, Incarnation, MailboxId, OfferId, PingToken, ProcessId, Rank, StreamId,
};
use mizzen_proto::link::{
    Action, BODIES_MAX, Direction, GONE_MAX, Link, LinkOptions, OFFERS_MAX, PULLS_MAX, Plan,
};
use mizzen_proto::wire::{BODY_MAX, Frame, PUSH_MAX, VERSION};

use crate::tape::Tape;

const ME: ProcessId = ProcessId::new(Rank(0), Incarnation(0));
const PEER: ProcessId = ProcessId::new(Rank(1), Incarnation(0));
/// Mailboxes of ours are numbered from 0, and there are as many; we post to as many of the peer's.
const MAILBOXES: u64 = 4;
/// Steps of one input: a burst counts as one.
const STEPS: usize = 256;
/// Frames of all bursts of one input: enough to be beyond every limit at once.
const BURSTS: usize = 3 * 2048;

/// Our offers, the peer's, and the peer's bodies that we asked for or that came unasked: each has its limit.
const OFFERS_BOUND: usize = 2 * OFFERS_MAX + 2 * BODIES_MAX;
/// Mailboxes of ours, those of the peer that we post to, and those that we know to be gone.
const MAILBOXES_BOUND: usize = 2 * MAILBOXES as usize + GONE_MAX;

/// A good hello, and then events: a byte that says what, and what it needs.
pub fn run(data: &[u8]) {
    let mut tape = Tape::new(data);
    let mut engine = Engine::new();
    let hello = Frame::Hello {
        version: VERSION,
        from: PEER,
        to: ME,
        window: WINDOW,
    };
    let mut alive = tape.byte() == 0 || engine.handle(hello);
    for _ in 0..STEPS {
        if !alive || tape.is_over() {
            break;
        }
        alive = engine.step(&mut tape);
        engine.check();
    }
    let open = engine.link.handle_lost();
    let bodies = open.sending.len() + open.receiving.len();
    assert!(open.offered.len() + open.announced.len() + bodies <= OFFERS_BOUND + PULLS_MAX);
}

struct Engine {
    link: Link,
    /// The peer's offers that wait in mailboxes: number, length of the body, whether it comes unasked.
    waiting: Vec<(OfferId, u64, bool)>,
    receiving: Vec<(BodyId, u64)>,
    /// The peer's offers that are read in parts: number, where the next part begins, length of the body.
    pulled: Vec<(OfferId, u64, u64)>,
    parts: Vec<BodyId>,
    /// Our offers that the peer reads in parts.
    pulled_by_peer: Vec<OfferId>,
    offered: Vec<OfferId>,
    sending: Vec<BodyId>,
    /// Messages in our mailboxes.
    held: Vec<(MailboxId, u64)>,
    last_offer: u64,
    last_body: u64,
    bursts_left: usize,
}

impl Engine {
    fn new() -> Self {
        let mut link = Link::new(LinkOptions::new(ME, PEER));
        // As the engine does: the hello is on its way before anything else.
        let hello = link.poll_transmit();
        assert!(matches!(hello, Some(Frame::Hello { .. })));
        Self {
            link,
            waiting: Vec::new(),
            receiving: Vec::new(),
            pulled: Vec::new(),
            parts: Vec::new(),
            pulled_by_peer: Vec::new(),
            offered: Vec::new(),
            sending: Vec::new(),
            held: Vec::new(),
            last_offer: 0,
            last_body: 0,
            bursts_left: BURSTS,
        }
    }

    fn check(&self) {
        let (offers, mailboxes) = (self.link.offers_open(), self.link.mailboxes_tracked());
        assert!(offers <= OFFERS_BOUND, "{offers} offers");
        assert!(mailboxes <= MAILBOXES_BOUND, "{mailboxes} mailboxes");
        assert!(self.held.len() <= MAILBOXES as usize * WINDOW.messages as usize);
    }

    /// Whether the link lives.
    fn step(&mut self, tape: &mut Tape<'_>) -> bool {
        match tape.byte() % 25 {
            0 => match Frame::decode(tape.bytes()) {
                Ok(frame) => return self.handle(frame),
                Err(_) => return false,
            },
            1..=4 => return self.theirs(tape.byte(), tape),
            5 => {
                // The same again and again, with the numbers that an honest peer would use.
                let (times, kind) = (tape.short() % 2048, tape.byte());
                let rest = tape.bytes();
                let times = usize::from(times).min(self.bursts_left);
                self.bursts_left -= times;
                for _ in 0..times {
                    if !self.theirs(kind, &mut Tape::new(rest)) {
                        return false;
                    }
                    if kind & 0x80 != 0 {
                        self.accept(usize::MAX);
                    }
                    self.transmit(4);
                }
            }
            6..=8 => self.post(tape),
            9 => {
                if let Some(offer) = pick(&mut self.offered, tape) {
                    self.link.retract(offer);
                    self.offered.push(offer);
                } else if let Some(offer) = self.pulled_by_peer.last() {
                    self.link.retract(*offer);
                }
            }
            10 => self.accept(usize::from(tape.byte())),
            24 => self.pull(tape),
            11 => {
                if let Some((body, len)) = pick(&mut self.receiving, tape) {
                    match self.link.withdraw(body) {
                        Ok(offer) => self.waiting.push((offer, len, Link::is_pushed(body))),
                        Err(_) => self.receiving.push((body, len)),
                    }
                }
            }
            12 => {
                if let Some((offer, len, pushed)) = pick(&mut self.waiting, tape) {
                    self.link.decline(offer);
                    if pushed {
                        self.waiting.push((offer, len, pushed));
                    }
                }
            }
            13 | 14 => {
                if let Some((mailbox, len)) = pick(&mut self.held, tape) {
                    self.link.consumed(mailbox, len);
                }
            }
            15 => self.close(MailboxId(tape.number() % (2 * MAILBOXES))),
            16 => self.link.ping(PingToken(tape.number())),
            17 => self.link.leave(),
            18 => {
                if let Some(body) = pick(&mut self.sending, tape) {
                    let sent = self.link.handle_body_sent(body);
                    let ended = sent.map(|offer| self.link.has_ended(offer));
                    assert!(ended.is_ok());
                    assert!(self.link.handle_body_sent(body).is_err());
                }
            }
            19 => {
                if let Some((body, len)) = pick(&mut self.receiving, tape) {
                    assert!(self.link.handle_body_received(body).is_ok());
                    if Link::is_pushed(body) {
                        self.link.taken(len);
                    }
                } else if let Some(body) = pick(&mut self.parts, tape) {
                    assert!(self.link.handle_body_received(body).is_ok());
                }
            }
            20 => {
                if let Some(body) = pick(&mut self.sending, tape) {
                    let failed = self.link.handle_body_failed(body, Direction::Outgoing);
                    assert!(failed.is_ok());
                }
            }
            21 => {
                // The driver names a body that comes unasked, or anything.
                let body = BodyId(tape.number() | 1 << 63);
                let known = self.link.waiting(body);
                assert!(known.is_none_or(|offer| self.waiting.iter().any(|one| one.0 == offer)));
                let unknown = BodyId(tape.number());
                let is_part = self.parts.contains(&unknown);
                if !is_part && !self.receiving.iter().any(|(body, _)| *body == unknown) {
                    assert!(self.link.handle_body_received(unknown).is_err());
                }
            }
            _ => self.transmit(usize::from(tape.byte())),
        }
        true
    }

    /// A frame of the peer that is well-formed, and nearly right.
    fn theirs(&mut self, kind: u8, tape: &mut Tape<'_>) -> bool {
        static ZEROS: [u8; 1024] = [0; 1024];
        let to = MailboxId(tape.number());
        let payload = &ZEROS[..tape.number() as usize % ZEROS.len()];
        let stream = StreamId(0);
        let offer = OfferId(self.last_offer.wrapping_add(tape.number()).wrapping_add(1));
        let answered = match tape.byte() {
            0 => OfferId(tape.number()),
            index => match self.offered.get(usize::from(index - 1)) {
                Some(offer) => *offer,
                None => OfferId(tape.number()),
            },
        };
        let body_len = tape.number();
        let frame = match kind & 0x7f {
            0 | 13 => Frame::Post {
                to,
                stream,
                message: payload,
            },
            1 => Frame::Offer {
                to,
                stream,
                offer,
                body_len: body_len.clamp(1, BODY_MAX),
                head: payload,
            },
            2 | 14 => Frame::Push {
                to,
                stream,
                offer,
                body_len: body_len.clamp(1, PUSH_MAX),
                head: payload,
            },
            3 => Frame::Returned { bytes: body_len },
            4 => Frame::Accept {
                offer: answered,
                body: BodyId(self.last_body.wrapping_add(tape.number()).wrapping_add(1)),
            },
            5 => Frame::Decline { offer: answered },
            6 => Frame::Retract { offer: answered },
            7 => Frame::Credit {
                to,
                credits: Credits::new(tape.number() as u32, body_len),
            },
            8 => Frame::Gone {
                mailbox: MailboxId(to.0.wrapping_add(self.last_offer)),
            },
            9 => Frame::Bye,
            10 => Frame::Ping {
                token: PingToken(body_len),
            },
            11 => Frame::Pong {
                token: PingToken(body_len),
            },
            12 => Frame::Pull {
                offer: answered,
                body: BodyId(self.last_body.wrapping_add(tape.number()).wrapping_add(1)),
                from: tape.number(),
                len: (body_len as u32).max(1),
            },
            _ => Frame::Gone { mailbox: to },
        };
        if kind & 0x7f == 8 {
            // So that a burst names ever new mailboxes.
            self.last_offer = self.last_offer.wrapping_add(1);
        }
        let bytes = frame.to_vec();
        match Frame::decode(&bytes) {
            Ok(decoded) => self.handle(decoded),
            Err(_) => false,
        }
    }

    fn handle(&mut self, frame: Frame<'_>) -> bool {
        let Ok(action) = self.link.handle_frame(frame) else {
            return false;
        };
        match action {
            Action::Deliver { to, message, .. } => self.deliver(to, message.len()),
            Action::Announce {
                to,
                offer,
                body_len,
                head,
                pushed,
                ..
            } => {
                self.last_offer = offer.0;
                if to.0 < MAILBOXES || pushed {
                    self.waiting.push((offer, body_len, pushed));
                } else {
                    self.link.decline(offer);
                }
                self.deliver(to, head.len());
            }
            Action::SendBody { offer, body } => {
                let known = self.offered.iter().position(|one| *one == offer);
                self.offered.swap_remove(known.expect("an offer of ours"));
                self.sending.push(body);
                self.last_body = body.0;
            }
            Action::SendPart {
                offer,
                body,
                from,
                len,
            } => {
                assert!(len > 0 && from + len <= BODY_MAX);
                if let Some(known) = self.offered.iter().position(|one| *one == offer) {
                    self.pulled_by_peer.push(self.offered.swap_remove(known));
                }
                assert!(self.pulled_by_peer.contains(&offer), "an offer of ours");
                assert!(!self.link.has_ended(offer));
                self.sending.push(body);
                self.last_body = body.0;
            }
            Action::OfferDeclined { offer } => {
                let known = self.offered.iter().position(|one| *one == offer);
                match known {
                    Some(known) => drop(self.offered.swap_remove(known)),
                    None => assert!(self.pulled_by_peer.contains(&offer), "an offer of ours"),
                }
                assert!(self.link.has_ended(offer));
            }
            Action::Retracted { offer } => {
                self.waiting.retain(|(other, _, _)| *other != offer);
                self.pulled.retain(|(other, _, _)| *other != offer);
            }
            _ => (),
        }
        true
    }

    fn deliver(&mut self, to: MailboxId, len: usize) {
        if to.0 < MAILBOXES {
            self.held.push((to, len as u64));
        } else {
            self.link.close_mailbox(to);
        }
    }

    fn post(&mut self, tape: &mut Tape<'_>) {
        let to = MailboxId(tape.number() % MAILBOXES);
        let (head, body) = (tape.number(), tape.number());
        let how = tape.byte();
        let plan = if how & 1 == 0 {
            self.link.post(to, head, body)
        } else {
            self.link.post_or_push(to, head, body)
        };
        let Ok(plan) = plan else { return };
        if how & 2 != 0 {
            return self.link.undo_post(to, head, body, plan);
        }
        match plan {
            Plan::Eager => (),
            Plan::Offer(offer) => self.offered.push(offer),
            Plan::Push(_, body) => self.sending.push(body),
        }
    }

    /// Asks for some of a body that was not asked for whole.
    fn pull(&mut self, tape: &mut Tape<'_>) {
        let (offer, at, len) = match self.pulled.pop() {
            Some(pulled) => pulled,
            None => match pick(&mut self.waiting, tape) {
                Some((offer, len, false)) => (offer, 0, len),
                Some(pushed) => return self.waiting.push(pushed),
                None => return,
            },
        };
        let from = at + tape.number() % (len - at);
        let count = (len - from).min(tape.number().clamp(1, u64::from(u32::MAX)));
        match self.link.pull(offer, from, count as u32) {
            Ok(body) if tape.byte() == 0 => {
                let withdrawn = self.link.withdraw(body);
                assert_eq!(withdrawn, Ok(offer));
                self.pulled.push((offer, from, len));
            }
            Ok(body) if tape.byte() == 0 && from + count < len => {
                self.parts.push(body);
                self.link.decline(offer);
            }
            Ok(body) => {
                self.parts.push(body);
                if from + count < len {
                    self.pulled.push((offer, from + count, len));
                }
            }
            Err(_) => (),
        }
    }

    fn accept(&mut self, index: usize) {
        if self.waiting.is_empty() {
            return;
        }
        let (offer, len, pushed) = self.waiting.swap_remove(index % self.waiting.len());
        match self.link.accept(offer) {
            Ok(body) => {
                assert_eq!(Link::is_pushed(body), pushed);
                self.receiving.push((body, len));
            }
            Err(_) => self.waiting.push((offer, len, pushed)),
        }
    }

    fn close(&mut self, mailbox: MailboxId) {
        // What it held is gone; each is told as read, late.
        self.link.close_mailbox(mailbox);
        let (gone, held) = self.held.iter().partition(|(of, _)| *of == mailbox);
        self.held = held;
        for (mailbox, len) in Vec::<(MailboxId, u64)>::from_iter(gone) {
            self.link.consumed(mailbox, len);
        }
    }

    fn transmit(&mut self, most: usize) {
        for _ in 0..most {
            let Some(frame) = self.link.poll_transmit() else {
                return;
            };
            assert_eq!(Frame::decode(&frame.to_vec()), Ok(frame));
        }
    }
}

fn pick<T>(from: &mut Vec<T>, tape: &mut Tape<'_>) -> Option<T> {
    let index = usize::from(tape.byte());
    (!from.is_empty()).then(|| from.swap_remove(index % from.len()))
}
