//! The driver: its calls and its poll loop.
//!
//! This file has unsafe code because it implements the lending functions of [`Driver`].
#![allow(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use mizzen_driver::{
    BodyId, Caps, ConnectError, Driver, DriverError, Event, Gather, Locator, LossReason, Part,
    PartMut, PeerId, Refused, Scatter,
};

use crate::addresses::{addresses_in, in_order, interfaces, locator_of};
use crate::connection::{Connection, Turn};
use crate::dial::Dial;
use crate::far::Far;
use crate::handshake::Greeting;
use crate::header::{Asked, MAX_FRAME};
use crate::knock::Knocks;
use crate::listener::{describe, listen};
use crate::liveness::{PULSE_INTERVAL, Pulse, pulse};
use crate::options::{OpenError, TcpOptions};
use crate::poller::{Poller, Ready, Source};
use crate::receive::Pool;
use crate::security::Security;
use crate::send::Flushed;
use crate::slots::{Key, Slots};
use crate::through::Through;

/// One process's attachment to a TCP network.
///
/// ```
/// use std::sync::Arc;
/// use mizzen_driver::{Driver, Event, PeerId};
/// use mizzen_identity::{Authority, Identity};
/// use mizzen_tcp::{Security, TcpDriver, TcpOptions};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let authority = Authority::new("lab", [7; 16])?;
/// let driver = |rank: u32| -> Result<TcpDriver, Box<dyn std::error::Error>> {
///     let ours = authority.credentials(&Identity::new("lab", [7; 16], rank, 0)?)?;
///     let (client, server) = (ours.client_config(), ours.server_config());
///     let identify = move |connection: &_| Some(PeerId(ours.peer(connection).ok()?.rank().into()));
///     let security = Security::new(client, server, Arc::new(identify));
///     let options = TcpOptions::new(PeerId(rank.into()), security);
///     Ok(TcpDriver::new(options.listen("127.0.0.1:0".parse()?))?)
/// };
/// let (mut one, mut two) = (driver(1)?, driver(2)?);
/// one.connect(PeerId(2), two.locator())?;
///
/// let mut links = 0;
/// while links < 2 {
///     for driver in [&mut one, &mut two] {
///         driver.poll(16, &mut |event| links += usize::from(matches!(event, Event::Connected { .. })))?;
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct TcpDriver {
    pub(crate) me: PeerId,
    pub(crate) security: Security,
    pub(crate) hello_patience: Duration,
    pub(crate) dial_patience: Duration,
    pub(crate) far: Option<Far>,
    pub(crate) through: Option<Through>,
    caps: Caps,
    locator: Locator,
    pub(crate) poller: Poller,
    pub(crate) listener: OwnedFd,
    /// Whether somebody may be waiting to be accepted.
    pub(crate) has_callers: bool,
    /// When to look again, after there was no descriptor for somebody.
    pub(crate) accept_again: Option<Instant>,
    pub(crate) connections: Slots<Who>,
    /// Those who dialled us and have yet to say hello, by the end of our patience.
    pub(crate) strangers: BTreeSet<(Instant, Key)>,
    /// Our own dials under way, by the end of our patience.
    pub(crate) attempts: BTreeSet<(Instant, Key)>,
    pub(crate) peers: BTreeMap<PeerId, Peer>,
    /// To be reported before anything more is read.
    pub(crate) events: VecDeque<Event<'static>>,
    /// Links with something to do, in the order of their turns.
    turns: VecDeque<Key>,
    /// Links on which something may be unacknowledged, and when to look at them.
    watched: Vec<Key>,
    pub(crate) pulse_at: Option<Instant>,
    pub(crate) knocks: Knocks,
    pool: Pool,
    harvest: Vec<Ready>,
    /// The link that had something last, and how often only it was looked at since all were.
    hot: Option<Key>,
    hot_looks: u32,
    serial: u64,
}

/// What is on a connection.
#[derive(Debug)]
pub(crate) enum Who {
    Greeting(Greeting),
    Linked(Box<Connection>),
}

/// How far we are with a peer.
#[derive(Debug)]
pub(crate) enum Peer {
    Dialling(Dial),
    Linked(Key),
}

