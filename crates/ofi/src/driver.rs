//! The driver: what it holds, and its calls.
//!
//! This file has unsafe code because it implements the lending functions of [`Driver`].
#![allow(unsafe_code)]

use std::collections::{HashMap, HashSet, VecDeque};
use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;
use std::rc::Rc;

use mizzen_driver::{
    BodyId, Caps, ConnectError, Driver, DriverError, Event, Gather, Locator, Part, PartMut, PeerId,
    Refused, Scatter, Way,
};

use crate::bodies::Next;
use crate::domain::Domain;
use crate::endpoint::Endpoint;
use crate::heard::Heard;
use crate::info::Info;
use crate::link::Link;
use crate::message::{Kind, MAX_BODIES, MAX_BODY, MAX_FRAME, MAX_PARTS, encode_body, encode_grant};
use crate::options::{OfiOptions, OpenError};
use crate::patience::Patience;
use crate::pending::Report;
use crate::port::{Arrival, Port};
use crate::ports::Ports;
use crate::random::Random;
use mizzen_driver::Wakeup;

/// One process's attachment to a fabric, next to an authenticated network.
///
/// The other network, the *bootstrap*, says who is who and who is gone; the fabric carries frames and
/// bodies. The locator is the bootstrap's.
///
/// ```no_run
/// use mizzen_driver::PeerId;
/// use mizzen_ofi::{OfiDriver, OfiOptions};
/// use mizzen_tcp::{Security, TcpDriver, TcpOptions};
///
/// # fn open(security: Security) -> Result<(), Box<dyn std::error::Error>> {
/// let bootstrap = TcpDriver::new(TcpOptions::new(PeerId(1), security))?;
/// let options = OfiOptions::new().provider("tcp;ofi_rxm").at("10.0.0.1".parse()?);
/// let driver = OfiDriver::new(Box::new(bootstrap), options)?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct OfiDriver {
    // In this order: links close their endpoints before the ports, and all before the domain.
    pub(crate) links: Vec<Option<Box<Link>>>,
    pub(crate) ports: Ports,
    /// Endpoints for bodies, opened while a peer was away.
    pub(crate) spares: Vec<Endpoint>,
    pub(crate) domain: Rc<Domain>,
    pub(crate) bootstrap: Bootstrap,
    pub(crate) caps: Caps,
    /// Numbers of links that are free.
    pub(crate) free: Vec<usize>,
    pub(crate) peers: HashMap<PeerId, usize>,
    /// Whom the caller asked for, and who has not answered.
    pub(crate) asked: HashSet<PeerId>,
    /// Links that await a hello.
    pub(crate) greeting: Vec<usize>,
    /// What the bootstrap said and was not looked at.
    pub(crate) heard: VecDeque<Heard>,
    /// To be reported before anything else.
    pub(crate) reports: VecDeque<Report>,
    /// Links with something to report, in the order of their turns.
    pub(crate) turns: VecDeque<usize>,
    /// Links with messages that the provider did not take.
    pub(crate) stuck: Vec<usize>,
    /// Links with bodies in flight.
    pub(crate) busy: Vec<usize>,
    /// Links that the fabric failed, by number and key.
    pub(crate) broken: Vec<(usize, u64, io::ErrorKind)>,
    pub(crate) arrivals: Vec<Arrival>,
    pub(crate) done: Vec<(BodyId, usize)>,
    pub(crate) patience: Patience,
    pub(crate) random: Random,
    pub(crate) wakeup: Wakeup,
    pub(crate) polls: u32,
    /// Polls without anything to do, in a row.
    pub(crate) idle: u32,
    pub(crate) is_resting: bool,
    /// Whether every queue has a descriptor to sleep on.
    pub(crate) has_descriptors: bool,
    /// How often in a row the descriptors promised what was not there.
    pub(crate) alarms: u32,
    /// Whether they are never quiet, so that only what is new counts; and whether that was harvested and
    /// nothing has happened since.
    pub(crate) has_edges: bool,
    pub(crate) is_harvested: bool,
    pub(crate) strangers: u64,
}

// SAFETY: everything of libfabric in here, and every `Rc` that leads to it, belongs to this driver alone and
// moves with it; `&mut self` makes one thread at a time use it, as `FI_THREAD_DOMAIN` asks. Nothing of it
// is bound to the thread that made it.
unsafe impl Send for OfiDriver {}

/// The network that knows who is who.
pub(crate) struct Bootstrap(pub(crate) Box<dyn Driver>);

impl std::fmt::Debug for Bootstrap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Bootstrap").field(self.0.locator()).finish()
    }
}

