//! One end: a session around a link, and the engine that has their bytes.

use std::collections::{BTreeMap, VecDeque};

use mizzen_proto::id::{BodyId, Incarnation, MailboxId, OfferId, ProcessId, Rank, StreamId};
use mizzen_proto::link::{Action, Link, LinkOptions, Plan};
use mizzen_proto::session::{
    ConnectionId, End as Ending, JobId, KeepRefused, Received, Session, SessionOptions, Stamp,
};
use mizzen_proto::time::Time;
use mizzen_proto::wire::Frame;

pub(super) const MAILBOX: MailboxId = MailboxId(7);
const STREAM: StreamId = StreamId(0);

/// A message that was accepted for sending.
pub(super) struct Posted {
    pub(super) serial: u64,
    pub(super) number: u64,
    pub(super) plan: Plan,
    pub(super) body: Vec<u8>,
}

impl std::fmt::Debug for Posted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let len = self.body.len();
        write!(
            f,
            "message {} as frame {}, {:?} of {len} bytes",
            self.serial, self.number, self.plan
        )
    }
}

/// A message that arrived.
struct Waiting {
    serial: u64,
    cost: u64,
    offer: Option<(OfferId, u64)>,
}

/// A place for a body, or for a part of one.
pub(super) struct Place {
    serial: u64,
    pub(super) at: u64,
    pub(super) len: u64,
    pub(super) filled: Vec<u8>,
    pub(super) connection: Option<ConnectionId>,
    pushed: bool,
}

pub(super) struct End {
    pub(super) session: Session,
    pub(super) link: Link,
    pub(super) kept: BTreeMap<u64, Vec<u8>>,
    held: Option<Vec<u8>>,
    /// What was sent at once, and has yet to be written.
    pub(super) sent: Option<(ConnectionId, Stamp)>,
    pub(super) posted: Vec<Posted>,
    offered: BTreeMap<OfferId, Vec<u8>>,
    pub(super) lent: BTreeMap<BodyId, Vec<u8>>,
    pub(super) places: BTreeMap<BodyId, Place>,
    mailbox: VecDeque<Waiting>,
    /// Serials in the order in which they came.
    pub(super) delivered: Vec<u64>,
    /// Numbers of all frames that came.
    pub(super) numbers: Vec<u64>,
    /// The bytes that came of each body, and where they belong.
    pub(super) bodies: BTreeMap<u64, BTreeMap<u64, Vec<u8>>>,
    pub(super) declined: Vec<OfferId>,
    pub(super) ended: Option<Ending>,
    pub(super) byes: usize,
    pub(super) is_leaving: bool,
}

pub(super) fn process(side: usize) -> ProcessId {
    ProcessId::new(Rank(side as u32 + 3), Incarnation(1))
}

pub(super) fn options(side: usize, seed: u64) -> SessionOptions {
    let (local, peer) = (process(side), process(1 - side));
    SessionOptions {
        kept_max: 140_000,
        ..SessionOptions::new(local, peer, JobId([9; 16]), seed ^ side as u64)
    }
}

impl End {
    pub(super) fn new(options: SessionOptions) -> Self {
        let link = LinkOptions {
            eager_max: 200,
            ..LinkOptions::new(options.local, options.peer)
        };
        Self {
            session: Session::new(options),
            link: Link::in_session(link),
            kept: BTreeMap::new(),
            held: None,
            sent: None,
            posted: Vec::new(),
            offered: BTreeMap::new(),
            lent: BTreeMap::new(),
            places: BTreeMap::new(),
            mailbox: VecDeque::new(),
            delivered: Vec::new(),
            numbers: Vec::new(),
            bodies: BTreeMap::new(),
            declined: Vec::new(),
            ended: None,
            byes: 0,
            is_leaving: false,
        }
    }

