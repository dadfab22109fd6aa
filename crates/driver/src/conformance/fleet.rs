//! A few drivers on one network, what they reported, and the memory they were lent.
//!
//! Cases are written against it, in terms of process numbers; `lending` has what concerns bodies.

use std::collections::BTreeMap;
use std::io::IoSlice;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use fastrand::Rng;
use rustix::event::{PollFd, PollFlags, Timespec};

use super::Harness;
use crate::{
    BodyId, Caps, ConnectFailure, Driver, Event, Locator, LossReason, PeerId, Refused, Way,
};

/// An event, kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Seen {
    Connected(PeerId),
    ConnectFailed(PeerId, ConnectFailure),
    Frame(PeerId, Vec<u8>),
    BodySent(PeerId, BodyId),
    BodyReceived(PeerId, BodyId),
    BodyWaiting(PeerId, BodyId),
    BodyFailed(PeerId, BodyId, Way),
    Writable(PeerId),
    Lost(PeerId, LossReason),
}

/// Drivers, numbered from 0 in the order they were made.
pub(super) struct Fleet<H: Harness> {
    // Before the memory, so that drivers are gone before what they were lent.
    ends: Vec<End<H::Driver>>,
    pub(super) received: BTreeMap<(usize, usize, BodyId), Vec<Vec<u8>>>,
    pub(super) sent: BTreeMap<(usize, usize, BodyId), Vec<Vec<u8>>>,
    pub(super) retired: Vec<Vec<Vec<u8>>>,
    harness: H,
    pub(super) note: String,
}

struct End<D> {
    id: PeerId,
    driver: Option<D>,
    seen: Vec<Seen>,
    /// What it said of its links, in order: whether it dialled.
    dialled: Vec<bool>,
    /// What it said of bodies that it did not receive: how many bytes are in place.
    in_place: BTreeMap<BodyId, usize>,
}

impl<H: Harness> Fleet<H> {
    /// `size` drivers without links.
    pub(super) fn new(harness: H, size: usize) -> Self {
        let mut fleet = Self {
            ends: Vec::new(),
            received: BTreeMap::new(),
            sent: BTreeMap::new(),
            retired: Vec::new(),
            harness,
            note: String::new(),
        };
        (0..size).for_each(|index| fleet.add(PeerId(FIRST_ID + index as u64)));
        fleet
    }

    /// `size` drivers with a link between any two, and nothing reported yet.
    pub(super) fn linked(harness: H, size: usize) -> Self {
        let mut fleet = Self::new(harness, size);
        for a in 0..size {
            (a + 1..size).for_each(|b| fleet.link(a, b));
        }
        fleet
    }

    /// Adds to the message of every failure, such as the seed.
    pub(super) fn note(&mut self, note: String) {
        self.note = note;
    }

    pub(super) fn add(&mut self, id: PeerId) {
        let driver = Some(self.harness.driver(id));
        self.ends.push(End {
            id,
            driver,
            seen: Vec::new(),
            dialled: Vec::new(),
            in_place: BTreeMap::new(),
        });
    }

    /// Drops a driver.
    pub(super) fn retire(&mut self, at: usize) {
        self.ends[at].driver = None;
    }

    /// Gives a retired process a new driver with the same id.
    pub(super) fn revive(&mut self, at: usize) {
        assert!(
            self.ends[at].driver.is_none(),
            "revived a process that is alive"
        );
        self.ends[at].driver = Some(self.harness.driver(self.ends[at].id));
        self.ends[at].seen.clear();
    }

    pub(super) fn id(&self, at: usize) -> PeerId {
        self.ends[at].id
    }

    pub(super) fn driver(&mut self, at: usize) -> &mut H::Driver {
        self.ends[at]
            .driver
            .as_mut()
            .expect("a driver that was not retired")
    }

    /// Takes a driver out; `put_back` returns it.
    pub(super) fn take_out(&mut self, at: usize) -> H::Driver {
        self.ends[at]
            .driver
            .take()
            .expect("a driver that was not retired")
    }

    pub(super) fn put_back(&mut self, at: usize, driver: H::Driver) {
        self.ends[at].driver = Some(driver);
    }

    pub(super) fn caps(&mut self, at: usize) -> Caps {
        self.driver(at).caps().clone()
    }

    pub(super) fn locator(&mut self, at: usize) -> Locator {
        self.driver(at).locator().clone()
    }

    pub(super) fn nobody(&mut self) -> Locator {
        self.harness.nobody()
    }

    pub(super) fn seen(&self, at: usize) -> &[Seen] {
        &self.ends[at].seen
    }

    /// What was reported since the last time, or since the link was made.
    pub(super) fn take(&mut self, at: usize) -> Vec<Seen> {
        std::mem::take(&mut self.ends[at].seen)
    }

    /// Puts back what was taken.
    pub(super) fn restore(&mut self, at: usize, seen: Vec<Seen>) {
        self.ends[at].seen.splice(0..0, seen);
    }

