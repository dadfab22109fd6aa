//! One process's attachment to a simulated network.
//!
//! The memory of a body is only touched inside calls on the driver it was lent to: its bytes travel as
//! copies. This file has unsafe code because it implements the lending functions of [`Driver`].
#![allow(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::IoSlice;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::event::{EventfdFlags, eventfd};

use super::SimNet;
use super::network::{Arrival, Last, LinkId, Packet, hush, locator_of, peer_at, ring};
use crate::{
    BodyId, Caps, ConnectError, Driver, DriverError, Event, Gather, Locator, LossReason, Part,
    PartMut, PeerId, Refused, Scatter, Way,
};

/// A driver of a [`SimNet`].
#[derive(Debug)]
pub struct SimDriver {
    net: SimNet,
    me: PeerId,
    attachment: u64,
    caps: Caps,
    locator: Locator,
    doorbell: Arc<OwnedFd>,
    dialling: BTreeSet<PeerId>,
    links: BTreeMap<PeerId, Link>,
    /// Taken from the network, not yet looked at.
    arrived: VecDeque<Arrival>,
    /// Reported before anything that arrived.
    events: VecDeque<Event<'static>>,
}

#[derive(Debug)]
struct Link {
    id: LinkId,
    sending: VecDeque<(BodyId, Gather)>,
    /// Bodies whose end was not yet reported, so longer than they are in `sending`.
    sent: BTreeSet<BodyId>,
    receiving: BTreeMap<BodyId, Scatter>,
    room: Room,
}

/// What the sender was told about room on a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Room {
    /// Nothing.
    Unsaid,
    /// `Busy`: it waits for `Writable`.
    Wanted,
    /// `Writable`: its next frame is accepted.
    Promised,
}

impl SimNet {
    /// Attaches a process. If one with this id is attached, it is cut off: its successor replaces it.
    ///
    /// # Panics
    ///
    /// When the system has no descriptor left for the driver's wakeup.
    #[must_use]
    pub fn driver(&self, me: PeerId) -> SimDriver {
        SimDriver::attach(self.clone(), me)
    }
}

impl SimDriver {
    fn attach(net: SimNet, me: PeerId) -> Self {
        let doorbell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let doorbell =
            Arc::new(doorbell.expect("a descriptor for the wakeup of a simulated driver"));
        let attachment = net.network().attach(me, Arc::clone(&doorbell));
        let mut caps = Caps::least();
        caps.max_frame = MAX_FRAME;
        caps.max_body = MAX_BODY;
        caps.max_parts = MAX_PARTS;
        caps.max_bodies = MAX_BODIES;
        caps.can_sleep = true;
        Self {
            net,
            me,
            attachment,
            caps,
            locator: locator_of(me),
            doorbell,
            dialling: BTreeSet::new(),
            links: BTreeMap::new(),
            arrived: VecDeque::new(),
            events: VecDeque::new(),
        }
    }

    fn link(&mut self, peer: PeerId) -> Result<&mut Link, Refused> {
        self.links
            .get_mut(&peer)
            .ok_or(Refused::NotConnected { peer })
    }

