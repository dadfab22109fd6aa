//! What lies between the simulated drivers: links, and what is on its way.
//!
//! A link exists here from the moment a dial arrives until one end gives it up; each end learns of both
//! through its arrivals, later. Arrivals from one peer are one queue, over all links with that peer, so
//! the end of an old link is always seen before the start of the next.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use fastrand::Rng;

use super::SimOptions;
use crate::{BodyId, ConnectFailure, Locator, LossReason, PeerId};

/// Which of the links that two processes had in turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LinkId(u64);

/// Something on its way to one end.
#[derive(Debug)]
pub(super) enum Packet {
    Up {
        dialled: bool,
    },
    Frame(Vec<u8>),
    Body {
        body: BodyId,
        bytes: Vec<u8>,
        last: Last,
    },
    Down(LossReason),
    Unanswered(ConnectFailure),
}

/// Whether a piece of a body is its last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Last {
    Yes,
    No,
}

#[derive(Debug)]
pub(super) struct Arrival {
    pub(super) peer: PeerId,
    pub(super) link: LinkId,
    pub(super) packet: Packet,
    due: u64,
}

#[derive(Debug)]
pub(super) struct Network {
    options: SimOptions,
    random: Rng,
    now: u64,
    next: u64,
    ends: BTreeMap<PeerId, End>,
    links: BTreeMap<Pair, LinkId>,
    delays: BTreeMap<Pair, u64>,
    dials: Vec<Dial>,
}

#[derive(Debug)]
struct End {
    attachment: u64,
    doorbell: Arc<OwnedFd>,
    refuses: bool,
    streams: BTreeMap<PeerId, Stream>,
}

/// What is on its way from one peer.
#[derive(Debug, Default)]
struct Stream {
    arrivals: VecDeque<Arrival>,
    bytes: usize,
    last_due: u64,
}

#[derive(Debug)]
struct Dial {
    from: PeerId,
    wanted: PeerId,
    target: PeerId,
    due: u64,
}

/// Two processes, the lower first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Pair(PeerId, PeerId);

impl Network {
    pub(super) fn new(options: SimOptions) -> Self {
        Self {
            random: Rng::with_seed(options.seed),
            options,
            now: 0,
            next: 1,
            ends: BTreeMap::new(),
            links: BTreeMap::new(),
            delays: BTreeMap::new(),
            dials: Vec::new(),
        }
    }

    pub(super) fn attach(&mut self, me: PeerId, doorbell: Arc<OwnedFd>) -> u64 {
        self.leave(me);
        let attachment = self.unique();
        self.ends.insert(
            me,
            End {
                attachment,
                doorbell,
                refuses: false,
                streams: BTreeMap::new(),
            },
        );
        attachment
    }

    pub(super) fn detach(&mut self, me: PeerId, attachment: u64) {
        if self.is_attached(me, attachment) {
            self.leave(me);
        }
    }

    pub(super) fn dial(&mut self, from: PeerId, wanted: PeerId, target: PeerId) {
        let due = self.now + self.delay(from, target);
        self.dials.push(Dial {
            from,
            wanted,
            target,
            due,
        });
    }

    /// Forgets everything between two processes, as asked for by `me`; the other learns of it.
    pub(super) fn disconnect(&mut self, me: PeerId, peer: PeerId) {
        self.dials
            .retain(|dial| (dial.from, dial.wanted) != (me, peer));
        if let Some(end) = self.ends.get_mut(&me) {
            end.streams.remove(&peer);
        }
        if let Some(link) = self.links.remove(&Pair::of(me, peer)) {
            self.push(me, peer, link, Packet::Down(LossReason::Closed));
        }
    }

    /// Puts a packet on the link, if the link still is.
    pub(super) fn send(&mut self, from: PeerId, to: PeerId, link: LinkId, packet: Packet) {
        if self.links.get(&Pair::of(from, to)) == Some(&link) {
            self.push(from, to, link, packet);
        }
    }

