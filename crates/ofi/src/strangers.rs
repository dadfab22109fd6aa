//! Tests of what does not come from an honest peer: bytes from strangers, and from a peer that lies.
//!
//! They need an endpoint that says what it likes, hence they are in the crate.

#[path = "../../tcp/tests/common/mod.rs"]
mod common;
#[path = "../tests/common/skip.rs"]
mod skip;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use common::Job;
use mizzen_driver::{BodyId, Driver, Event, LossReason, PeerId};
use mizzen_tcp::{Records, TcpDriver, TcpOptions};
pub(crate) use skip::skip;

use crate::driver::OfiDriver;
use crate::endpoint::{Address, Posted};
use crate::library::Library;
use crate::link::Stage;
use crate::message::{Header, Kind, MAX_FRAME, Place, encode_body, encode_grant};
use crate::options::{OfiOptions, OpenError};
use crate::pool::Pool;
use crate::port::Port;

/// Two drivers with a link.
struct Pair {
    one: OfiDriver,
    two: OfiDriver,
    /// What each reported, apart from the link.
    seen: [Vec<String>; 2],
}

impl Pair {
    /// None where there is no libfabric: then the test says so.
    fn new() -> Option<Self> {
        let [one, two] = drivers([ONE, TWO])?;
        let mut pair = Self {
            one,
            two,
            seen: [Vec::new(), Vec::new()],
        };
        let at = pair.two.locator().clone();
        pair.one.connect(TWO, &at).expect("a locator");
        pair.until(|pair| pair.seen.iter().all(|seen| seen.len() == 1));
        pair.seen.iter_mut().for_each(Vec::clear);
        Some(pair)
    }

    fn poll(&mut self) {
        for (driver, seen) in [&mut self.one, &mut self.two]
            .into_iter()
            .zip(&mut self.seen)
        {
            let mut keep = |event: Event<'_>| seen.push(describe(event));
            driver.poll(16, &mut keep).expect("a network that works");
        }
    }

    fn until(&mut self, done: impl Fn(&Self) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while !done(self) {
            self.poll();
            assert!(Instant::now() < deadline, "in vain; seen {:?}", self.seen);
        }
    }

    /// Bytes from `one`'s endpoint to `two`'s, which `one` itself knows nothing of.
    fn inject(&mut self, message: &[u8]) {
        let to = self.address();
        let sent = self
            .one
            .port()
            .inject(to, message)
            .expect("a connection that is up");
        assert_eq!(sent, Posted::Yes);
    }

    fn address(&self) -> Address {
        self.one
            .port()
            .endpoint()
            .insert(self.two.port().endpoint().name())
            .expect("a name")
    }

    /// The header that `one` would send next.
    fn honest(&self, kind: Kind, len: usize) -> Header {
        let link = self.two.links[self.two.peers[&ONE]]
            .as_ref()
            .expect("a link");
        Header {
            key: link.key,
            slot: self.two.peers[&ONE] as u32,
            serial: 1,
            kind,
            taken: 0,
            len: len as u32,
        }
    }

    /// That `two` has dropped one more message, and that the link is as good as before.
    fn assert_dropped(&mut self) {
        let before = self.two.strangers();
        self.until(|pair| pair.two.strangers() > before);
        assert!(self.seen.iter().all(Vec::is_empty), "{:?}", self.seen);
        let sent = self
            .one
            .send_frame(TWO, &[std::io::IoSlice::new(b"still here")]);
        sent.expect("an idle link");
        self.until(|pair| pair.seen[1] == ["Frame still here"]);
        assert_eq!(self.two.strangers(), before + 1);
    }

    /// That `two` has found out, and that both have lost the link.
    fn assert_violation(&mut self) {
        self.until(|pair| pair.seen.iter().all(|seen| !seen.is_empty()));
        assert_eq!(self.seen[1], ["Violation"]);
        assert_eq!(self.seen[0], ["Lost"]);
    }
}

/// Drivers of one job. None where there is no libfabric: then the test says so.
pub(crate) fn drivers<const N: usize>(peers: [PeerId; N]) -> Option<[OfiDriver; N]> {
    if let Err(why) = Library::get() {
        skip(&why);
        return None;
    }
    static JOBS: AtomicU8 = AtomicU8::new(0);
    let job = Job::new([JOBS.fetch_add(1, Ordering::Relaxed); 16]);
    Some(peers.map(|me| {
        let here = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let security = job.security(me, Records::Sealed);
        let bootstrap = TcpDriver::new(TcpOptions::new(me, security).listen(here));
        let bootstrap = Box::new(bootstrap.expect("a free port"));
        OfiDriver::new(bootstrap, options()).expect("a provider")
    }))
}

pub(crate) fn options() -> OfiOptions {
    let options = OfiOptions::new().provider("tcp;ofi_rxm");
    options.at(IpAddr::from(Ipv4Addr::LOCALHOST))
}

impl OfiDriver {
    /// The port that new links use.
    pub(crate) fn port(&self) -> &Port {
        &self.ports[self.ports.newest()]
    }
}

pub(crate) fn describe(event: Event<'_>) -> String {
    match event {
        Event::Connected { .. } => "Connected".to_owned(),
        Event::Frame { bytes, .. } => format!("Frame {}", String::from_utf8_lossy(bytes)),
        Event::Lost {
            reason: LossReason::Violation(_),
            ..
        } => "Violation".to_owned(),
        Event::Lost { .. } => "Lost".to_owned(),
        other => format!("{other:?}"),
    }
}

#[test]
fn a_message_too_short_for_a_header_is_dropped() {
    for len in [0, 1, Header::LEN - 1] {
        let Some(mut pair) = Pair::new() else { return };
        pair.inject(&vec![0xff; len]);
        pair.assert_dropped();
    }
}

