//! One poll: what arrived, what can go on, what is reported, and whether to sleep.

use std::io;
use std::time::Duration;

use mizzen_driver::{Event, LossReason};

use crate::driver::OfiDriver;
use crate::endpoint::Endpoint;
use crate::incoming::Fate;
use crate::link::{Link, Stage};
use crate::message::{Header, Kind, encode_body};
use crate::pool::BufferId;
use crate::port::{Arrival, Port};
use crate::ports::PortId;
use mizzen_driver::are_quiet;

impl OfiDriver {
    pub(crate) fn turn(
        &mut self,
        budget: usize,
        sink: &mut dyn FnMut(Event<'_>),
    ) -> io::Result<usize> {
        self.polls = self.polls.wrapping_add(1);
        let mut did = false;
        let is_sweep = self.is_resting || self.polls % SWEEP == 0;
        if is_sweep || !self.greeting.is_empty() || !self.asked.is_empty() {
            did |= self.sweep()?;
        }
        did |= self.poll_ports()?;
        did |= self.poll_busy();
        did |= self.flush_stuck();
        did |= self.poll_greeting();
        while let Some((slot, key, kind)) = self.broken.pop() {
            self.handle_broken(slot, key, kind)?;
            did = true;
        }
        self.retire_ports();
        let reported = self.report(budget, sink);
        did |= reported > 0;
        if did {
            self.alarms = 0;
            self.is_harvested = false;
        }
        self.settle(did);
        Ok(reported)
    }

    /// What needs not be looked at with every poll: it costs system calls, and is seldom.
    fn sweep(&mut self) -> io::Result<bool> {
        self.wakeup.disarm();
        let did = self.poll_bootstrap()?;
        self.expire();
        self.sweep_idle();
        Ok(did)
    }

    /// Looks after endpoints without bodies in flight: they have nothing for us, but their connections come
    /// and go. The one that was idle for longest is closed if there are too many.
    fn sweep_idle(&mut self) {
        let (mut count, mut oldest) = (0, None);
        for slot in 0..self.links.len() {
            let link = self.links[slot].as_deref();
            let idle = link.filter(|link| !link.is_busy && link.bodies.endpoint().is_some());
            let Some(age) = idle.map(|link| self.polls.wrapping_sub(link.last_busy)) else {
                continue;
            };
            if let Err(cause) = self.poll_bodies_of(slot) {
                self.fail(slot, cause.kind());
            }
            count += 1;
            oldest = oldest.max(Some((age, slot)));
        }
        if let Some((_, slot)) = oldest.filter(|_| count > MAX_IDLE) {
            self.link(slot).into_iter().for_each(Link::close_port);
        }
    }

    /// Takes what arrived, at each port: there is one, as long as no peer was lost.
    fn poll_ports(&mut self) -> io::Result<bool> {
        let (mut did, mut from) = (false, 0);
        while let Some(id) = self.ports.next(from) {
            did |= self.poll_port(id)?;
            from = id.index() + 1;
        }
        Ok(did)
    }

    fn poll_port(&mut self, id: PortId) -> io::Result<bool> {
        let mut arrivals = std::mem::take(&mut self.arrivals);
        let polled = self.ports[id].poll(&mut arrivals);
        let did = !arrivals.is_empty();
        for arrival in arrivals.drain(..) {
            match arrival {
                Arrival::Message { buffer, len } => self.handle_message(id, buffer, len),
                Arrival::Garbage => self.strangers += 1,
                Arrival::Sent { owner } => self.handle_sent(owner),
                Arrival::Failed { owner, kind } => {
                    self.handle_sent(owner);
                    self.fail(owner, kind);
                }
            }
        }
        self.arrivals = arrivals;
        polled.map(|()| did)
    }

    /// A message: of a link, or from a stranger.
    fn handle_message(&mut self, at: PortId, buffer: BufferId, len: usize) {
        let port = &mut self.ports[at];
        let message = port.bytes(buffer, len);
        let Some((header, payload)) = Header::decode(message) else {
            return self.drop_stranger(at, buffer);
        };
        let slot = header.slot as usize;
        let link = self.links.get_mut(slot).and_then(Option::as_deref_mut);
        let is_ours = |link: &Link| link.port == at && !matches!(link.stage, Stage::Gone(_));
        let Some(link) = link.filter(|link| link.key == header.key && is_ours(link)) else {
            return self.drop_stranger(at, buffer);
        };
        let name_len = port.endpoint().name().len();
        let handled = link.handle(name_len, &header, payload, buffer);
        let peer = link.peer;
        if !handled.is_ok_and(|handled| handled.fate == Fate::Kept) {
            port.release(buffer);
        }
        match handled {
            Ok(handled) if handled.has_room => {
                self.reports.push_back(Event::Writable { peer }.into());
            }
            Ok(_) => {}
            Err(what) => return self.lose(slot, LossReason::Violation(what)),
        }
        self.mark(slot);
    }

    fn drop_stranger(&mut self, at: PortId, buffer: BufferId) {
        self.strangers += 1;
        self.ports[at].release(buffer);
    }

    /// The provider has let go of a message of a link, which may have ended since.
    fn handle_sent(&mut self, slot: usize) {
        let Some(link) = self.link(slot) else {
            return;
        };
        match &mut link.stage {
            Stage::Open(outgoing) => outgoing.handle_sent(),
            Stage::Gone(outgoing) => {
                outgoing
                    .iter_mut()
                    .for_each(|outgoing| outgoing.handle_sent());
                self.bury(slot);
            }
            Stage::Greeting { .. } => {}
        }
    }

    /// Moves the bodies that are in flight.
    fn poll_busy(&mut self) -> bool {
        let mut did = false;
        let mut index = 0;
        let polls = self.polls;
        while let Some(&slot) = self.busy.get(index) {
            match self.poll_bodies_of(slot) {
                Ok(ended) => did |= ended,
                Err(cause) => self.fail(slot, cause.kind()),
            }
            match self.link(slot) {
                Some(link) if link.bodies.are_in_flight() => index += 1,
                Some(link) => {
                    link.is_busy = false;
                    link.last_busy = polls;
                    self.busy.swap_remove(index);
                }
                None => drop(self.busy.swap_remove(index)),
            }
        }
        did
    }

    /// Moves the bodies of one link; says whether one has ended.
    pub(crate) fn poll_bodies_of(&mut self, slot: usize) -> io::Result<bool> {
        let Some(link) = self.links[slot].as_deref_mut() else {
            return Ok(false);
        };
        let peer = link.peer;
        let port = &mut self.ports[link.port];
        let mut done = std::mem::take(&mut self.done);
        let mut outcome = link.bodies.poll(&mut done);
        let did = !done.is_empty();
        for (body, len) in done.drain(..) {
            // The bytes are in their place before the receiver hears of it: writes end by delivery.
            let said = link.say(port, Kind::Complete, &encode_body(body, len));
            outcome = outcome.and(said);
            self.reports
                .push_back(Event::BodySent { peer, body }.into());
        }
        self.done = done;
        if did {
            self.mark(slot);
        }
        outcome.map(|()| did)
    }

    /// Offers the provider what it did not take before.
    fn flush_stuck(&mut self) -> bool {
        let mut did = false;
        let mut index = 0;
        while let Some(&slot) = self.stuck.get(index) {
            let link = self.links[slot].as_deref_mut();
            let left = match link.map(|link| link.flush(&mut self.ports[link.port])) {
                Some(Ok(true)) => true,
                Some(Ok(false)) | None => false,
                Some(Err(cause)) => {
                    self.fail(slot, cause.kind());
                    false
                }
            };
            if left {
                index += 1;
                continue;
            }
            did = true;
            self.stuck.swap_remove(index);
            if let Some(link) = self.link(slot) {
                link.is_stuck = false;
            }
        }
        did
    }

    /// The fabric failed a link. The bootstrap may know why; if not, it is told.
    fn handle_broken(&mut self, slot: usize, key: u64, kind: io::ErrorKind) -> io::Result<()> {
        self.poll_bootstrap()?;
        // By now the number may be another link's.
        if self.link(slot).is_some_and(|link| link.key == key) {
            self.lose(slot, LossReason::Broken(kind));
        }
        Ok(())
    }

    /// Decides whether the wakeup may be quiet.
    ///
    /// A driver that is polled without pause should not pay for being ready to sleep, so it is only after
    /// some polls in vain that the provider is asked whether its descriptors can be trusted.
    fn settle(&mut self, did: bool) {
        if did || !self.reports.is_empty() || !self.turns.is_empty() {
            return self.stir();
        }
        self.idle = self.idle.saturating_add(1);
        if self.idle < PATIENCE {
            return self.wakeup.ring();
        }
        self.is_resting = self.may_rest();
        if !self.is_resting {
            return self.wakeup.ring();
        }
        self.wakeup.hush();
        let is_blind = !self.has_descriptors && !self.peers.is_empty();
        let is_deaf = self.bootstrap.0.wakeup().is_none();
        if is_blind || is_deaf || !self.stuck.is_empty() {
            self.wakeup.arm(TICK);
        } else if !self.greeting.is_empty() {
            self.wakeup.arm(SLOW_TICK);
        }
    }

    /// Whether the provider's descriptors will say when there is something to do; or do not matter.
    fn may_rest(&mut self) -> bool {
        if !self.has_descriptors {
            return true;
        }
        let links = self.links.iter().flatten();
        let bodies = links.filter_map(|link| link.bodies.endpoint());
        let endpoints = self.ports.iter().map(Port::endpoint).chain(bodies);
        if !self.domain.may_sleep(endpoints.clone()) {
            return false;
        }
        if self.has_edges {
            // What came before the harvest was seen by the poll after it, which is this one.
            let was_harvested = self.is_harvested && !self.is_resting;
            self.is_harvested = true;
            if !was_harvested {
                self.wakeup.harvest();
            }
            return was_harvested;
        }
        if are_quiet(endpoints.clone().filter_map(Endpoint::wait)) {
            self.alarms = 0;
            return true;
        }
        // Something has come since; or the descriptors stay readable for ever, as those of `net` 1.17 do.
        self.alarms += 1;
        if self.alarms >= MAX_ALARMS {
            let mut descriptors = endpoints.filter_map(Endpoint::wait);
            self.has_descriptors = descriptors.all(|fd| self.wakeup.watch_edges(fd).is_ok());
            self.has_edges = true;
        }
        false
    }
}

/// The bootstrap is looked at once in so many polls.
const SWEEP: u32 = 256;
/// Polls in vain before the driver is ready to sleep: a tenth of a millisecond or two.
const PATIENCE: u32 = 1024;
/// Endpoints for bodies that are kept for the next one. They are cheap with most providers, but one of
/// `ofi_rxm` takes 68 MiB and 50 ms to open.
const MAX_IDLE: usize = 4;
/// False alarms in a row after which only what is new at the provider's descriptors counts.
const MAX_ALARMS: u32 = 64;
/// When a provider without descriptors, or one that did not take a message, is looked at again.
const TICK: Duration = Duration::from_millis(1);
/// When we look again whether a link is late to come up.
const SLOW_TICK: Duration = Duration::from_millis(100);