    pub(super) fn size(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn count(&self, at: usize, seen: &Seen) -> usize {
        self.ends[at]
            .seen
            .iter()
            .filter(|&other| other == seen)
            .count()
    }

    /// Whether one end said of its first link that it dialled.
    pub(super) fn has_dialled(&self, at: usize) -> Option<bool> {
        self.ends[at].dialled.first().copied()
    }

    /// How many bytes of a body that failed one end said to be in place.
    pub(super) fn in_place(&self, at: usize, body: BodyId) -> Option<usize> {
        self.ends[at].in_place.get(&body).copied()
    }

    /// The frames that arrived at one end from another, in order.
    pub(super) fn frames(&self, at: usize, from: usize) -> Vec<&[u8]> {
        let from = self.id(from);
        let frame = |seen: &'_ Seen| matches!(seen, Seen::Frame(peer, _) if *peer == from);
        let frames = self.ends[at].seen.iter().filter(|seen| frame(seen));
        frames
            .map(|seen| {
                if let Seen::Frame(_, bytes) = seen {
                    bytes.as_slice()
                } else {
                    &[]
                }
            })
            .collect()
    }

    pub(super) fn losses(&self, at: usize, of: usize) -> usize {
        let of = self.id(of);
        self.ends[at]
            .seen
            .iter()
            .filter(|seen| matches!(seen, Seen::Lost(peer, _) if *peer == of))
            .count()
    }

    pub(super) fn connect(&mut self, from: usize, to: usize) {
        let (peer, at) = (self.id(to), self.locator(to));
        self.driver(from)
            .connect(peer, &at)
            .expect("a connect that the contract allows");
    }

    /// Makes a link and forgets that it was reported.
    pub(super) fn link(&mut self, from: usize, to: usize) {
        self.connect(from, to);
        self.await_link(from, to);
        for (at, other) in [(from, to), (to, from)] {
            let up = Seen::Connected(self.id(other));
            let index = self.ends[at]
                .seen
                .iter()
                .position(|seen| *seen == up)
                .expect("just awaited");
            self.ends[at].seen.remove(index);
        }
    }

    pub(super) fn await_link(&mut self, a: usize, b: usize) {
        let (to_a, to_b) = (Seen::Connected(self.id(a)), Seen::Connected(self.id(b)));
        self.until("both ends report the link", |fleet| {
            fleet.count(a, &to_b) > 0 && fleet.count(b, &to_a) > 0
        });
    }

    pub(super) fn disconnect(&mut self, from: usize, to: usize) {
        let peer = self.id(to);
        self.driver(from).disconnect(peer);
    }

    pub(super) fn cut(&mut self, a: usize, b: usize) {
        let (id_a, id_b) = (self.id(a), self.id(b));
        let (mut driver_a, mut driver_b) = (self.take_out(a), self.take_out(b));
        self.harness
            .cut((id_a, &mut driver_a), (id_b, &mut driver_b));
        self.put_back(a, driver_a);
        self.put_back(b, driver_b);
    }

    /// Offers a frame once.
    pub(super) fn offer(&mut self, from: usize, to: usize, frame: &[u8]) -> Result<(), Refused> {
        let peer = self.id(to);
        self.driver(from).send_frame(peer, &[IoSlice::new(frame)])
    }

    /// Sends a frame, and waits for room if there is none.
    pub(super) fn send(&mut self, from: usize, to: usize, frame: &[u8]) {
        self.send_slices(from, to, &[IoSlice::new(frame)]);
    }

    pub(super) fn send_slices(&mut self, from: usize, to: usize, frame: &[IoSlice<'_>]) {
        let peer = self.id(to);
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.driver(from).send_frame(peer, frame) {
                Ok(()) => return,
                Err(Refused::Busy { .. }) => self.pump(),
                Err(refused) => panic!("frame refused: {refused}"),
            };
            assert!(Instant::now() < deadline, "never any room; {}", self.note);
        }
    }

    /// Polls one driver.
    pub(super) fn poll(&mut self, at: usize, budget: usize) -> usize {
        let mut events = Vec::new();
        let End {
            driver,
            dialled: links,
            in_place: cut,
            ..
        } = &mut self.ends[at];
        let driver = driver.as_mut().expect("a driver that was not retired");
        let reported = driver.poll(budget, &mut |event| {
            match event {
                Event::Connected { dialled, .. } => links.push(dialled),
                Event::BodyFailed {
                    way: Way::Receiving,
                    body,
                    in_place,
                    ..
                } => drop(cut.insert(body, in_place)),
                _ => {}
            }
            events.push(Seen::from(event));
        });
        let reported = reported.expect("a network that works");
        assert_eq!(
            reported,
            events.len(),
            "poll returns how many events it reported"
        );
        assert!(reported <= budget, "poll reported more than its budget");
        self.ends[at].seen.append(&mut events);
        reported
    }

    /// Polls every driver once, and rests a moment if there was nothing.
    pub(super) fn pump(&mut self) -> usize {
        let all: Vec<usize> = (0..self.ends.len()).collect();
        self.pump_only(&all)
    }

    /// Polls these drivers once, and rests a moment if there was nothing.
    pub(super) fn pump_only(&mut self, ends: &[usize]) -> usize {
        let alive = ends
            .iter()
            .copied()
            .filter(|&at| self.ends[at].driver.is_some());
        let alive: Vec<usize> = alive.collect();
        let reported = alive.iter().map(|&at| self.poll(at, POLL_BUDGET)).sum();
        if reported == 0 {
            self.rest(&alive);
        }
        reported
    }

    /// Polls until `done`; fails when that takes too long.
    pub(super) fn until(&mut self, what: &str, done: impl Fn(&Self) -> bool) {
        let all: Vec<usize> = (0..self.ends.len()).collect();
        self.until_only(&all, what, done);
    }

    /// Polls some of the drivers until `done`.
    pub(super) fn until_only(&mut self, ends: &[usize], what: &str, done: impl Fn(&Self) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !done(self) {
            self.pump_only(ends);
            if Instant::now() > deadline {
                let seen: Vec<_> = self
                    .ends
                    .iter()
                    .map(|end| end.seen.iter().rev().take(5))
                    .collect();
                panic!(
                    "waited in vain until {what}; {}; last events: {seen:?}",
                    self.note
                );
            }
        }
    }

    /// Polls until nothing is reported for a while.
    pub(super) fn settle(&mut self) {
        let mut quiet_since = Instant::now();
        while quiet_since.elapsed() < QUIET {
            if self.pump() > 0 {
                quiet_since = Instant::now();
            }
        }
    }

    /// Whether a driver's wakeup is readable within `patience`.
    pub(super) fn is_awake(&mut self, at: usize, patience: Duration) -> bool {
        let wakeup = self.driver(at).wakeup().expect("a driver that can sleep");
        is_readable(&[wakeup], patience)
    }

    fn rest(&self, ends: &[usize]) {
        let drivers = ends.iter().filter_map(|&at| self.ends[at].driver.as_ref());
        let wakeups: Vec<BorrowedFd<'_>> = drivers.filter_map(Driver::wakeup).collect();
        is_readable(&wakeups, REST);
    }
}

impl From<Event<'_>> for Seen {
    fn from(event: Event<'_>) -> Self {
        match event {
            Event::Connected { peer, .. } => Self::Connected(peer),
            Event::ConnectFailed { peer, reason } => Self::ConnectFailed(peer, reason),
            Event::Frame { peer, bytes } => Self::Frame(peer, bytes.to_vec()),
            Event::BodySent { peer, body } => Self::BodySent(peer, body),
            Event::BodyReceived { peer, body } => Self::BodyReceived(peer, body),
            Event::BodyWaiting { peer, body } => Self::BodyWaiting(peer, body),
            Event::BodyFailed {
                peer, body, way, ..
            } => Self::BodyFailed(peer, body, way),
            Event::Writable { peer } => Self::Writable(peer),
            Event::Lost { peer, reason } => Self::Lost(peer, reason),
        }
    }
}