    pub(super) fn cut(&mut self, a: PeerId, b: PeerId) {
        let Some(link) = self.links.remove(&Pair::of(a, b)) else {
            return;
        };
        for (from, to) in [(a, b), (b, a)] {
            if let Some(stream) = self
                .ends
                .get_mut(&to)
                .and_then(|end| end.streams.get_mut(&from))
            {
                let on_link = stream
                    .arrivals
                    .iter()
                    .filter(|arrival| arrival.is_data_of(link))
                    .count();
                for _ in 0..self.random.usize(..=on_link) {
                    let last = stream
                        .arrivals
                        .pop_back()
                        .expect("one of the arrivals just counted");
                    stream.bytes -= last.packet.len();
                }
            }
            self.push(
                from,
                to,
                link,
                Packet::Down(LossReason::Broken(io::ErrorKind::ConnectionReset)),
            );
        }
    }

    pub(super) fn refuse(&mut self, peer: PeerId) {
        if let Some(end) = self.ends.get_mut(&peer) {
            end.refuses = true;
        }
    }

    pub(super) fn set_delay(&mut self, a: PeerId, b: PeerId, ticks: u64) {
        self.delays.insert(Pair::of(a, b), ticks);
    }

    /// Moves the clock by one tick and answers the dials that have arrived.
    pub(super) fn tick(&mut self) {
        self.now += 1;
        let now = self.now;
        let (due, later): (Vec<Dial>, _) = std::mem::take(&mut self.dials)
            .into_iter()
            .partition(|dial| dial.due <= now);
        self.dials = later;
        due.iter().for_each(|dial| self.answer(dial));
    }

    /// What has arrived at `me`, at most `budget` packets, from all peers in an order of chance.
    pub(super) fn take(&mut self, me: PeerId, attachment: u64, budget: usize) -> VecDeque<Arrival> {
        let mut taken = VecDeque::new();
        if !self.is_attached(me, attachment) {
            return taken;
        }
        let Some(end) = self.ends.get_mut(&me) else {
            return taken;
        };
        let mut peers: Vec<PeerId> = end.streams.keys().copied().collect();
        self.random.shuffle(&mut peers);
        let mut eased = Vec::new();
        for peer in peers {
            let Some(stream) = end.streams.get_mut(&peer) else {
                continue;
            };
            let batch = self.random.u64(1..=self.options.max_batch.max(1));
            for _ in 0..batch {
                if taken.len() == budget
                    || stream
                        .arrivals
                        .front()
                        .is_none_or(|first| first.due > self.now)
                {
                    break;
                }
                let Some(arrival) = stream.arrivals.pop_front() else {
                    break;
                };
                stream.bytes -= arrival.packet.len();
                taken.push_back(arrival);
                eased.push(peer);
            }
        }
        // There is room again: a sender may be asleep for want of it.
        eased.into_iter().for_each(|peer| self.ring(peer));
        taken
    }

    /// Whether anything is on its way to `me`, or a dial of it is unanswered.
    pub(super) fn is_awaited(&self, me: PeerId) -> bool {
        self.dials.iter().any(|dial| dial.from == me)
            || self
                .ends
                .get(&me)
                .is_some_and(|end| end.streams.values().any(|s| !s.arrivals.is_empty()))
    }

    pub(super) fn bytes_on_the_way(&self, from: PeerId, to: PeerId) -> usize {
        self.ends
            .get(&to)
            .and_then(|end| end.streams.get(&from))
            .map_or(0, |stream| stream.bytes)
    }

    pub(super) fn links(&self) -> usize {
        self.links.len()
    }

    pub(super) fn now(&self) -> u64 {
        self.now
    }

    pub(super) fn options(&self) -> &SimOptions {
        &self.options
    }

    pub(super) fn random(&mut self) -> &mut Rng {
        &mut self.random
    }

    fn is_attached(&self, me: PeerId, attachment: u64) -> bool {
        self.ends
            .get(&me)
            .is_some_and(|end| end.attachment == attachment)
    }

