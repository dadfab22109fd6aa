//! A bench on which a driver is looked at. The other end is the test itself, which speaks the wire format byte by byte,
//! so that the tests also hold it still.

// Each test binary uses its part.
#![allow(dead_code)]

mod other;

pub(crate) use other::Other;

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use fastrand::Rng;
use mizzen_driver::{ConnectFailure, Driver, Event, Locator, LossReason, PeerId};
use mizzen_tcp::{Records, TcpDriver, TcpOptions};
use rustls::{ClientConfig, ServerConfig};

use crate::common::Job;

pub(crate) const ME: PeerId = PeerId(50);
pub(crate) const OTHER: PeerId = PeerId(60);
pub(crate) const DIALLER: u8 = 1;
pub(crate) const ACCEPTOR: u8 = 2;
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
pub(crate) const BOTH: [Records; 2] = [Records::Sealed, Records::Clear];

/// A driver, and what it reported, as text.
pub(crate) struct Bench {
    pub(crate) driver: TcpDriver,
    pub(crate) seen: VecDeque<String>,
    pub(crate) job: Arc<Job>,
    pub(crate) records: Records,
}

impl Bench {
    /// A driver of a job of its own.
    pub(crate) fn new(records: Records) -> Self {
        Self::with(records, |options| options)
    }

    pub(crate) fn with(records: Records, change: impl FnOnce(TcpOptions) -> TcpOptions) -> Self {
        Self::of(&Arc::new(Job::new([7; 16])), ME, records, change)
    }