    /// Looks at one arrival, and reports it at once if it is a frame.
    fn handle(&mut self, arrival: Arrival, sink: &mut dyn FnMut(Event<'_>)) -> usize {
        let Arrival {
            peer,
            link: id,
            packet,
            ..
        } = arrival;
        match packet {
            Packet::Up { dialled } => {
                self.dialling.remove(&peer);
                self.links.insert(peer, Link::new(id));
                self.events.push_back(Event::Connected { peer, dialled });
            }
            Packet::Unanswered(reason) => {
                if self.dialling.remove(&peer) {
                    self.events.push_back(Event::ConnectFailed { peer, reason });
                }
            }
            Packet::Down(reason) => {
                if self.links.get(&peer).is_some_and(|link| link.id == id) {
                    self.lose(peer, reason);
                }
            }
            Packet::Frame(bytes) => {
                if self.links.get(&peer).is_some_and(|link| link.id == id) {
                    sink(Event::Frame {
                        peer,
                        bytes: &bytes,
                    });
                    return 1;
                }
            }
            Packet::Body { body, bytes, last } => {
                if self.links.get(&peer).is_some_and(|link| link.id == id) {
                    self.handle_body(peer, body, &bytes, last);
                }
            }
        }
        0
    }

    fn handle_body(&mut self, peer: PeerId, body: BodyId, bytes: &[u8], last: Last) {
        let Some(link) = self.links.get_mut(&peer) else {
            return;
        };
        let Some(place) = link.receiving.get_mut(&body) else {
            return self.expel(peer, "a body nobody asked for");
        };
        let left = place.remaining().checked_sub(bytes.len());
        let fits = left.is_some_and(|left| (left == 0) == (last == Last::Yes));
        if !fits {
            return self.expel(peer, "a body of another length");
        }
        place.copy_from(bytes);
        if last == Last::Yes {
            link.receiving.remove(&body);
            self.events.push_back(Event::BodyReceived { peer, body });
        }
    }

    /// Ends a link because of what the other end did.
    fn expel(&mut self, peer: PeerId, what: &'static str) {
        self.net.network().disconnect(self.me, peer);
        self.arrived.retain(|arrival| arrival.peer != peer);
        self.lose(peer, LossReason::Violation(what));
    }

    fn lose(&mut self, peer: PeerId, reason: LossReason) {
        let Some(link) = self.links.remove(&peer) else {
            return;
        };
        // Bodies that are sent but not yet reported have their `BodySent` in the queue.
        for (body, _) in link.sending {
            self.events.push_back(Event::BodyFailed {
                peer,
                body,
                way: Way::Sending,
                in_place: 0,
            });
        }
        for (body, place) in link.receiving {
            self.events.push_back(Event::BodyFailed {
                peer,
                body,
                way: Way::Receiving,
                in_place: place.filled(),
            });
        }
        self.events.push_back(Event::Lost { peer, reason });
    }

    /// Puts pieces of bodies on their way, a piece of each in turn, while there is room.
    fn push_bodies(&mut self) {
        let mut network = self.net.network();
        for (&peer, link) in &mut self.links {
            while network.bytes_on_the_way(self.me, peer) < BODY_WINDOW {
                let Some((body, mut source)) = link.sending.pop_front() else {
                    break;
                };
                let max_piece = network.options().max_piece;
                let len = source
                    .remaining()
                    .min(network.random().usize(1..=max_piece.max(1)));
                let mut bytes = Vec::with_capacity(len);
                source.copy_to(len, &mut bytes);
                let last = if source.remaining() == 0 {
                    Last::Yes
                } else {
                    Last::No
                };
                network.send(self.me, peer, link.id, Packet::Body { body, bytes, last });
                match last {
                    Last::Yes => self.events.push_back(Event::BodySent { peer, body }),
                    Last::No => link.sending.push_back((body, source)),
                }
            }
        }
    }

    fn promise_room(&mut self) {
        let network = self.net.network();
        for (&peer, link) in &mut self.links {
            if link.room == Room::Wanted
                && network.bytes_on_the_way(self.me, peer) + MAX_FRAME <= WINDOW
            {
                link.room = Room::Promised;
                self.events.push_back(Event::Writable { peer });
            }
        }
    }

    /// Makes the wakeup say whether there is something left to do.
    fn settle(&self) {
        let network = self.net.network();
        let has_room = |peer, limit| network.bytes_on_the_way(self.me, peer) < limit;
        let can_go_on = self.links.iter().any(|(&peer, link)| {
            (!link.sending.is_empty() && has_room(peer, BODY_WINDOW))
                || (link.room == Room::Wanted && has_room(peer, WINDOW - MAX_FRAME + 1))
        });
        let is_busy = !self.events.is_empty() || !self.arrived.is_empty() || can_go_on;
        // Under the lock, so that nobody rings between the look and the hush.
        hush(&self.doorbell);
        if is_busy || network.is_awaited(self.me) {
            ring(&self.doorbell);
        }
    }
}

impl Driver for SimDriver {
    fn caps(&self) -> &Caps {
        &self.caps
    }

    fn wakeup(&self) -> Option<BorrowedFd<'_>> {
        Some(self.doorbell.as_fd())
    }

    fn locator(&self) -> &Locator {
        &self.locator
    }

    fn connect(&mut self, peer: PeerId, at: &Locator) -> Result<(), ConnectError> {
        if peer == self.me {
            return Err(ConnectError::Myself { peer });
        }
        let Some(target) = peer_at(at) else {
            return Err(ConnectError::BadLocator {
                why: format!("{at} does not read sim/NUMBER"),
            });
        };
        let is_unreported = self.events.iter().any(|event| event.peer() == peer);
        if self.links.contains_key(&peer) || is_unreported || !self.dialling.insert(peer) {
            return Err(ConnectError::Already { peer });
        }
        self.net.network().dial(self.me, peer, target);
        self.settle();
        Ok(())
    }

    fn disconnect(&mut self, peer: PeerId) {
        self.net.network().disconnect(self.me, peer);
        self.dialling.remove(&peer);
        self.links.remove(&peer);
        self.arrived.retain(|arrival| arrival.peer != peer);
        self.events.retain(|event| event.peer() != peer);
        self.settle();
    }

