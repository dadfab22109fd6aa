//! The bodies of one link: where they go to, where they come from, and how far they are.
//!
//! A body is written by its sender straight into the receiver's memory, through an endpoint that this link
//! shares with no other. That is what makes the end of a link safe: closing the endpoint ends every use of
//! lent memory at once, whatever the other end does (`docs/design/libfabric.md`).
//!
//! The receiver registers its parts and says so by a grant. The sender writes as soon as it has both body
//! and grant; if the grant is not there yet it makes an offer, by which the receiver checks that it asked.
//!
//! This file has unsafe code because it hands lent memory to the provider.
#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::io::{self, IoSlice, IoSliceMut};
use std::ptr;
use std::rc::Rc;

use mizzen_driver::{BodyId, Gather, Refused, Scatter};

use crate::domain::Domain;
use crate::endpoint::{Address, Completion, Endpoint, Posted, Write};
use crate::message::{MAX_BODIES, MAX_PARTS, Place};
use crate::registration::{Access, Registration};

#[derive(Debug, Default)]
pub(crate) struct Bodies {
    // First: closing the endpoint ends every use of what follows.
    endpoint: Option<Endpoint>,
    /// The other end's endpoint: its name, and its address in terms of ours.
    name: Option<Box<[u8]>>,
    to: Option<Address>,
    receiving: BTreeMap<BodyId, Receiving>,
    sending: BTreeMap<BodyId, Sending>,
    /// Grants that no body was sent for yet.
    granted: BTreeMap<BodyId, Vec<Place>>,
    ended: Vec<Completion>,
}

/// A body that was asked for.
#[derive(Debug)]
struct Receiving {
    /// Dropped before the memory is given back: later writes find no key.
    _registrations: Vec<Registration>,
    _memory: Scatter,
    len: usize,
}

/// A body that is being sent.
#[derive(Debug)]
struct Sending {
    registrations: Vec<(usize, usize, Registration)>,
    /// What is left to be written, and the promise that it is there; none once the end is to be reported.
    memory: Option<Gather>,
    len: usize,
    /// Where it goes, in reverse order; none before the grant.
    places: Option<Vec<Place>>,
    in_flight: usize,
}

/// What is to be said after a body was accepted for sending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    Offer,
    Nothing,
}

impl Bodies {
    /// Whether a body may be asked for, or sent, under this id.
    pub(crate) fn check(&self, body: BodyId, way: mizzen_driver::Way) -> Result<(), Refused> {
        let (is_used, count) = match way {
            mizzen_driver::Way::Receiving => {
                (self.receiving.contains_key(&body), self.receiving.len())
            }
            mizzen_driver::Way::Sending => (self.sending.contains_key(&body), self.sending.len()),
        };
        if is_used {
            return Err(Refused::BodyInUse { body });
        }
        if count >= MAX_BODIES {
            return Err(Refused::TooManyBodies { max: MAX_BODIES });
        }
        Ok(())
    }

    /// Opens the endpoint of this link if it was not, or takes one that was opened ahead; says whether it was not.
    pub(crate) fn open(
        &mut self,
        domain: &Rc<Domain>,
        spares: &mut Vec<Endpoint>,
    ) -> io::Result<bool> {
        if self.endpoint.is_some() {
            return Ok(false);
        }
        let endpoint = spares.pop().map_or_else(|| Endpoint::open(domain), Ok)?;
        self.to = self
            .name
            .as_ref()
            .map(|name| endpoint.insert(name))
            .transpose()?;
        self.endpoint = Some(endpoint);
        Ok(true)
    }

    /// Where a body goes, for the grant. The endpoint is open.
    pub(crate) fn receive(&mut self, body: BodyId, mut memory: Scatter) -> io::Result<Vec<Place>> {
        let endpoint = self.endpoint.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        let len = memory.remaining();
        let mut slices: Vec<IoSliceMut<'_>> = Vec::new();
        slices.resize_with(MAX_PARTS, || IoSliceMut::new(&mut []));
        let used = memory.fill(len, &mut slices);
        let runs: Vec<(*const u8, usize)> = slices[..used]
            .iter_mut()
            .map(|slice| (slice.as_mut_ptr().cast_const(), slice.len()))
            .collect();
        let (mut places, mut registrations) = (Vec::new(), Vec::new());
        for (start, len) in runs {
            // SAFETY: `memory` is the promise that the parts are ours alone to write; both are dropped
            // together, the registration first, and the endpoint before them.
            let registration = unsafe {
                endpoint
                    .domain()
                    .register(endpoint, start, len, Access::Target)?
            };
            let (address, key) = registration.remote();
            places.push(Place { address, len, key });
            registrations.push(registration);
        }
        let receiving = Receiving {
            _registrations: registrations,
            _memory: memory,
            len,
        };
        self.receiving.insert(body, receiving);
        Ok(places)
    }

