//! The driver whose links go through gateways.
//!
//! It has drivers of its own for the networks of its host, on which it talks with gateways only: it dials all that it can reach. A link with another
//! process is a *circuit*: fragments, in order and numbered, and words about how far each end is. When a gateway dies, or something is missing for too
//! long, the link is lost, as a link of any driver may be; what lies above connects again and resends, and finds another gateway.
//!
//! This file has unsafe code because it implements the lending functions of [`Driver`].
#![allow(unsafe_code)]

mod circuits;
mod dial;
mod guard;
mod linked;
mod links;
mod report;

use std::io::IoSlice;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use mizzen_driver::{
    BodyId, Caps, ConnectError, Driver, DriverError, Event, Gather, Locator, Part, PartMut, PeerId,
    Refused, Scatter, Wakeup,
};
use mizzen_proto::id::ProcessId;
use mizzen_proto::membership::HostId;
use mizzen_proto::relay::RelayFrame;

use self::circuits::{Circuits, MAX_FRAME};
pub use self::guard::Sealing;
use self::links::{Inner, Links, Via};
use self::report::Report;
use crate::directory::Directory;
use crate::peer::{Who, process_id};
use crate::ways::Ways;

/// What the driver is told when it is made.
pub struct RelayedOptions {
    /// This process.
    pub me: ProcessId,
    /// Its host.
    pub host: HostId,
    /// Which hosts share which networks.
    pub ways: Ways,
    /// Which gateways there are.
    pub directory: Arc<Directory>,
    /// A driver for each network of this host, by its name.
    pub drivers: Vec<(String, Box<dyn Driver>)>,
    /// How links are sealed from end to end; not at all, if all networks on the way are trusted. All processes of a job do the same.
    pub sealing: Option<Sealing>,
}

/// The driver whose links go through gateways. Its locator is the number of its host.
pub struct RelayedDriver {
    circuits: Circuits,
    inner: Vec<Inner>,
    directory: Arc<Directory>,
    version: u64,
    wakeup: Wakeup,
    armed: Option<std::time::Instant>,
    caps: Caps,
    locator: Locator,
}

impl RelayedDriver {
    /// Dials the gateways as they become known.
    ///
    /// # Errors
    ///
    /// If the system refuses a descriptor.
    pub fn new(options: RelayedOptions) -> std::io::Result<Self> {
        let RelayedOptions {
            me,
            host,
            ways,
            directory,
            drivers,
            sealing,
        } = options;
        let wakeup = Wakeup::new()?;
        wakeup.watch(directory.as_fd())?;
        for (_, driver) in &drivers {
            let fd = driver.wakeup();
            wakeup.watch(
                fd.ok_or_else(|| std::io::Error::other("a network cannot wake a thread"))?,
            )?;
        }
        let inner = drivers.into_iter();
        let inner = inner.map(|(network, driver)| Inner { network, driver });
        let mut caps = Caps::least();
        caps.max_frame = MAX_FRAME;
        caps.max_body = MAX_BODY;
        caps.max_parts = MAX_PARTS;
        caps.max_bodies = MAX_BODIES;
        caps.can_sleep = true;
        let locator = Locator::new(&host.0.to_string()).map_err(std::io::Error::other)?;
        Ok(Self {
            circuits: Circuits::new(me, host, Links::new(host, ways), sealing),
            inner: inner.collect(),
            directory,
            version: 0,
            wakeup,
            armed: None,
            caps,
            locator,
        })
    }

    /// Breaks the link to `peer` underneath, as a gateway that fails would: both ends report it as lost.
    ///
    /// For tests of what lies above. Without a link it does nothing.
    pub fn sever(&mut self, peer: PeerId) {
        self.circuits.sever(peer);
        self.pump();
    }

    /// Sends what can be sent, and sees to it that the rest is not forgotten.
    fn pump(&mut self) {
        let has_more = self.circuits.pump(&mut self.inner, false);
        if has_more || self.circuits.has_events() {
            self.wakeup.ring();
        }
        self.arm();
    }

    /// Has the wakeup say when it is time to look.
    fn arm(&mut self) {
        let now = self.circuits.now();
        let at = self.circuits.next_look().map(|at| at.since(now));
        match at {
            None => {
                self.wakeup.disarm();
                self.armed = None;
            }
            Some(left) => {
                let at = std::time::Instant::now() + left;
                // An earlier alarm looks, and sets the next.
                if self.armed.is_none_or(|armed| at + SLACK < armed) {
                    self.wakeup.arm(left.max(SLACK));
                    self.armed = Some(at);
                }
            }
        }
    }