    /// Whether the message was accepted.
    pub(super) fn post(
        &mut self,
        serial: u64,
        pad: usize,
        body: usize,
        push: bool,
        now: Time,
    ) -> bool {
        self.pump(now);
        if self.held.is_some() {
            return false;
        }
        let mut head = vec![serial as u8; 8 + pad];
        head[..8].copy_from_slice(&serial.to_le_bytes());
        let body: Vec<u8> = (0..body).map(|at| (serial as usize + at) as u8).collect();
        let lens = (head.len() as u64, body.len() as u64);
        let plan = match push {
            true => self.link.post_or_push(MAILBOX, lens.0, lens.1),
            false => self.link.post(MAILBOX, lens.0, lens.1),
        };
        let Ok(plan) = plan else {
            return false;
        };
        let (to, stream, body_len) = (MAILBOX, STREAM, lens.1);
        let whole = [&head[..], &body].concat();
        let head = &head[..];
        let frame = match plan {
            Plan::Eager => Frame::Post {
                to,
                stream,
                message: &whole,
            },
            Plan::Offer(offer) => Frame::Offer {
                to,
                stream,
                offer,
                body_len,
                head,
            },
            Plan::Push(offer, _) => Frame::Push {
                to,
                stream,
                offer,
                body_len,
                head,
            },
        };
        let frame = frame.to_vec();
        // Half of them without a detour, when nothing is in their way.
        let is_direct = matches!(plan, Plan::Eager)
            && serial % 2 == 0
            && self.held.is_none()
            && self.session.is_ready();
        let number = if is_direct {
            let sent = self.session.keep_sent(frame.len() as u32, now);
            self.sent = sent.ok();
            sent.map(|(_, stamp)| stamp.number)
        } else {
            self.session.keep(frame.len() as u32, now)
        };
        let number = match number {
            Ok(number) => number,
            Err(_) => {
                self.link.undo_post(MAILBOX, lens.0, lens.1, plan);
                return false;
            }
        };
        self.kept.insert(number, frame);
        match plan {
            Plan::Eager => {}
            Plan::Offer(offer) => drop(self.offered.insert(offer, body.clone())),
            Plan::Push(_, name) => {
                self.lent.insert(name, body.clone());
                let push = Some(number);
                self.session.send_body(name, body_len, push, now).unwrap();
            }
        }
        self.posted.push(Posted {
            serial,
            number,
            plan,
            body,
        });
        true
    }

    pub(super) fn leave(&mut self, now: Time) {
        self.is_leaving = true;
        self.link.leave();
        self.pump(now);
    }

    /// Takes one message out of the mailbox; `how` says what becomes of an offered body. Whether there was one.
    pub(super) fn read(&mut self, how: usize, now: Time) -> bool {
        let Some(waiting) = self.mailbox.pop_front() else {
            return false;
        };
        self.link.consumed(MAILBOX, waiting.cost);
        if let Some((offer, len)) = waiting.offer {
            let half = len / 2;
            match how % 4 {
                0 => self.link.decline(offer),
                1 if half > 0 => {
                    for (at, len) in [(0, half), (half, len - half)] {
                        let body = self.link.pull(offer, at, len as u32).unwrap();
                        self.place(body, waiting.serial, at, len, false, now);
                    }
                }
                _ => {
                    let body = self.link.accept(offer).unwrap();
                    self.place(body, waiting.serial, 0, len, false, now);
                }
            }
        }
        self.pump(now);
        true
    }

    fn place(&mut self, body: BodyId, serial: u64, at: u64, len: u64, pushed: bool, now: Time) {
        let place = Place {
            serial,
            at,
            len,
            filled: Vec::new(),
            connection: None,
            pushed,
        };
        self.places.insert(body, place);
        self.session.expect_body(body, len, now).unwrap();
    }

    pub(super) fn body_received(&mut self, body: BodyId) {
        let place = self.places.remove(&body).unwrap();
        assert_eq!(place.filled.len() as u64, place.len);
        let parts = self.bodies.entry(place.serial).or_default();
        assert!(
            parts.insert(place.at, place.filled).is_none(),
            "a body came twice"
        );
        self.link.handle_body_received(body).unwrap();
        if place.pushed {
            self.link.taken(place.len);
        }
    }