    /// Accepts a body for sending. The endpoint is open.
    pub(crate) fn send(&mut self, body: BodyId, memory: Gather) -> io::Result<Next> {
        let endpoint = self.endpoint.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        let len = memory.remaining();
        let registrations = register_sources(endpoint, &memory)?;
        let fits = |places: &Vec<Place>| places.iter().map(|place| place.len).sum::<usize>() == len;
        let places = match self.granted.get(&body).is_some_and(fits) {
            true => self.granted.remove(&body).map(reversed),
            false => None,
        };
        let next = if places.is_some() {
            Next::Nothing
        } else {
            Next::Offer
        };
        let sending = Sending {
            registrations,
            memory: Some(memory),
            len,
            places,
            in_flight: 0,
        };
        self.sending.insert(body, sending);
        Ok(next)
    }

    /// The other end says through which endpoint its memory is reached: the first, or a new one, which it may
    /// have while it expects nothing. A name has `len` bytes.
    pub(crate) fn handle_port(&mut self, name: &[u8], len: usize) -> Result<(), &'static str> {
        let is_expected = |sending: &Sending| sending.memory.is_some() && sending.places.is_some();
        if !self.granted.is_empty() || self.sending.values().any(is_expected) {
            return Err("another endpoint for bodies");
        }
        if name.len() != len {
            return Err("an endpoint that cannot be");
        }
        if let Some(endpoint) = &self.endpoint {
            self.to
                .take()
                .into_iter()
                .for_each(|old| endpoint.remove(old));
            self.to = Some(
                endpoint
                    .insert(name)
                    .map_err(|_| "an endpoint that cannot be")?,
            );
        }
        self.name = Some(name.into());
        Ok(())
    }

    /// The other end says where a body goes.
    pub(crate) fn handle_grant(
        &mut self,
        body: BodyId,
        places: Vec<Place>,
    ) -> Result<(), &'static str> {
        if self.name.is_none() {
            return Err("a place without an endpoint");
        }
        if self.granted.contains_key(&body) || self.granted.len() >= MAX_BODIES {
            return Err("more places than bodies");
        }
        let len: usize = places.iter().map(|place| place.len).sum();
        match self.sending.get_mut(&body) {
            Some(sending) if sending.places.is_none() && sending.len == len => {
                sending.places = Some(reversed(places));
            }
            // For a body to come; or for one of another length, which the receiver will find out.
            _ => drop(self.granted.insert(body, places)),
        }
        Ok(())
    }

    /// The other end has a body for us: whether it was asked for.
    pub(crate) fn handle_offer(&self, body: BodyId, len: usize) -> Result<(), &'static str> {
        match self.receiving.get(&body) {
            None => Err("a body that was not asked for"),
            Some(receiving) if receiving.len != len => Err("a body of another length"),
            Some(_) => Ok(()),
        }
    }

    /// A body is in its place: its memory is the caller's again.
    pub(crate) fn handle_complete(&mut self, body: BodyId, len: usize) -> Result<(), &'static str> {
        self.handle_offer(body, len)?;
        self.receiving.remove(&body);
        Ok(())
    }

    /// Writes what can be written, and adds the bodies that are in their place to `done`.
    pub(crate) fn poll(&mut self, done: &mut Vec<(BodyId, usize)>) -> io::Result<()> {
        let Some(endpoint) = self.endpoint.as_ref() else {
            return Ok(());
        };
        endpoint.poll(&mut self.ended)?;
        for completion in self.ended.drain(..) {
            if let Some(kind) = completion.failure {
                return Err(kind.into());
            }
            if let Some(sending) = self.sending.get_mut(&BodyId(completion.context as u64)) {
                sending.in_flight = sending.in_flight.saturating_sub(1);
            }
        }
        let to = self.to;
        for (&body, sending) in &mut self.sending {
            let Some(to) = to.filter(|_| sending.places.is_some() && sending.memory.is_some())
            else {
                continue;
            };
            sending.write(endpoint, to, body)?;
            if sending.is_done() {
                sending.registrations.clear();
                sending.memory = None;
                done.push((body, sending.len));
            }
        }
        Ok(())
    }

    /// The end of a body that was sent is reported: its id is free.
    pub(crate) fn forget(&mut self, body: BodyId) {
        self.sending.remove(&body);
    }

    /// Whether there is something to poll for.
    pub(crate) fn are_in_flight(&self) -> bool {
        let is_going = |sending: &Sending| sending.memory.is_some();
        !self.receiving.is_empty() || self.sending.values().any(is_going)
    }

    pub(crate) fn endpoint(&self) -> Option<&Endpoint> {
        self.endpoint.as_ref()
    }

    /// Ends every use of lent memory.
    pub(crate) fn close(&mut self) {
        self.endpoint = None;
        self.to = None;
    }

    /// Gives up all bodies that are in flight: those being sent, then those being received.
    pub(crate) fn fail(&mut self) -> (Vec<BodyId>, Vec<BodyId>) {
        self.close();
        let sending = std::mem::take(&mut self.sending);
        let unsent = sending
            .iter()
            .filter(|(_, sending)| sending.memory.is_some());
        let unsent = unsent.map(|(&body, _)| body).collect();
        let unreceived = std::mem::take(&mut self.receiving).into_keys().collect();
        (unsent, unreceived)
    }
}