impl OfiDriver {
    /// Attaches to a fabric; `bootstrap` has no links yet, and serves this driver only.
    ///
    /// # Errors
    ///
    /// If there is no libfabric or no such provider, or it does not open.
    pub fn new(bootstrap: Box<dyn Driver>, options: OfiOptions) -> Result<Self, OpenError> {
        let info = Info::choose(&options)?;
        let provider = info.provider();
        let refused = |step| {
            move |cause| OpenError::Refused {
                provider,
                step,
                cause,
            }
        };
        let domain = Domain::open(info)?;
        let port = Port::open(&domain).map_err(refused("open an endpoint"))?;
        let system = |cause| OpenError::System { cause };
        let wakeup = Wakeup::new().map_err(system)?;
        if let Some(descriptor) = bootstrap.wakeup() {
            wakeup.watch(descriptor).map_err(system)?;
        }
        if let Some(descriptor) = port.endpoint().wait() {
            wakeup.watch(descriptor).map_err(system)?;
        }
        let has_descriptors = port.endpoint().wait().is_some();
        let mut caps = Caps::least();
        caps.max_frame = MAX_FRAME;
        caps.max_body = MAX_BODY;
        caps.max_parts = MAX_PARTS;
        caps.max_bodies = MAX_BODIES;
        caps.can_sleep = true;
        Ok(Self {
            links: Vec::new(),
            ports: Ports::new(port),
            spares: Vec::new(),
            domain,
            bootstrap: Bootstrap(bootstrap),
            caps,
            free: Vec::new(),
            peers: HashMap::new(),
            asked: HashSet::new(),
            greeting: Vec::new(),
            heard: VecDeque::new(),
            reports: VecDeque::new(),
            turns: VecDeque::new(),
            stuck: Vec::new(),
            busy: Vec::new(),
            broken: Vec::new(),
            arrivals: Vec::new(),
            done: Vec::new(),
            patience: Patience::default(),
            random: Random::new(),
            wakeup,
            polls: 0,
            idle: 0,
            is_resting: false,
            has_descriptors,
            alarms: 0,
            has_edges: false,
            is_harvested: false,
            strangers: 0,
        })
    }

    /// The provider in use.
    #[must_use]
    pub fn provider(&self) -> String {
        self.domain.info().provider()
    }

    /// How many messages were dropped because their key was given to nobody.
    #[must_use]
    pub fn strangers(&self) -> u64 {
        self.strangers
    }

    pub(crate) fn link(&mut self, slot: usize) -> Option<&mut Link> {
        self.links.get_mut(slot)?.as_deref_mut()
    }

    /// The link to a peer, if the caller knows of it.
    fn known(&self, peer: PeerId) -> Result<usize, Refused> {
        let slot = self.peers.get(&peer).copied();
        slot.filter(|&slot| {
            self.links[slot]
                .as_ref()
                .is_some_and(|link| link.is_reported)
        })
        .ok_or(Refused::NotConnected { peer })
    }

    /// Something was begun that only polling ends.
    pub(crate) fn stir(&mut self) {
        self.idle = 0;
        self.is_resting = false;
        self.wakeup.ring();
    }

    /// Takes note that the fabric failed a link; the next poll ends it.
    pub(crate) fn fail(&mut self, slot: usize, kind: io::ErrorKind) {
        if let Some(key) = self.link(slot).map(|link| link.key) {
            self.broken.push((slot, key, kind));
        }
    }

    /// Takes note of how something with a link went, and of what is left to do.
    fn follow_up(&mut self, slot: usize, outcome: io::Result<()>) {
        if let Err(cause) = outcome {
            self.fail(slot, cause.kind());
        }
        self.mark(slot);
        self.stir();
    }

    /// Puts a link on the lists that it belongs to.
    pub(crate) fn mark(&mut self, slot: usize) {
        let Some(link) = self.links.get_mut(slot).and_then(Option::as_deref_mut) else {
            return;
        };
        if !link.is_stuck && link.is_waiting() {
            link.is_stuck = true;
            self.stuck.push(slot);
        }
        if !link.is_busy && link.bodies.are_in_flight() {
            link.is_busy = true;
            self.busy.push(slot);
        }
        if !link.has_turn && link.is_reported && !link.incoming.is_empty() {
            link.has_turn = true;
            self.turns.push_back(slot);
        }
    }

    /// Asks for a body, after all checks.
    fn receive_body(&mut self, slot: usize, body: BodyId, memory: Scatter) -> io::Result<()> {
        self.open_bodies(slot)?;
        let Some(link) = self.links[slot].as_deref_mut() else {
            return Ok(());
        };
        let places = link.bodies.receive(body, memory)?;
        let port = &mut self.ports[link.port];
        link.say_port(port)?;
        link.say(port, Kind::Grant, &encode_grant(body, &places))
    }