    fn check(&mut self, peer: PeerId, parts: usize, len: usize) -> Result<(), Refused> {
        if self.circuits.link(peer).is_none() {
            return Err(Refused::NotConnected { peer });
        }
        if parts > MAX_PARTS {
            let max = MAX_PARTS;
            return Err(Refused::TooManyParts { parts, max });
        }
        if len > MAX_BODY {
            return Err(Refused::TooLong { len, max: MAX_BODY });
        }
        Ok(())
    }
}

fn check_name(in_use: &std::collections::BTreeSet<BodyId>, body: BodyId) -> Result<(), Refused> {
    if in_use.contains(&body) {
        return Err(Refused::BodyInUse { body });
    }
    if in_use.len() >= MAX_BODIES {
        return Err(Refused::TooManyBodies { max: MAX_BODIES });
    }
    Ok(())
}

impl Driver for RelayedDriver {
    fn caps(&self) -> &Caps {
        &self.caps
    }

    fn wakeup(&self) -> Option<BorrowedFd<'_>> {
        Some(self.wakeup.fd())
    }

    fn locator(&self) -> &Locator {
        &self.locator
    }

    fn connect(&mut self, peer: PeerId, at: &Locator) -> Result<(), ConnectError> {
        if process_id(self.circuits.me()) == peer {
            return Err(ConnectError::Myself { peer });
        }
        let host = at.as_str().parse().map_err(|_| ConnectError::BadLocator {
            why: format!("{at} is not the number of a host"),
        })?;
        if matches!(Who::from(peer), Who::Agent(_)) {
            let why = "agents have no links through gateways".to_owned();
            return Err(ConnectError::BadLocator { why });
        }
        if self.circuits.is_known(peer) {
            return Err(ConnectError::Already { peer });
        }
        self.circuits.connect(peer, HostId(host));
        self.pump();
        Ok(())
    }

    fn disconnect(&mut self, peer: PeerId) {
        self.circuits.disconnect(peer);
        self.pump();
    }

    fn send_frame(&mut self, peer: PeerId, frame: &[IoSlice<'_>]) -> Result<(), Refused> {
        let len: usize = frame.iter().map(|slice| slice.len()).sum();
        if self.circuits.link(peer).is_none() {
            return Err(Refused::NotConnected { peer });
        }
        if len > MAX_FRAME {
            return Err(Refused::TooLong {
                len,
                max: MAX_FRAME,
            });
        }
        let is_taken = self.circuits.send_frame(&mut self.inner, peer, frame);
        self.arm();
        match is_taken {
            true => Ok(()),
            false => Err(Refused::Busy { peer }),
        }
    }

    unsafe fn send_body(
        &mut self,
        peer: PeerId,
        body: BodyId,
        parts: &[Part],
    ) -> Result<(), Refused> {
        let len = parts.iter().map(Part::len).fold(0, usize::saturating_add);
        self.check(peer, parts.len(), len)?;
        if let Some(link) = self.circuits.link(peer) {
            check_name(&link.sending, body)?;
        }
        // SAFETY: the caller's promise lasts until line 17 of the contract frees the parts. The gather is dropped when its last piece was sent, before
        // `BodySent`; with its link, by `lose` before `BodyFailed` and `Lost`, or by `disconnect`; or with the driver.
        let source = unsafe { Gather::new(parts) };
        self.circuits.send_body(peer, body, source);
        self.pump();
        Ok(())
    }

    unsafe fn recv_body(
        &mut self,
        peer: PeerId,
        body: BodyId,
        parts: &[PartMut],
    ) -> Result<(), Refused> {
        let len = parts
            .iter()
            .map(PartMut::len)
            .fold(0, usize::saturating_add);
        self.check(peer, parts.len(), len)?;
        if let Some(link) = self.circuits.link(peer) {
            check_name(&link.receiving, body)?;
        }
        // SAFETY: the caller's promise lasts until line 17 of the contract frees the parts. The scatter is dropped when its last byte has come, before
        // `BodyReceived`; with its link, by `lose` before `BodyFailed` and `Lost`, or by `disconnect`; or with the driver.
        let place = unsafe { Scatter::new(parts) };
        self.circuits.recv_body(peer, body, place);
        Ok(())
    }

    fn describe(&self, peer: PeerId) -> Option<String> {
        self.circuits.describe(peer)
    }

    fn poll(
        &mut self,
        budget: usize,
        sink: &mut dyn FnMut(Event<'_>),
    ) -> Result<usize, DriverError> {
        self.wakeup.hush();
        if self.armed.is_some_and(|at| at <= std::time::Instant::now()) {
            self.wakeup.disarm();
            self.armed = None;
        }
        if budget == 0 {
            self.pump();
            return Ok(0);
        }
        let now = self.circuits.now();
        if let Some(known) = self.directory.since(&mut self.version) {
            let gone = self.circuits.links.handle_news(known, &mut self.inner, now);
            gone.into_iter()
                .for_each(|via| self.circuits.handle_lost_gateway(via));
        }
        let mut report = Report { sink, left: budget };
        self.circuits.report(&mut report);
        let mut has_all = true;
        for index in 0..self.inner.len() {
            // Who does not take what came gets no more.
            if self.circuits.backlog() >= BACKLOG {
                has_all = false;
                break;
            }
            let circuits = &mut self.circuits;
            let mut strangers = Vec::new();
            let mut writable = Vec::new();
            let taken = self.inner[index].driver.poll(INNER_BUDGET, &mut |event| {
                let via = Via {
                    inner: index,
                    gateway: event.peer(),
                };
                match event {
                    Event::Connected { .. } => match circuits.links.handle_connected(via) {
                        true => circuits.handle_new_gateway(),
                        false => strangers.push(via.gateway),
                    },
                    Event::ConnectFailed { .. } => circuits.links.handle_lost(via, now),
                    Event::Lost { .. } => {
                        circuits.handle_lost_gateway(via);
                        circuits.links.handle_lost(via, now);
                    }
                    Event::Writable { .. } => writable.push(via),
                    Event::Frame { bytes, .. } if circuits.links.has(via) => {
                        match RelayFrame::decode(bytes) {
                            Ok(RelayFrame::Grant(grant)) => {
                                circuits.links.handle_grant(via, &grant)
                            }
                            // What goes to a gateway of one's own network needs no more room than it has.
                            Ok(RelayFrame::Blocked(_)) => {}
                            Ok(RelayFrame::Word(word)) => circuits.handle_word(via, word),
                            Ok(RelayFrame::Fragment(header, contents)) => {
                                circuits.handle_fragment(via, &header, contents, &mut report);
                            }
                            Err(_) => strangers.push(via.gateway),
                        }
                    }
                    // What follows one that is being ended; bodies are not exchanged with gateways.
                    _ => {}
                }
            })?;
            has_all &= taken < INNER_BUDGET;
            for via in writable {
                self.circuits.links.handle_writable(via, &mut self.inner);
            }
            for gateway in strangers {
                self.inner[index].driver.disconnect(gateway);
                let via = Via {
                    inner: index,
                    gateway,
                };
                self.circuits.handle_lost_gateway(via);
                self.circuits.links.handle_lost(via, now);
            }
        }
        let has_more = self.circuits.pump(&mut self.inner, has_all);
        self.circuits.report(&mut report);
        let left = report.left;
        if has_more {
            self.wakeup.ring();
        }
        self.pump();
        Ok(budget - left)
    }
}

impl Drop for RelayedDriver {
    fn drop(&mut self) {
        self.circuits.leave(&mut self.inner);
    }
}

impl std::fmt::Debug for RelayedDriver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RelayedDriver")
            .field("locator", &self.locator)
            .finish_non_exhaustive()
    }
}

/// As much as TCP carries: it catches lengths that are mistakes.
const MAX_BODY: usize = 1 << 40;
/// Parts of a body: its list is copied, so it must not be endless.
const MAX_PARTS: usize = 64;
/// Bodies in flight with one peer in one direction: bounds what is remembered of them.
const MAX_BODIES: usize = 64;
/// Events that wait for the caller before no more is taken from networks.
const BACKLOG: usize = 256;
/// Events taken from one network at a time.
const INNER_BUDGET: usize = 64;
/// Alarms that are so near to each other are one.
const SLACK: std::time::Duration = std::time::Duration::from_millis(1);