    fn answer(&mut self, dial: &Dial) {
        let pair = Pair::of(dial.from, dial.wanted);
        if self.links.contains_key(&pair) {
            // The other end's dial came first, and this one is answered by it.
            return;
        }
        let failure = match self.ends.get(&dial.target) {
            None => ConnectFailure::Unreachable(io::ErrorKind::ConnectionRefused),
            Some(end) if end.refuses || dial.target != dial.wanted => ConnectFailure::Rejected,
            Some(_) => {
                let link = LinkId(self.unique());
                self.links.insert(pair, link);
                for (to, dialled) in [(dial.wanted, false), (dial.from, true)] {
                    let from = if dialled { dial.wanted } else { dial.from };
                    self.push(from, to, link, Packet::Up { dialled });
                }
                return;
            }
        };
        let link = LinkId(self.unique());
        self.push(dial.wanted, dial.from, link, Packet::Unanswered(failure));
    }

    fn leave(&mut self, me: PeerId) {
        let peers: Vec<PeerId> = self
            .links
            .keys()
            .filter_map(|pair| pair.other(me))
            .collect();
        peers.into_iter().for_each(|peer| self.disconnect(me, peer));
        self.dials.retain(|dial| dial.from != me);
        self.ends.remove(&me);
    }

    fn push(&mut self, from: PeerId, to: PeerId, link: LinkId, packet: Packet) {
        let due = self.now + self.delay(from, to);
        let Some(end) = self.ends.get_mut(&to) else {
            return;
        };
        let stream = end.streams.entry(from).or_default();
        stream.last_due = stream.last_due.max(due);
        stream.bytes += packet.len();
        stream.arrivals.push_back(Arrival {
            peer: from,
            link,
            packet,
            due: stream.last_due,
        });
        self.ring(to);
    }

    fn delay(&mut self, from: PeerId, to: PeerId) -> u64 {
        match self.delays.get(&Pair::of(from, to)) {
            Some(&ticks) => ticks,
            None => self.random.u64(..=self.options.max_delay),
        }
    }

    fn ring(&self, peer: PeerId) {
        if let Some(end) = self.ends.get(&peer) {
            ring(&end.doorbell);
        }
    }

    fn unique(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}

impl Arrival {
    fn is_data_of(&self, link: LinkId) -> bool {
        self.link == link && matches!(self.packet, Packet::Frame(_) | Packet::Body { .. })
    }
}

impl Packet {
    fn len(&self) -> usize {
        match self {
            // Even an empty packet takes room, or there would be no bound on how many are on their way.
            Self::Frame(bytes) | Self::Body { bytes, .. } => bytes.len() + PACKET_OVERHEAD,
            Self::Up { .. } | Self::Down(_) | Self::Unanswered(_) => 0,
        }
    }
}

impl Pair {
    fn of(a: PeerId, b: PeerId) -> Self {
        Self(a.min(b), a.max(b))
    }

    fn other(self, me: PeerId) -> Option<PeerId> {
        match self {
            Self(a, b) if a == me => Some(b),
            Self(a, b) if b == me => Some(a),
            _ => None,
        }
    }
}

/// Makes a driver's wakeup readable.
pub(super) fn ring(doorbell: &OwnedFd) {
    // The only failure is a full counter, and a full counter is readable.
    let _ = rustix::io::write(doorbell, &1_u64.to_ne_bytes());
}

/// Makes a driver's wakeup quiet.
pub(super) fn hush(doorbell: &OwnedFd) {
    // The only failure is an empty counter, and an empty counter is quiet.
    let _ = rustix::io::read(doorbell, &mut [0_u8; 8]);
}

pub(super) fn locator_of(peer: PeerId) -> Locator {
    Locator::new(&format!("sim/{}", peer.0)).expect("`sim/` and a number are short and printable")
}

pub(super) fn peer_at(locator: &Locator) -> Option<PeerId> {
    locator
        .as_str()
        .strip_prefix("sim/")?
        .parse()
        .ok()
        .map(PeerId)
}

/// What a packet counts beyond its bytes.
const PACKET_OVERHEAD: usize = 16;