    /// Sends a body, after all checks.
    fn begin_body(&mut self, slot: usize, body: BodyId, memory: Gather) -> io::Result<()> {
        self.open_bodies(slot)?;
        let Some(link) = self.links[slot].as_deref_mut() else {
            return Ok(());
        };
        let len = memory.remaining();
        match link.bodies.send(body, memory)? {
            Next::Offer => {
                let port = &mut self.ports[link.port];
                link.say(port, Kind::Offer, &encode_body(body, len))
            }
            Next::Nothing => self.poll_bodies_of(slot).map(|_| ()),
        }
    }

    /// Opens the endpoint for the bodies of a link, on first use.
    fn open_bodies(&mut self, slot: usize) -> io::Result<()> {
        let Some(link) = self.links[slot].as_deref_mut() else {
            return Ok(());
        };
        if link.bodies.open(&self.domain, &mut self.spares)? {
            let descriptor = link.bodies.endpoint().and_then(Endpoint::wait);
            self.has_descriptors &= self.wakeup.watch_queue(descriptor, self.has_edges);
        }
        Ok(())
    }
}

impl Driver for OfiDriver {
    fn caps(&self) -> &Caps {
        &self.caps
    }

    fn wakeup(&self) -> Option<BorrowedFd<'_>> {
        Some(self.wakeup.fd())
    }

    fn locator(&self) -> &Locator {
        self.bootstrap.0.locator()
    }

    fn connect(&mut self, peer: PeerId, at: &Locator) -> Result<(), ConnectError> {
        let is_unreported = self.reports.iter().any(|report| report.peer() == peer);
        if self.peers.contains_key(&peer) || is_unreported {
            return Err(ConnectError::Already { peer });
        }
        self.bootstrap.0.connect(peer, at)?;
        self.asked.insert(peer);
        // A failure is found again when there is a link to fail.
        let _ = self.renew_port(peer);
        self.stir();
        Ok(())
    }

    fn disconnect(&mut self, peer: PeerId) {
        self.asked.remove(&peer);
        self.leave(peer);
        if let Some(slot) = self.peers.get(&peer).copied() {
            self.close(slot);
        }
        self.drop_reports(peer);
        self.stir();
    }

    fn send_frame(&mut self, peer: PeerId, frame: &[IoSlice<'_>]) -> Result<(), Refused> {
        let slot = self.known(peer)?;
        let len = frame.iter().map(|slice| slice.len()).sum();
        if len > MAX_FRAME {
            let max = MAX_FRAME;
            return Err(Refused::TooLong { len, max });
        }
        let Some(link) = self.links[slot].as_deref_mut() else {
            return Err(Refused::NotConnected { peer });
        };
        let sent = link.send_frame(&mut self.ports[link.port], frame, len);
        let outcome = sent.map_err(|_| Refused::Busy { peer })?;
        self.follow_up(slot, outcome);
        Ok(())
    }

    unsafe fn send_body(
        &mut self,
        peer: PeerId,
        body: BodyId,
        parts: &[Part],
    ) -> Result<(), Refused> {
        let slot = self.known(peer)?;
        check(parts.len(), parts.iter().map(Part::len))?;
        if let Some(link) = self.link(slot) {
            link.bodies.check(body, Way::Sending)?;
        }
        // SAFETY: the caller's promise lasts until line 17 of the contract frees the parts. `Bodies` keeps the
        // gather until the last write has ended, before `BodySent`; or closes its endpoint first, before
        // `BodyFailed` and `Lost`, in `disconnect`, and when the driver is dropped.
        let memory = unsafe { Gather::new(parts) };
        let outcome = self.begin_body(slot, body, memory);
        self.follow_up(slot, outcome);
        Ok(())
    }

    unsafe fn recv_body(
        &mut self,
        peer: PeerId,
        body: BodyId,
        parts: &[PartMut],
    ) -> Result<(), Refused> {
        let slot = self.known(peer)?;
        check(parts.len(), parts.iter().map(PartMut::len))?;
        if let Some(link) = self.link(slot) {
            link.bodies.check(body, Way::Receiving)?;
        }
        // SAFETY: as in `send_body`: `Bodies` drops the scatter with the registrations when the peer says that
        // the body is complete, before `BodyReceived`, or after it has closed its endpoint.
        let memory = unsafe { Scatter::new(parts) };
        let outcome = self.receive_body(slot, body, memory);
        self.follow_up(slot, outcome);
        Ok(())
    }

    fn poll(
        &mut self,
        budget: usize,
        sink: &mut dyn FnMut(Event<'_>),
    ) -> Result<usize, DriverError> {
        self.turn(budget, sink)
            .map_err(|cause| DriverError { cause })
    }
}

fn check(parts: usize, lens: impl Iterator<Item = usize>) -> Result<(), Refused> {
    if parts > MAX_PARTS {
        let max = MAX_PARTS;
        return Err(Refused::TooManyParts { parts, max });
    }
    let len = lens.fold(0, usize::saturating_add);
    if len > MAX_BODY {
        let max = MAX_BODY;
        return Err(Refused::TooLong { len, max });
    }
    Ok(())
}