impl TcpDriver {
    /// Listens, and is ready to connect and be connected.
    ///
    /// # Errors
    ///
    /// If it cannot listen at the address, or the system refuses a descriptor.
    pub fn new(options: TcpOptions) -> Result<Self, OpenError> {
        let system = |cause| OpenError::System { cause };
        let TcpOptions {
            me,
            security,
            listen: address,
            offered,
            far,
            through,
            hello_patience,
            dial_patience,
        } = options;
        let (listener, bound) =
            listen(address).map_err(|cause| OpenError::Listen { address, cause })?;
        let poller = Poller::new().map_err(system)?;
        poller.watch_listener(&listener).map_err(system)?;
        // A later life of this process must have greater serials: the clock sees to that.
        let serial = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |age| age.as_nanos() as u64);
        let mut caps = Caps::least();
        caps.max_frame = MAX_FRAME;
        caps.max_body = MAX_BODY;
        caps.max_parts = MAX_PARTS;
        caps.max_bodies = MAX_BODIES;
        caps.can_sleep = true;
        caps.can_push = true;
        Ok(Self {
            me,
            security,
            hello_patience,
            dial_patience,
            far,
            through,
            caps,
            locator: locator_of(bound, &offered).map_err(system)?,
            poller,
            listener,
            has_callers: false,
            accept_again: None,
            connections: Slots::new(),
            strangers: BTreeSet::new(),
            attempts: BTreeSet::new(),
            peers: BTreeMap::new(),
            events: VecDeque::new(),
            turns: VecDeque::new(),
            watched: Vec::new(),
            pulse_at: None,
            knocks: Knocks::default(),
            pool: Pool::default(),
            harvest: Vec::new(),
            hot: None,
            hot_looks: 0,
            serial,
        })
    }

    /// Breaks the link to `peer` underneath, as a failing network would: both ends report it as lost.
    ///
    /// For tests of what lies above. Without a link it does nothing.
    pub fn sever(&mut self, peer: PeerId) {
        if let Ok(link) = self.link(peer) {
            // A connection that is broken already needs no breaking.
            let _ = rustix::net::shutdown(&link.wire, rustix::net::Shutdown::Both);
        }
    }

    /// How many connections have yet to say who they are.
    #[must_use]
    pub fn strangers(&self) -> usize {
        self.strangers.len()
    }

    pub(crate) fn next_serial(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    pub(crate) fn watch(&mut self, key: Key) -> io::Result<()> {
        match self.connections.get_mut(key) {
            Some(Who::Greeting(greeting)) => self.poller.watch(&greeting.socket, key),
            Some(Who::Linked(link)) => self.poller.watch(&link.wire, key),
            None => Ok(()),
        }
    }

    /// Gives a link a turn at the next poll.
    pub(crate) fn enqueue(&mut self, key: Key) {
        if let Some(Who::Linked(link)) = self.connections.get_mut(key) {
            if !link.is_queued {
                link.is_queued = true;
                self.turns.push_back(key);
            }
        }
    }

    pub(crate) fn lose(&mut self, key: Key, reason: LossReason) {
        if let Some(Who::Linked(link)) = self.connections.remove(key) {
            self.peers.remove(&link.peer);
            if let Some(from) = link.from.filter(|_| reason == LossReason::Silent) {
                self.knocks.begin(from, Instant::now());
            }
            link.close(reason, |event| self.events.push_back(event));
        }
    }

    /// The link to a peer, if the caller knows of it.
    #[inline]
    fn link(&mut self, peer: PeerId) -> Result<&mut Connection, Refused> {
        let refused = Refused::NotConnected { peer };
        let Some(&Peer::Linked(key)) = self.peers.get(&peer) else {
            return Err(refused);
        };
        match self.connections.get_mut(key) {
            Some(Who::Linked(link)) if link.is_reported => Ok(link),
            _ => Err(refused),
        }
    }

    fn key(&self, peer: PeerId) -> Option<Key> {
        match self.peers.get(&peer) {
            Some(&Peer::Linked(key)) => Some(key),
            _ => None,
        }
    }

    /// Writes what it can of a link at once, rather than at the next poll.
    fn flush_now(&mut self, peer: PeerId) {
        let Some(key) = self.key(peer) else {
            return;
        };
        let Some(Who::Linked(link)) = self.connections.get_mut(key) else {
            return;
        };
        let flushed = link.flush(|event| self.events.push_back(event));
        if flushed == Flushed::More || link.sender.failure().is_some() {
            self.enqueue(key);
        }
        self.watch_answers(key);
        self.settle();
    }

    /// Has a body sent.
    ///
    /// # Safety
    ///
    /// As for [`Driver::send_body`].
    unsafe fn give_body(
        &mut self,
        peer: PeerId,
        body: BodyId,
        parts: &[Part],
        asked: Asked,
    ) -> Result<(), Refused> {
        let link = self.link(peer)?;
        check(parts.len(), parts.iter().map(Part::len))?;
        link.sender.check_body(body, MAX_BODIES)?;
        // SAFETY: the caller's promise lasts until line 17 of the contract frees the parts. The gather is
        // dropped when its last piece is written, before `BodySent`; with the link, by `Connection::close`
        // before `BodyFailed` and `Lost`, or by `disconnect`; or with the driver.
        let source = unsafe { Gather::new(parts) };
        link.sender.send_body(body, source, asked);
        self.flush_now(peer);
        Ok(())
    }

    /// Looks after a link from now on, if something was written to it.
    fn watch_answers(&mut self, key: Key) {
        let Some(Who::Linked(link)) = self.connections.get_mut(key) else {
            return;
        };
        if link.sender.poll_written() && !link.is_watched {
            link.is_watched = true;
            self.watched.push(key);
            if self.pulse_at.is_none() {
                self.pulse_at = Some(Instant::now() + PULSE_INTERVAL);
            }
            self.settle();
        }
    }

    /// Looks, when it is time, whether the peers that were sent something answer.
    fn take_pulses(&mut self, now: Instant) {
        if self.pulse_at.is_none_or(|at| at > now) {
            return;
        }
        for key in std::mem::take(&mut self.watched) {
            let Some(Who::Linked(link)) = self.connections.get_mut(key) else {
                continue;
            };
            match pulse(link.wire.as_fd()) {
                Ok(Pulse::Alive) => self.watched.push(key),
                Ok(Pulse::Idle) => link.is_watched = false,
                Ok(Pulse::Silent) => self.lose(key, LossReason::Silent),
                // It cannot be asked any more, so the read that follows will say why.
                Err(_) => self.enqueue(key),
            }
        }
        self.pulse_at = (!self.watched.is_empty()).then(|| now + PULSE_INTERVAL);
    }

    /// Takes notice of what the network has to say.
    fn handle_network(&mut self) -> io::Result<()> {
        let mut harvest = std::mem::take(&mut self.harvest);
        let outcome = self.poller.harvest(&mut harvest);
        for ready in harvest.drain(..) {
            match ready.source {
                Source::Listener => self.has_callers = true,
                Source::Connection(key) => match self.connections.get_mut(key) {
                    Some(Who::Greeting(_)) => self.handle_greeting(key, ready),
                    Some(Who::Linked(link)) => {
                        link.handle_ready(ready);
                        self.enqueue(key);
                    }
                    // Closed since it became ready.
                    None => {}
                },
            }
        }
        self.harvest = harvest;
        outcome?;
        if self.has_callers {
            self.accept_strangers()?;
        }
        if let Some(deadline) = self.next_deadline() {
            let now = Instant::now();
            if deadline <= now {
                self.expire(now);
                self.take_pulses(now);
                self.knocks.knock(now);
            }
        }
        Ok(())
    }

    /// Whether this poll leaves out to ask who has something: now and then is often enough.
    fn is_quick(&mut self) -> bool {
        let is_quick = self.hot_looks < HOT_LOOKS && !self.has_callers;
        self.hot_looks = if is_quick { self.hot_looks + 1 } else { 0 };
        is_quick
    }

    /// Looks only at the link that had something last, where the next most likely comes: asking it is cheaper than asking who has
    /// something. How many events that came to; `None` if something else is to be done, too, and nothing was.
    ///
    /// A thread that waits does little else: what is between two looks here is added to the time of a message.
    fn look_at_hot(&mut self, budget: usize, sink: &mut dyn FnMut(Event<'_>)) -> Option<usize> {
        if !self.events.is_empty() || !self.turns.is_empty() {
            return None;
        }
        let key = self.hot?;
        let Some(Who::Linked(link)) = self.connections.get_mut(key) else {
            self.hot = None;
            return None;
        };
        link.receiver.handle_readable();
        let mut reported = 0;
        self.serve(key, budget, &mut reported, sink);
        if !self.events.is_empty() || !self.turns.is_empty() {
            self.report(budget, &mut reported, sink);
            self.ring_if_busy();
        }
        Some(reported)
    }

    /// Reports what waits to be reported, within the budget.
    fn report(&mut self, budget: usize, reported: &mut usize, sink: &mut dyn FnMut(Event<'_>)) {
        while *reported < budget {
            let Some(event) = self.events.pop_front() else {
                return;
            };
            if let Some(&Peer::Linked(key)) = self.peers.get(&event.peer()) {
                if let Some(Who::Linked(link)) = self.connections.get_mut(key) {
                    match event {
                        // Of this link, and not of one before: that one's loss would come first.
                        Event::Connected { .. } => link.is_reported = true,
                        Event::BodySent { body, .. } if link.is_reported => {
                            link.sender.forget(body)
                        }
                        // Frames sent since it was queued may have taken the room.
                        Event::Writable { .. } if !link.sender.confirm_room() => continue,
                        _ => {}
                    }
                }
            }
            *reported += 1;
            sink(event);
        }
    }

    /// One link's turn.
    fn serve(
        &mut self,
        key: Key,
        budget: usize,
        reported: &mut usize,
        sink: &mut dyn FnMut(Event<'_>),
    ) {
        let Some(Who::Linked(link)) = self.connections.get_mut(key) else {
            return;
        };
        link.is_queued = false;
        let flushed = link.flush(|event| self.events.push_back(event));
        let before = *reported;
        let turn = link.receive(&mut self.pool, budget, reported, sink);
        if *reported > before {
            self.hot = Some(key);
        }
        self.watch_answers(key);
        match turn {
            Turn::Lost(reason) => self.lose(key, reason),
            Turn::More => self.enqueue(key),
            Turn::Done if flushed == Flushed::More => self.enqueue(key),
            Turn::Done => {}
        }
    }

    /// Makes the wakeup say whether there is something left to do now.
    fn ring_if_busy(&mut self) {
        if !self.events.is_empty() || !self.turns.is_empty() || self.has_callers {
            self.poller.ring();
        }
    }

    /// Makes the wakeup say whether there is something left to do, now or later.
    fn settle(&mut self) {
        self.ring_if_busy();
        let deadline = self.next_deadline();
        self.poller.arm(deadline);
    }
}

impl Driver for TcpDriver {
    fn caps(&self) -> &Caps {
        &self.caps
    }

    fn wakeup(&self) -> Option<BorrowedFd<'_>> {
        Some(self.poller.wakeup())
    }

    fn locator(&self) -> &Locator {
        &self.locator
    }

    fn connect(&mut self, peer: PeerId, at: &Locator) -> Result<(), ConnectError> {
        if peer == self.me {
            return Err(ConnectError::Myself { peer });
        }
        let addresses: Vec<SocketAddr> = addresses_in(at)?;
        let is_unreported = self.events.iter().any(|event| event.peer() == peer);
        if self.peers.contains_key(&peer) || is_unreported {
            return Err(ConnectError::Already { peer });
        }
        // Where nothing is known of our own interfaces, the other's order is as good as any.
        let ours = interfaces().unwrap_or_default();
        self.dial(peer, in_order(addresses, &ours));
        self.settle();
        Ok(())
    }

    fn disconnect(&mut self, peer: PeerId) {
        match self.peers.remove(&peer) {
            Some(Peer::Dialling(dial)) => self.drop_dial(&dial),
            // Dropping the link closes its socket and lets go of all memory it was lent.
            Some(Peer::Linked(key)) => drop(self.connections.remove(key)),
            None => {}
        }
        self.events.retain(|event| event.peer() != peer);
        self.settle();
    }

    fn send_frame(&mut self, peer: PeerId, frame: &[IoSlice<'_>]) -> Result<(), Refused> {
        let link = self.link(peer)?;
        let sent = link.sender.send_frame(&mut link.wire, frame);
        if link.sender.needs_flush() {
            self.flush_now(peer);
        } else if !link.is_watched {
            let key = self.key(peer);
            key.into_iter().for_each(|key| self.watch_answers(key));
        }
        sent
    }

    unsafe fn send_body(
        &mut self,
        peer: PeerId,
        body: BodyId,
        parts: &[Part],
    ) -> Result<(), Refused> {
        // SAFETY: as our caller promises.
        unsafe { self.give_body(peer, body, parts, Asked::For) }
    }

    unsafe fn push_body(
        &mut self,
        peer: PeerId,
        body: BodyId,
        parts: &[Part],
    ) -> Result<(), Refused> {
        // SAFETY: as our caller promises.
        unsafe { self.give_body(peer, body, parts, Asked::Perhaps) }
    }

    unsafe fn recv_body(
        &mut self,
        peer: PeerId,
        body: BodyId,
        parts: &[PartMut],
    ) -> Result<(), Refused> {
        let link = self.link(peer)?;
        check(parts.len(), parts.iter().map(PartMut::len))?;
        link.receiver.check_body(body, MAX_BODIES)?;
        // SAFETY: the caller's promise lasts until line 17 of the contract frees the parts. The scatter is
        // dropped when its last byte is read, before `BodyReceived`; with the link, by `Connection::close`
        // before `BodyFailed` and `Lost`, or by `disconnect`; or with the driver.
        let has_waited = link
            .receiver
            .recv_body(body, unsafe { Scatter::new(parts) });
        if has_waited {
            self.key(peer).into_iter().for_each(|key| self.enqueue(key));
            self.settle();
        }
        Ok(())
    }

    fn describe(&self, peer: PeerId) -> Option<String> {
        let Some(&Peer::Linked(key)) = self.peers.get(&peer) else {
            return None;
        };
        let Some(Who::Linked(link)) = self.connections.get(key) else {
            return None;
        };
        describe(&link.wire)
    }

    fn gather(&mut self, peer: PeerId) {
        if let Ok(link) = self.link(peer) {
            link.sender.set_gathering(true);
        }
    }

    fn flush(&mut self, peer: PeerId) {
        if let Ok(link) = self.link(peer) {
            link.sender.set_gathering(false);
            if link.sender.needs_flush() {
                self.flush_now(peer);
            }
        }
    }

    fn poll(
        &mut self,
        budget: usize,
        sink: &mut dyn FnMut(Event<'_>),
    ) -> Result<usize, DriverError> {
        let is_quick = self.is_quick();
        if is_quick {
            if let Some(reported) = self.look_at_hot(budget, sink) {
                return Ok(reported);
            }
        }
        // What waits for its turn has it before the network is asked for more, unless that has waited long enough.
        let all = !is_quick || self.events.is_empty() && self.turns.is_empty();
        let mut reported = 0;
        if all {
            self.handle_network()
                .map_err(|cause| DriverError { cause })?;
        }
        // Each link has at most one turn in a poll, so that the caller sees to its other networks too.
        for _ in 0..self.turns.len() {
            self.report(budget, &mut reported, sink);
            if reported == budget {
                break;
            }
            if let Some(key) = self.turns.pop_front() {
                self.serve(key, budget, &mut reported, sink);
            }
        }
        self.report(budget, &mut reported, sink);
        if all {
            self.settle();
        } else {
            self.ring_if_busy();
        }
        Ok(reported)
    }
}

impl Who {
    /// The peer's serial on a link.
    pub(crate) fn serial(&mut self) -> Option<u64> {
        match self {
            Self::Greeting(_) => None,
            Self::Linked(link) => Some(link.serial),
        }
    }
}

fn check(parts: usize, lens: impl Iterator<Item = usize>) -> Result<(), Refused> {
    if parts > MAX_PARTS {
        return Err(Refused::TooManyParts {
            parts,
            max: MAX_PARTS,
        });
    }
    let len = lens.fold(0, usize::saturating_add);
    if len > MAX_BODY {
        return Err(Refused::TooLong { len, max: MAX_BODY });
    }
    Ok(())
}

/// Polls that look at one link only, for each that looks at all.
const HOT_LOOKS: u32 = 15;
/// TCP has no bound; this one catches lengths that are mistakes.
const MAX_BODY: usize = 1 << 40;
/// Parts of a body: its list is copied, so it must not be endless.
const MAX_PARTS: usize = 1024;
/// Bodies in flight with one peer in one direction: bounds what is remembered of them.
const MAX_BODIES: usize = 1024;