impl Sending {
    /// Hands the provider as much as it takes and as fairness to other bodies allows.
    fn write(&mut self, endpoint: &Endpoint, to: Address, body: BodyId) -> io::Result<()> {
        let limits = *endpoint.domain().limits();
        let slices_limit = limits.slices.min(MAX_SLICES);
        while self.in_flight < MAX_PIECES {
            let (Some(place), Some(memory)) = (
                self.places.as_mut().and_then(|places| places.last_mut()),
                self.memory.as_mut(),
            ) else {
                return Ok(());
            };
            let limit = place.len.min(MAX_PIECE).min(limits.transfer);
            let mut slices = [IoSlice::new(&[]); MAX_SLICES];
            let used = memory.fill(limit, &mut slices[..slices_limit]);
            let mut descriptors = [ptr::null_mut(); MAX_SLICES];
            for (slice, descriptor) in slices[..used].iter().zip(&mut descriptors) {
                *descriptor = descriptor_of(&self.registrations, slice.as_ptr().addr());
            }
            let len: usize = slices[..used].iter().map(|slice| slice.len()).sum();
            let write = Write {
                slices: &slices[..used],
                descriptors: &mut descriptors,
                to,
                address: place.address,
                key: place.key,
                context: body.0 as usize,
            };
            // SAFETY: `memory` is the promise that the parts stay as they are; it is dropped after the last
            // completion, or after the endpoint.
            if unsafe { endpoint.write(write)? } == Posted::Again {
                return Ok(());
            }
            memory.advance(len);
            self.in_flight += 1;
            place.address += len as u64;
            place.len -= len;
            if place.len == 0 {
                self.places.as_mut().map(Vec::pop);
            }
        }
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.in_flight == 0 && self.places.as_ref().is_some_and(Vec::is_empty)
    }
}

/// Registers the memory of a body that is sent, if the provider wants that.
fn register_sources(
    endpoint: &Endpoint,
    memory: &Gather,
) -> io::Result<Vec<(usize, usize, Registration)>> {
    if !endpoint.domain().wants_local() {
        return Ok(Vec::new());
    }
    let mut slices = vec![IoSlice::new(&[]); MAX_PARTS];
    let used = memory.fill(memory.remaining(), &mut slices);
    let mut registrations = Vec::new();
    for slice in &slices[..used] {
        let domain = endpoint.domain();
        // SAFETY: the slices are parts of the body, which the caller drops after the registrations.
        let registration =
            unsafe { domain.register(endpoint, slice.as_ptr(), slice.len(), Access::Source)? };
        registrations.push((slice.as_ptr().addr(), slice.len(), registration));
    }
    Ok(registrations)
}

fn descriptor_of(registrations: &[(usize, usize, Registration)], address: usize) -> *mut c_void {
    let holds =
        |&&(start, len, _): &&(usize, usize, Registration)| (start..start + len).contains(&address);
    let found = registrations.iter().find(holds);
    found.map_or(ptr::null_mut(), |(_, _, registration)| {
        registration.descriptor()
    })
}

fn reversed(mut places: Vec<Place>) -> Vec<Place> {
    places.reverse();
    places
}

/// Bytes of one write: so many that its overhead does not count, so few that bodies take turns.
const MAX_PIECE: usize = 4 << 20;
/// Writes of one body under way at once.
const MAX_PIECES: usize = 2;
/// Slices of one write.
const MAX_SLICES: usize = 8;