    fn send_frame(&mut self, peer: PeerId, frame: &[IoSlice<'_>]) -> Result<(), Refused> {
        let (me, net) = (self.me, self.net.clone());
        let link = self.link(peer)?;
        let len = frame.iter().map(|slice| slice.len()).sum();
        if len > MAX_FRAME {
            return Err(Refused::TooLong {
                len,
                max: MAX_FRAME,
            });
        }
        let mut network = net.network();
        let is_full = network.bytes_on_the_way(me, peer) + len > WINDOW;
        let busy_per_mille = network.options().busy_per_mille;
        let is_unlucky =
            link.room != Room::Promised && network.random().u64(..1000) < busy_per_mille;
        if is_full || is_unlucky {
            link.room = Room::Wanted;
            drop(network);
            self.settle();
            return Err(Refused::Busy { peer });
        }
        // A frame that is taken while `Writable` is awaited does not make it superfluous.
        if link.room == Room::Promised {
            link.room = Room::Unsaid;
        }
        network.send(
            me,
            peer,
            link.id,
            Packet::Frame(
                frame
                    .iter()
                    .flat_map(|slice| slice.iter())
                    .copied()
                    .collect(),
            ),
        );
        Ok(())
    }

    unsafe fn send_body(
        &mut self,
        peer: PeerId,
        body: BodyId,
        parts: &[Part],
    ) -> Result<(), Refused> {
        let link = self.link(peer)?;
        check(parts.len(), parts.iter().map(Part::len).sum())?;
        if link.sent.contains(&body) {
            return Err(Refused::BodyInUse { body });
        }
        if link.sent.len() == MAX_BODIES {
            return Err(Refused::TooManyBodies { max: MAX_BODIES });
        }
        // SAFETY: the caller's promise lasts until line 17 of the contract frees the parts. The gather is
        // dropped when the body's last piece is copied, before `BodySent`; with the link, by `lose`
        // before `BodyFailed` and `Lost`, or by `disconnect`; or with the driver.
        link.sending
            .push_back((body, unsafe { Gather::new(parts) }));
        link.sent.insert(body);
        self.settle();
        Ok(())
    }

    unsafe fn recv_body(
        &mut self,
        peer: PeerId,
        body: BodyId,
        parts: &[PartMut],
    ) -> Result<(), Refused> {
        let link = self.link(peer)?;
        check(parts.len(), parts.iter().map(PartMut::len).sum())?;
        if link.receiving.contains_key(&body) {
            return Err(Refused::BodyInUse { body });
        }
        if link.receiving.len() == MAX_BODIES {
            return Err(Refused::TooManyBodies { max: MAX_BODIES });
        }
        // SAFETY: the caller's promise lasts until line 17 of the contract frees the parts. The scatter is
        // dropped when the last piece is in place, before `BodyReceived`; with the link, by `lose`
        // before `BodyFailed` and `Lost`, or by `disconnect`; or with the driver.
        link.receiving.insert(body, unsafe { Scatter::new(parts) });
        Ok(())
    }

    fn poll(
        &mut self,
        budget: usize,
        sink: &mut dyn FnMut(Event<'_>),
    ) -> Result<usize, DriverError> {
        self.net.network().tick();
        self.push_bodies();
        self.promise_room();
        let mut reported = 0;
        while reported < budget {
            if let Some(event) = self.events.pop_front() {
                if let Event::BodySent { peer, body } = event {
                    if let Some(link) = self.links.get_mut(&peer) {
                        link.sent.remove(&body);
                    }
                }
                sink(event);
                reported += 1;
                continue;
            }
            if self.arrived.is_empty() {
                let left = budget - reported;
                self.arrived = self.net.network().take(self.me, self.attachment, left);
            }
            let Some(arrival) = self.arrived.pop_front() else {
                break;
            };
            reported += self.handle(arrival, sink);
        }
        self.settle();
        Ok(reported)
    }
}

impl Drop for SimDriver {
    fn drop(&mut self) {
        self.net.network().detach(self.me, self.attachment);
    }
}

impl Link {
    fn new(id: LinkId) -> Self {
        Self {
            id,
            sending: VecDeque::new(),
            sent: BTreeSet::new(),
            receiving: BTreeMap::new(),
            room: Room::Unsaid,
        }
    }
}

fn check(parts: usize, len: usize) -> Result<(), Refused> {
    if parts > MAX_PARTS {
        return Err(Refused::TooManyParts {
            parts,
            max: MAX_PARTS,
        });
    }
    if len > MAX_BODY {
        return Err(Refused::TooLong { len, max: MAX_BODY });
    }
    Ok(())
}

/// Small, so that tests of long frames are short.
const MAX_FRAME: usize = 16 * 1024;
/// The least that the contract allows, so that a layer above meets the bound in its tests.
const MAX_BODY: usize = Caps::LEAST_BODY;
/// As above.
const MAX_PARTS: usize = Caps::LEAST_PARTS;
/// More than the layer above needs, and few enough to fill up in a test.
const MAX_BODIES: usize = 64;
/// Bytes on their way to one peer before a frame is refused.
const WINDOW: usize = 256 * 1024;
/// Bytes on their way to one peer before bodies wait: less than `WINDOW` by more than a frame, so that
/// bodies never use up the room that `Writable` promised.
const BODY_WINDOW: usize = 128 * 1024;