#[test]
fn a_message_without_a_kind_is_dropped() {
    let Some(mut pair) = Pair::new() else { return };
    let mut message = pair.honest(Kind::Frame, 0).encode();
    message[16] = 0xee;
    pair.inject(&message);
    pair.assert_dropped();
}

#[test]
fn a_message_with_another_key_is_dropped() {
    for bit in [0, 31, 63] {
        let Some(mut pair) = Pair::new() else { return };
        let mut header = pair.honest(Kind::Frame, 0);
        header.key ^= 1 << bit;
        pair.inject(&header.encode());
        pair.assert_dropped();
    }
}

#[test]
fn a_message_for_a_link_that_is_not_is_dropped() {
    for slot in [1, 1000, u32::MAX] {
        let Some(mut pair) = Pair::new() else { return };
        let mut header = pair.honest(Kind::Frame, 0);
        header.slot = slot;
        pair.inject(&header.encode());
        pair.assert_dropped();
    }
}

#[test]
fn a_message_longer_than_any_buffer_is_dropped() {
    let Some(mut pair) = Pair::new() else { return };
    // Longer than what is posted for it: the provider cuts it, and says so.
    let to = pair.address();
    let sent = pair.one.port().endpoint().send_leaked(to, &LONG);
    assert_eq!(sent.expect("a connection that is up"), Posted::Yes);
    let before = pair.two.strangers();
    pair.until(|pair| pair.two.strangers() > before);
    assert!(pair.seen.iter().all(Vec::is_empty), "{:?}", pair.seen);
}

#[test]
fn a_message_out_of_order_costs_the_link() {
    for serial in [0, 2, u32::MAX] {
        let Some(mut pair) = Pair::new() else { return };
        let mut header = pair.honest(Kind::Credit, 0);
        header.serial = serial;
        pair.inject(&header.encode());
        pair.assert_violation();
    }
}

#[test]
fn lengths_that_cannot_be_cost_the_link() {
    for (kind, len) in [
        (Kind::Frame, 1),
        (Kind::Frame, MAX_FRAME + 1),
        (Kind::Frame, u32::MAX as usize),
        (Kind::More, 0),
        (Kind::Credit, 1),
        (Kind::Port, 0),
        (Kind::Grant, 0),
        (Kind::Offer, 0),
        (Kind::Complete, 3),
    ] {
        let Some(mut pair) = Pair::new() else { return };
        pair.inject(&pair.honest(kind, len).encode());
        pair.assert_violation();
    }
}

#[test]
fn credits_that_were_not_used_cannot_come_back() {
    let Some(mut pair) = Pair::new() else { return };
    let mut header = pair.honest(Kind::Credit, 0);
    header.taken = 1;
    pair.inject(&header.encode());
    pair.assert_violation();
}

#[test]
fn bodies_that_cannot_be_cost_the_link() {
    let place = Place {
        address: 0,
        len: 1,
        key: 0,
    };
    for (kind, payload) in [
        (Kind::Offer, encode_body(BodyId(1), 5).to_vec()),
        (Kind::Complete, encode_body(BodyId(1), 5).to_vec()),
        (Kind::Complete, encode_body(BodyId(1), usize::MAX).to_vec()),
        (Kind::Grant, encode_grant(BodyId(1), &[place])),
        (Kind::Port, vec![1; 5]),
    ] {
        let Some(mut pair) = Pair::new() else { return };
        let mut message = pair.honest(kind, payload.len()).encode().to_vec();
        message.extend_from_slice(&payload);
        pair.inject(&message);
        pair.assert_violation();
    }
}

#[test]
fn a_frame_over_the_bootstrap_after_the_hello_costs_the_link() {
    let Some(mut pair) = Pair::new() else { return };
    let sent = pair
        .one
        .bootstrap
        .0
        .send_frame(TWO, &[std::io::IoSlice::new(b"hello?")]);
    sent.expect("an idle link");
    pair.assert_violation();
}

#[test]
fn a_link_that_ended_leaves_nothing_behind() {
    let Some(mut pair) = Pair::new() else { return };
    let stale = pair.honest(Kind::Frame, 0);
    pair.one.disconnect(TWO);
    pair.until(|pair| pair.seen[1] == ["Lost"]);
    pair.inject(&stale.encode());
    let before = pair.two.strangers();
    pair.until(|pair| pair.two.strangers() > before);
    assert_eq!(pair.seen[1], ["Lost"]);
    for driver in [&pair.one, &pair.two] {
        let is_gone = |link: &crate::link::Link| matches!(link.stage, Stage::Gone(_));
        assert!(driver.links.iter().flatten().all(|link| is_gone(link)));
        assert!(driver.peers.is_empty() && driver.greeting.is_empty());
    }
}

#[test]
fn a_provider_that_does_not_exist_is_answered_with_those_that_do() {
    if let Err(why) = Library::get() {
        return skip(&why);
    }
    let here = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let security = Job::new([9; 16]).security(ONE, Records::Sealed);
    let options = TcpOptions::new(ONE, security).listen(here);
    let bootstrap = Box::new(TcpDriver::new(options).expect("a free port"));
    let error = OfiDriver::new(bootstrap, OfiOptions::new().provider("carrier-pigeon"));
    let Err(OpenError::NoProvider { wanted, available }) = error else {
        panic!("{error:?}");
    };
    assert!(wanted.contains("carrier-pigeon"), "{wanted}");
    assert!(
        available.iter().any(|name| name == "tcp;ofi_rxm"),
        "{available:?}"
    );
}

static LONG: [u8; 2 * Pool::LEN] = [0xff; 2 * Pool::LEN];
const ONE: PeerId = PeerId(1);
const TWO: PeerId = PeerId(2);