/// Bytes that no other seed gives.
pub(super) fn pattern(seed: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    Rng::with_seed(seed).fill(&mut bytes);
    bytes
}

/// Cuts bytes into parts of these lengths; what is left goes in a last part.
pub(super) fn split(bytes: &[u8], lens: &[usize]) -> Vec<Vec<u8>> {
    let mut rest = bytes;
    let mut parts = Vec::new();
    for &len in lens {
        let (part, after) = rest.split_at(len);
        parts.push(part.to_vec());
        rest = after;
    }
    if !rest.is_empty() {
        parts.push(rest.to_vec());
    }
    parts
}

fn is_readable(wakeups: &[BorrowedFd<'_>], patience: Duration) -> bool {
    let mut fds: Vec<PollFd<'_>> = wakeups
        .iter()
        .map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN))
        .collect();
    let nanos = i64::from(patience.subsec_nanos());
    let timeout = Timespec {
        tv_sec: patience.as_secs() as i64,
        tv_nsec: nanos,
    };
    // An interrupted wait is a short one.
    rustix::event::poll(&mut fds, Some(&timeout)).is_ok_and(|ready| ready > 0)
}

/// Large enough that a driver which takes the low half of an id only is found out.
const FIRST_ID: u64 = 0x0007_0000_0000;
/// Events per poll: few enough that bursts take several polls.
const POLL_BUDGET: usize = 64;
/// How long a case waits for something that must happen: far longer than it takes on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long nothing must happen before we believe that nothing will.
const QUIET: Duration = Duration::from_millis(25);
/// How long to wait when there is nothing to do; a driver without wakeup is polled this often.
const REST: Duration = Duration::from_millis(1);