    /// A driver of a process of this job.
    pub(crate) fn of(
        job: &Arc<Job>,
        me: PeerId,
        records: Records,
        change: impl FnOnce(TcpOptions) -> TcpOptions,
    ) -> Self {
        let options = TcpOptions::new(me, job.security(me, records));
        let options = change(options.listen("127.0.0.1:0".parse().unwrap()));
        Self {
            driver: TcpDriver::new(options).unwrap(),
            seen: VecDeque::new(),
            job: Arc::clone(job),
            records,
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.driver.locator().as_str().parse().unwrap()
    }

    /// A connection to the driver on which these bytes were written.
    pub(crate) fn stranger(&self, bytes: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(self.address()).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.write_all(bytes).unwrap();
        stream
    }

    /// A connection to the driver on which this client is about to begin.
    pub(crate) fn client(&self, config: Arc<ClientConfig>) -> Other {
        Other::client(self.stranger(b""), config)
    }

    /// A connection on which both ends have proved who they are, the other that it is `who`.
    pub(crate) fn caller(&mut self, who: PeerId) -> Other {
        let mut other = self.client(self.job.credentials(who).client_config());
        self.go_on(&mut other, "a handshake", |_, other| {
            !other.tls.is_handshaking() && !other.tls.wants_write()
        });
        other
    }

    /// A connection that the driver takes for `OTHER`.
    pub(crate) fn peer(&mut self, serial: u64) -> Other {
        self.peer_of(OTHER, serial)
    }

    pub(crate) fn peer_of(&mut self, who: PeerId, serial: u64) -> Other {
        let mut other = self.caller(who);
        other.say(&hello(DIALLER, self.records, who, ME, serial));
        let answer = self.hear(&mut other, 40);
        let expected = hello(ACCEPTOR, self.records, ME, who, 0);
        assert_eq!(answer[..32], expected[..32]);
        self.expect_connected(who);
        other.is_clear = self.records == Records::Clear;
        other
    }

    /// The other end of a dial of the driver, which wants `OTHER`.
    pub(crate) fn dialled(&mut self, config: Arc<ServerConfig>) -> Other {
        self.dialled_as(OTHER, config)
    }

    pub(crate) fn dialled_as(&mut self, wanted: PeerId, config: Arc<ServerConfig>) -> Other {
        let (listener, at) = listener();
        self.driver.connect(wanted, &at).unwrap();
        let (stream, _) = listener.accept().unwrap();
        Other::server(stream, config)
    }

    pub(crate) fn poll(&mut self) {
        self.driver
            .poll(16, &mut |event| self.seen.push_back(format!("{event:?}")))
            .unwrap();
    }

    /// Lets both ends go on until something is so.
    pub(crate) fn go_on(
        &mut self,
        other: &mut Other,
        what: &str,
        mut is_so: impl FnMut(&Self, &Other) -> bool,
    ) {
        let deadline = Instant::now() + PATIENCE;
        while !is_so(self, other) {
            self.poll();
            other.step();
            assert!(Instant::now() < deadline, "waited in vain for {what}");
        }
    }

    /// What the driver says, when it has said this much.
    pub(crate) fn hear(&mut self, other: &mut Other, len: usize) -> Vec<u8> {
        self.go_on(other, "an answer", |_, other| {
            assert!(!other.is_closed, "closed instead of an answer");
            other.heard.len() >= len
        });
        other.heard.drain(..len).collect()
    }

    /// Polls until something is reported, which must be this.
    pub(crate) fn expect(&mut self, event: Event<'_>) {
        let event = format!("{event:?}");
        let deadline = Instant::now() + PATIENCE;
        while self.seen.is_empty() {
            self.poll();
            assert!(Instant::now() < deadline, "waited in vain for {event}");
        }
        assert_eq!(self.seen.pop_front().unwrap(), event);
    }

    pub(crate) fn expect_connected(&mut self, peer: PeerId) {
        let by_either = [true, false].map(|dialled| Event::Connected { peer, dialled });
        let by_either = by_either.map(|event| format!("{event:?}"));
        let deadline = Instant::now() + PATIENCE;
        while self.seen.is_empty() {
            self.poll();
            assert!(Instant::now() < deadline, "waited in vain for a link");
        }
        let seen = self.seen.pop_front().unwrap();
        assert!(by_either.contains(&seen), "{seen}");
    }

    pub(crate) fn expect_frame(&mut self, bytes: &[u8]) {
        self.expect(Event::Frame { peer: OTHER, bytes });
    }

    pub(crate) fn expect_lost(&mut self, reason: LossReason) {
        let peer = OTHER;
        self.expect(Event::Lost { peer, reason });
    }

    /// The dial to `OTHER` comes to nothing, and the driver has not even said hello.
    pub(crate) fn expect_rejected(&mut self, other: &mut Other) {
        self.expect_rejected_as(OTHER, other);
    }

    pub(crate) fn expect_rejected_as(&mut self, peer: PeerId, other: &mut Other) {
        self.go_on(other, "a dial to fail", |bench, _| !bench.seen.is_empty());
        self.expect(Event::ConnectFailed {
            peer,
            reason: ConnectFailure::Rejected,
        });
        assert_eq!(other.heard, b"");
    }

    /// The driver closes a connection on which it has not said hello, and reports nothing.
    pub(crate) fn expect_refused(&mut self, other: &mut Other) {
        self.go_on(other, "a stranger to be closed", |_, other| other.is_closed);
        assert_eq!(other.heard, b"");
        self.expect_nothing();
        assert_eq!(self.driver.strangers(), 0);
    }

    pub(crate) fn expect_nothing(&mut self) {
        (0..20).for_each(|_| self.poll());
        assert!(self.seen.is_empty(), "{:?}", self.seen);
    }

    /// Polls until the driver closes the connection, having said nothing on it but, perhaps, that it closes.
    pub(crate) fn expect_closed(&mut self, stream: &mut TcpStream) {
        stream.set_nonblocking(true).unwrap();
        let deadline = Instant::now() + PATIENCE;
        let mut said = Vec::new();
        loop {
            self.poll();
            let mut bytes = [0; 100];
            match stream.read(&mut bytes) {
                Ok(0) => break,
                Ok(len) => said.extend(&bytes[..len]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
                    break;
                }
            }
            assert!(Instant::now() < deadline, "a stranger was not closed");
        }
        let is_alert = matches!(said[..], [] | [21, 3, 3, 0, 2, 2, _]);
        assert!(is_alert, "the driver said {said:?} to a stranger");
    }
}

pub(crate) fn listener() -> (TcpListener, Locator) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap().to_string();
    (listener, Locator::new(&at).unwrap())
}

pub(crate) fn hello(role: u8, records: Records, from: PeerId, to: PeerId, serial: u64) -> Vec<u8> {
    let records = match records {
        Records::Sealed => 1,
        Records::Clear => 2,
    };
    let mut bytes = b"mizzen\r\n".to_vec();
    bytes.extend([2, 0, role, 0, records, 0, 0, 0]);
    [from.0, to.0, serial]
        .iter()
        .for_each(|number| bytes.extend(number.to_le_bytes()));
    bytes
}

pub(crate) fn header(kind: u8, len: u32, body: u64) -> Vec<u8> {
    let mut bytes = vec![kind, 0, 0, 0];
    bytes.extend(len.to_le_bytes());
    bytes.extend(body.to_le_bytes());
    bytes
}

pub(crate) fn frame(payload: &[u8]) -> Vec<u8> {
    [header(1, payload.len() as u32, 0), payload.to_vec()].concat()
}

pub(crate) fn garbage(random: &mut Rng, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    random.fill(&mut bytes);
    bytes
}

/// Another seed each time, if the environment says so.
pub(crate) fn random() -> Rng {
    let seed = std::env::var("MIZZEN_SEED").ok();
    let seed = seed.and_then(|text| text.parse().ok()).unwrap_or(1);
    eprintln!("to replay: MIZZEN_SEED={seed}");
    Rng::with_seed(seed)
}