    /// A connection is about to be no more: says how far its bodies came.
    pub(super) fn tell_progress(&mut self, connection: ConnectionId) {
        let of_it = |place: &Place| place.connection == Some(connection);
        let bodies: Vec<_> = self
            .places
            .iter()
            .filter(|(_, place)| of_it(place))
            .map(|(&body, _)| body)
            .collect();
        for body in bodies {
            let place = self.places.get_mut(&body).unwrap();
            place.connection = None;
            let filled = place.filled.len() as u64;
            if self.session.handle_body_progress(body, filled) {
                self.body_received(body);
            }
        }
    }

    pub(super) fn handle_received(&mut self, received: Received<'_>, now: Time) {
        match received {
            Received::Nothing => {}
            Received::Bye => {
                self.byes += 1;
                assert_eq!(self.link.handle_frame(Frame::Bye).unwrap(), Action::Left);
            }
            Received::Frame { number, frame } => {
                self.numbers.push(number);
                self.handle_frame(frame, now);
            }
        }
        self.pump(now);
    }

    fn handle_frame(&mut self, frame: &[u8], now: Time) {
        match self
            .link
            .handle_frame(Frame::decode(frame).unwrap())
            .unwrap()
        {
            Action::Deliver { message, .. } => self.append(message, None),
            Action::Announce {
                offer,
                body_len,
                head,
                pushed,
                ..
            } => {
                let serial = self.append(head, (!pushed).then_some((offer, body_len)));
                if pushed {
                    let body = self.link.accept(offer).unwrap();
                    self.place(body, serial, 0, body_len, true, now);
                }
                serial
            }
            Action::SendBody { offer, body } => self.lend(offer, body, 0, None, now),
            Action::SendPart {
                offer,
                body,
                from,
                len,
            } => self.lend(offer, body, from, Some(len), now),
            Action::OfferDeclined { offer } => {
                self.declined.push(offer);
                0
            }
            Action::Nothing | Action::CreditArrived { .. } | Action::Returned => 0,
            other => panic!("{other:?}"),
        };
    }

    fn append(&mut self, payload: &[u8], offer: Option<(OfferId, u64)>) -> u64 {
        let serial = u64::from_le_bytes(payload[..8].try_into().unwrap());
        self.delivered.push(serial);
        self.mailbox.push_back(Waiting {
            serial,
            cost: payload.len() as u64,
            offer,
        });
        serial
    }

    fn lend(
        &mut self,
        offer: OfferId,
        body: BodyId,
        from: u64,
        len: Option<u64>,
        now: Time,
    ) -> u64 {
        let whole = &self.offered[&offer];
        let len = len.unwrap_or(whole.len() as u64);
        let part = whole[from as usize..][..len as usize].to_vec();
        self.lent.insert(body, part);
        self.session.send_body(body, len, None, now).unwrap();
        0
    }

    /// Numbers what the link has to say.
    pub(super) fn pump(&mut self, now: Time) {
        loop {
            if self.held.is_none() {
                match self.link.poll_transmit() {
                    None => return,
                    Some(Frame::Bye) => {
                        self.session.leave(now);
                        continue;
                    }
                    Some(frame) => self.held = Some(frame.to_vec()),
                }
            }
            let frame = self.held.take().unwrap();
            match self.session.keep(frame.len() as u32, now) {
                Ok(number) => drop(self.kept.insert(number, frame)),
                Err(KeepRefused::Full) => {
                    self.held = Some(frame);
                    return;
                }
                // Nothing more can be said but bye.
                Err(KeepRefused::Exhausted) => {
                    self.is_leaving = true;
                    self.session.leave(now);
                }
                Err(_) => {}
            }
        }
    }
}
