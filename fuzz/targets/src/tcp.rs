//! The TCP driver over a real connection: a stranger's first bytes, or a peer that goes wrong after a good hello.
//!
//! This file has unsafe code because it lends the driver memory for bodies.
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::io::{IoSlice, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mizzen_driver::{BodyId, Driver, Event, PartMut, PeerId};
use mizzen_identity::{Authority, Credentials, Identity, server_name};
use mizzen_tcp::{Records, Security, TcpDriver, TcpOptions};
use rustls::{ClientConnection, Stream};
use socket2::SockRef;

use crate::tape::Tape;

const ME: PeerId = PeerId(50);
const OTHER: PeerId = PeerId(60);
const CLUSTER: &str = "fuzz";
const JOB: [u8; 16] = [1; 16];
/// The longest frame that the driver takes.
const FRAME: usize = 128 << 10;
/// Far beyond what a busy machine needs for one connection.
const PATIENCE: Duration = Duration::from_secs(20);
/// Polls that find nothing before the driver is believed to have read all.
const QUIET: usize = 3;

thread_local! {
    static BENCH: RefCell<Option<Bench>> = const { RefCell::new(None) };
}

/// A byte that says whether the rest is a stranger's; if not, events of a peer that has said hello.
pub fn run(data: &[u8]) {
    BENCH.with_borrow_mut(|bench| {
        let bench = bench.get_or_insert_with(Bench::new);
        let mut tape = Tape::new(data);
        if tape.byte() == 1 {
            bench.stranger(tape.rest());
        } else {
            bench.peer(tape);
        }
    });
}

struct Bench {
    driver: TcpDriver,
    at: SocketAddr,
    other: Credentials,
    serial: u64,
    /// Memory lent to the driver for the bodies of the present link.
    lent: Vec<Box<[u8]>>,
}

/// What the driver reported since it was last asked.
#[derive(Default)]
struct Seen {
    connected: bool,
    lost: bool,
}

impl Bench {
    fn new() -> Self {
        let listen = SocketAddr::from(([127, 0, 0, 1], 0));
        let authority = Authority::new(CLUSTER, JOB).expect("an authority");
        let credentials = |who: PeerId| {
            let who = Identity::new(CLUSTER, JOB, who.0 as u32, 0).expect("a name");
            authority.credentials(&who).expect("credentials")
        };
        let options = TcpOptions::new(ME, security(&credentials(ME))).listen(listen);
        let driver = TcpDriver::new(options).expect("a listener");
        let at = driver.locator().as_str().parse().expect("one address");
        Self {
            driver,
            at,
            other: credentials(OTHER),
            serial: 0,
            lent: Vec::new(),
        }
    }

    fn stranger(&mut self, bytes: &[u8]) {
        let mut stream = self.connect();
        // The driver may have refused the first bytes already.
        let _ = stream.write_all(bytes);
        let _ = stream.shutdown(Shutdown::Write);
        self.poll();
        drop(stream);
        self.poll();
        self.driver.disconnect(OTHER);
    }

    fn peer(&mut self, mut tape: Tape<'_>) {
        self.serial += 1;
        let mut stream = self.connect();
        self.greet(&mut stream);
        let mut lost = false;
        while !lost && !tape.is_over() {
            match tape.byte() % 8 {
                0..=3 => lost = stream.write_all(tape.bytes()).is_err(),
                4 | 5 => self.expect_body(BodyId(tape.number()), usize::from(tape.short())),
                6 => {
                    let frame = vec![0; usize::from(tape.short())];
                    let _ = self.driver.send_frame(OTHER, &[IoSlice::new(&frame)]);
                }
                _ => lost = stream.shutdown(Shutdown::Write).is_err(),
            }
            lost |= self.poll().lost;
        }
        drop(stream);
        self.poll();
        // Now the lent memory is ours again.
        self.driver.disconnect(OTHER);
        self.lent.clear();
        assert!(
            !self.poll().lost,
            "nothing is reported of a link that is over"
        );
    }

    /// Proves to be `OTHER`, and says hello. What follows is in clear.
    fn greet(&mut self, stream: &mut TcpStream) {
        let config = self.other.client_config();
        let mut tls = ClientConnection::new(config, server_name()).expect("settings that fit");
        let hello = hello(1, OTHER.0, ME.0, self.serial);
        stream.set_nonblocking(true).expect("an option");
        let deadline = Instant::now() + PATIENCE;
        let (mut said, mut connected, mut heard) = (false, false, 0);
        while !connected || heard < hello.len() {
            assert!(Instant::now() < deadline, "a good hello was not taken");
            connected |= self.poll().connected;
            if !said && !tls.is_handshaking() {
                said = tls.writer().write_all(&hello).is_ok();
            }
            heard += Stream::new(&mut tls, stream)
                .read(&mut [0; 40])
                .unwrap_or(0);
        }
        stream.set_nonblocking(false).expect("an option");
    }

    fn expect_body(&mut self, body: BodyId, len: usize) {
        let mut memory = vec![0; len].into_boxed_slice();
        let part = PartMut::of(&mut memory);
        // SAFETY: the memory is kept, unused, until `disconnect` has returned.
        let _ = unsafe { self.driver.recv_body(OTHER, body, &[part]) };
        self.lent.push(memory);
    }

    /// A connection that is forgotten at once when it is dropped, or ports would run out.
    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.at).expect("the driver listens");
        SockRef::from(&stream)
            .set_linger(Some(Duration::ZERO))
            .expect("a socket option");
        stream.set_nodelay(true).expect("a socket option");
        stream.set_read_timeout(Some(PATIENCE)).expect("an option");
        stream
    }

    /// Polls until nothing more comes.
    fn poll(&mut self) -> Seen {
        let (mut seen, mut quiet) = (Seen::default(), 0);
        while quiet < QUIET {
            let count = self.driver.poll(16, &mut |event| match event {
                Event::Connected { .. } => seen.connected = true,
                Event::Lost { .. } => seen.lost = true,
                Event::Frame { bytes, .. } => assert!(bytes.len() <= FRAME),
                _ => (),
            });
            match count.expect("the attachment is usable") {
                0 => quiet += 1,
                count => assert!(count <= 16),
            }
        }
        seen
    }
}

/// What the driver is told.
fn security(credentials: &Credentials) -> Security {
    let known = credentials.clone();
    let identify = move |connection: &_| {
        let who = known.peer(connection).ok()?;
        Some(PeerId(u64::from(who.rank())))
    };
    let (client, server) = (credentials.client_config(), credentials.server_config());
    Security::new(client, server, Arc::new(identify)).records(Records::Clear)
}

/// What an end says first: 1 dials, 2 accepts.
pub(crate) fn hello(role: u8, from: u64, to: u64, serial: u64) -> Vec<u8> {
    let mut bytes = b"mizzen\r\n".to_vec();
    // Version 2, and records in clear.
    bytes.extend([2, 0, role, 0, 2, 0, 0, 0]);
    for number in [from, to, serial] {
        bytes.extend(number.to_le_bytes());
    }
    bytes
}
