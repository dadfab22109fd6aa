//! What the TCP driver makes of peers that are not of its kind, or not in their right mind.
//!
//! The tests speak the wire format themselves, byte by byte, so that they also hold it still.

use std::collections::VecDeque;
use std::io::{ErrorKind, IoSlice, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use mizzen_driver::sim::Random;
use mizzen_driver::{ConnectFailure, Driver, Event, Locator, LossReason, PeerId};
use mizzen_tcp::{TcpDriver, TcpOptions, Token};

const ME: PeerId = PeerId(50);
const OTHER: PeerId = PeerId(60);
const TOKEN: [u8; 32] = [0x42; 32];
const DIALLER: u8 = 1;
const ACCEPTOR: u8 = 2;
const PATIENCE: Duration = Duration::from_secs(20);

/// A driver, and what it reported, as text.
struct Bench {
    driver: TcpDriver,
    seen: VecDeque<String>,
}

impl Bench {
    fn new() -> Self {
        Self::with(options(ME))
    }

    fn with(options: TcpOptions) -> Self {
        Self {
            driver: TcpDriver::new(options).unwrap(),
            seen: VecDeque::new(),
        }
    }

    fn address(&self) -> SocketAddr {
        self.driver.locator().as_str().parse().unwrap()
    }

    /// A connection to the driver on which these bytes were written.
    fn stranger(&self, bytes: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(self.address()).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.write_all(bytes).unwrap();
        stream
    }

    /// A connection that the driver takes for `OTHER`.
    fn peer(&mut self, serial: u64) -> TcpStream {
        let mut stream = self.stranger(&hello(DIALLER, &TOKEN, OTHER, ME, serial));
        self.expect(&format!("{:?}", Event::Connected { peer: OTHER }));
        let mut answer = [0; 72];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(answer[..64], hello(ACCEPTOR, &TOKEN, ME, OTHER, 0)[..64]);
        stream
    }

    fn poll(&mut self) {
        self.driver
            .poll(16, &mut |event| self.seen.push_back(format!("{event:?}")))
            .unwrap();
    }

    /// Polls until something is reported, which must be this.
    fn expect(&mut self, event: &str) {
        let deadline = Instant::now() + PATIENCE;
        while self.seen.is_empty() {
            self.poll();
            assert!(Instant::now() < deadline, "waited in vain for {event}");
        }
        assert_eq!(self.seen.pop_front().unwrap(), event);
    }

    fn expect_frame(&mut self, bytes: &[u8]) {
        self.expect(&format!("{:?}", Event::Frame { peer: OTHER, bytes }));
    }

    fn expect_lost(&mut self, reason: LossReason) {
        self.expect(&format!(
            "{:?}",
            Event::Lost {
                peer: OTHER,
                reason
            }
        ));
    }

    /// Polls until the driver closes the connection, having said nothing on it.
    fn expect_closed(&mut self, stream: &mut TcpStream) {
        stream.set_nonblocking(true).unwrap();
        let deadline = Instant::now() + PATIENCE;
        loop {
            self.poll();
            match stream.read(&mut [0; 100]) {
                Ok(0) => return,
                Ok(len) => panic!("the driver said {len} bytes to a stranger"),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return assert_eq!(error.kind(), ErrorKind::ConnectionReset),
            }
            assert!(Instant::now() < deadline, "a stranger was not closed");
        }
    }
}

fn options(me: PeerId) -> TcpOptions {
    TcpOptions::new(me, Token(TOKEN)).listen("127.0.0.1:0".parse().unwrap())
}

fn hello(role: u8, token: &[u8; 32], from: PeerId, to: PeerId, serial: u64) -> Vec<u8> {
    let mut bytes = b"mizzen\r\n".to_vec();
    bytes.extend([1, 0, role, 0, 0, 0, 0, 0]);
    bytes.extend(token);
    [from.0, to.0, serial]
        .iter()
        .for_each(|number| bytes.extend(number.to_le_bytes()));
    bytes
}

fn header(kind: u8, len: u32, body: u64) -> Vec<u8> {
    let mut bytes = vec![kind, 0, 0, 0];
    bytes.extend(len.to_le_bytes());
    bytes.extend(body.to_le_bytes());
    bytes
}

fn frame(payload: &[u8]) -> Vec<u8> {
    [header(1, payload.len() as u32, 0), payload.to_vec()].concat()
}

fn garbage(random: &mut Random, len: usize) -> Vec<u8> {
    (0..len).map(|_| random.next_u64() as u8).collect()
}

#[test]
fn a_strangers_bytes_are_refused() {
    let mut bench = Bench::new();
    for bytes in [
        &b"GET / HTTP/1.1\r\nHost: example\r\n\r\n".repeat(3)[..],
        &[0; 72],
        &[0xff; 5000],
    ] {
        let mut stream = bench.stranger(bytes);
        bench.expect_closed(&mut stream);
    }
    assert!(bench.seen.is_empty());
    assert_eq!(bench.driver.strangers(), 0);
}

#[test]
fn a_hello_that_is_not_quite_right_is_refused() {
    let mut bench = Bench::new();
    let mut token = TOKEN;
    token[31] ^= 1;
    for bytes in [
        hello(DIALLER, &token, OTHER, ME, 1),
        hello(ACCEPTOR, &TOKEN, OTHER, ME, 1),
        hello(DIALLER, &TOKEN, OTHER, PeerId(51), 1),
        hello(DIALLER, &TOKEN, ME, ME, 1),
    ] {
        let mut stream = bench.stranger(&bytes);
        bench.expect_closed(&mut stream);
    }
    assert!(bench.seen.is_empty());
}

#[test]
fn a_flood_of_strangers_is_bounded_and_keeps_nobody_out() {
    let mut bench = Bench::new();
    let mut strangers = Vec::new();
    for _ in 0..500 {
        strangers.push(bench.stranger(b"mizz"));
        bench.poll();
        assert!(bench.driver.strangers() <= 256);
    }
    (0..20).for_each(|_| bench.poll());
    assert_eq!(bench.driver.strangers(), 256);
    bench.peer(1);
    bench.expect_closed(&mut strangers[0]);
}

#[test]
fn a_stranger_that_says_nothing_is_closed_in_time() {
    let mut bench = Bench::with(options(ME).hello_patience(Duration::from_millis(30)));
    let mut silent = bench.stranger(b"");
    let mut slow = bench.stranger(b"mizzen\r\n");
    bench.expect_closed(&mut silent);
    bench.expect_closed(&mut slow);
    assert_eq!(bench.driver.strangers(), 0);
}

#[test]
fn a_dial_that_is_answered_by_a_stranger_fails() {
    let mut token = TOKEN;
    token[0] ^= 1;
    for answer in [
        vec![0; 72],
        hello(ACCEPTOR, &token, OTHER, ME, 1),
        hello(ACCEPTOR, &TOKEN, PeerId(61), ME, 1),
        hello(ACCEPTOR, &TOKEN, OTHER, PeerId(51), 1),
        hello(DIALLER, &TOKEN, OTHER, ME, 1),
        b"mizzen".to_vec(),
    ] {
        let mut bench = Bench::new();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = Locator::new(&listener.local_addr().unwrap().to_string()).unwrap();
        bench.driver.connect(OTHER, &at).unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(&answer).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        bench.expect(&format!(
            "{:?}",
            Event::ConnectFailed {
                peer: OTHER,
                reason: ConnectFailure::Rejected
            }
        ));
    }
}

#[test]
fn a_dial_that_nobody_answers_fails_in_time() {
    let mut bench = Bench::with(options(ME).dial_patience(Duration::from_millis(30)));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = Locator::new(&listener.local_addr().unwrap().to_string()).unwrap();
    bench.driver.connect(OTHER, &at).unwrap();
    bench.expect(&format!(
        "{:?}",
        Event::ConnectFailed {
            peer: OTHER,
            reason: ConnectFailure::TimedOut
        }
    ));
}

#[test]
fn the_addresses_of_a_locator_are_tried_in_turn() {
    let mut bench = Bench::with(options(ME).dial_patience(Duration::from_millis(30)));
    let mut other = Bench::with(options(OTHER));
    let mut wrong = Bench::with(options(PeerId(70)));
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let gone = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let at = format!(
        "{gone},{},{},{}",
        silent.local_addr().unwrap(),
        wrong.address(),
        other.address()
    );
    bench
        .driver
        .connect(OTHER, &Locator::new(&at).unwrap())
        .unwrap();
    let deadline = Instant::now() + PATIENCE;
    while bench.seen.is_empty() {
        assert!(Instant::now() < deadline);
        [&mut bench, &mut other, &mut wrong]
            .into_iter()
            .for_each(Bench::poll);
    }
    bench.expect(&format!("{:?}", Event::Connected { peer: OTHER }));
    other.expect(&format!("{:?}", Event::Connected { peer: ME }));
    assert!(wrong.seen.is_empty());
}

#[test]
fn a_parked_dial_becomes_the_link_when_ours_fails() {
    let mut low = Bench::with(options(ME).dial_patience(Duration::from_millis(50)));
    let mut high = Bench::with(options(OTHER));
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let nowhere = Locator::new(&silent.local_addr().unwrap().to_string()).unwrap();
    low.driver.connect(OTHER, &nowhere).unwrap();
    let at = low.driver.locator().clone();
    high.driver.connect(ME, &at).unwrap();
    let deadline = Instant::now() + PATIENCE;
    while low.seen.is_empty() || high.seen.is_empty() {
        assert!(Instant::now() < deadline);
        low.poll();
        high.poll();
    }
    low.expect(&format!("{:?}", Event::Connected { peer: OTHER }));
    high.expect(&format!("{:?}", Event::Connected { peer: ME }));
}

#[test]
fn a_hello_that_was_overtaken_does_not_replace_the_link() {
    let mut bench = Bench::new();
    let mut link = bench.peer(10);
    let mut overtaken = bench.stranger(&hello(DIALLER, &TOKEN, OTHER, ME, 9));
    bench.expect_closed(&mut overtaken);
    link.write_all(&frame(b"still here")).unwrap();
    bench.expect_frame(b"still here");

    let mut newer = bench.stranger(&hello(DIALLER, &TOKEN, OTHER, ME, 11));
    bench.expect_lost(LossReason::Replaced);
    bench.expect(&format!("{:?}", Event::Connected { peer: OTHER }));
    newer.write_all(&frame(b"new")).unwrap();
    bench.expect_frame(b"new");
}

#[test]
fn a_peer_that_sends_byte_by_byte_is_understood() {
    let mut bench = Bench::new();
    let mut stream = bench.stranger(b"");
    for byte in hello(DIALLER, &TOKEN, OTHER, ME, 1) {
        stream.write_all(&[byte]).unwrap();
        bench.poll();
    }
    bench.expect(&format!("{:?}", Event::Connected { peer: OTHER }));
    for payload in [&b""[..], b"x", &[7; 300]] {
        for byte in frame(payload) {
            stream.write_all(&[byte]).unwrap();
            bench.poll();
        }
        bench.expect_frame(payload);
    }
}

#[test]
fn frames_that_come_with_the_hello_are_not_lost() {
    let mut bench = Bench::new();
    let together = [
        hello(DIALLER, &TOKEN, OTHER, ME, 1),
        frame(b"at once"),
        frame(b""),
    ]
    .concat();
    let _stream = bench.stranger(&together);
    bench.expect(&format!("{:?}", Event::Connected { peer: OTHER }));
    bench.expect_frame(b"at once");
    bench.expect_frame(b"");
}

#[test]
fn a_peer_that_leaves_at_once_is_seen_to_leave() {
    let mut bench = Bench::new();
    let together = [hello(DIALLER, &TOKEN, OTHER, ME, 1), frame(b"good day")].concat();
    let stream = bench.stranger(&together);
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    bench.expect(&format!("{:?}", Event::Connected { peer: OTHER }));
    bench.expect_frame(b"good day");
    bench.expect_lost(LossReason::Closed);
}

#[test]
fn a_peer_that_reads_nothing_for_long_is_not_lost() {
    let mut bench = Bench::new();
    let mut stream = bench.peer(1);
    let mut accepted = 0;
    while bench
        .driver
        .send_frame(OTHER, &[IoSlice::new(&[9; 10_000])])
        .is_ok()
    {
        accepted += 1;
    }
    // Longer than the silence after which a host that does not answer is lost.
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(4500) {
        bench.poll();
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(bench.seen.is_empty(), "{:?}", bench.seen);
    let reader = std::thread::spawn(move || {
        let mut bytes = vec![0; accepted * 10_016];
        stream.read_exact(&mut bytes).unwrap();
    });
    while !reader.is_finished() {
        bench.poll();
    }
    reader.join().unwrap();
    bench.expect(&format!("{:?}", Event::Writable { peer: OTHER }));
}

#[test]
fn what_is_written_is_a_header_and_the_payload() {
    let mut bench = Bench::new();
    let mut stream = bench.peer(1);
    let slices = [IoSlice::new(b"ab"), IoSlice::new(b""), IoSlice::new(b"c")];
    bench.driver.send_frame(OTHER, &slices).unwrap();
    let mut bytes = [0; 19];
    stream.read_exact(&mut bytes).unwrap();
    assert_eq!(bytes[..], frame(b"abc"));
}

#[test]
fn a_truncated_frame_is_not_handed_out() {
    let whole = frame(&[5; 1000]);
    for cut in [1, 15, 16, 17, 500, whole.len() - 1] {
        let mut bench = Bench::new();
        let mut stream = bench.peer(1);
        stream.write_all(&frame(b"whole")).unwrap();
        stream.write_all(&whole[..cut]).unwrap();
        drop(stream);
        bench.expect_frame(b"whole");
        bench.expect_lost(LossReason::Closed);
    }
}

#[test]
fn malformed_headers_cost_the_link() {
    let beyond = LossReason::Violation("a length beyond its bound");
    let unknown = LossReason::Violation("a header of unknown kind");
    let unasked = LossReason::Violation("a body nobody asked for");
    for (bytes, reason) in [
        (header(1, 128 * 1024 + 1, 0), beyond),
        (header(1, u32::MAX, 0), beyond),
        (header(2, u32::MAX, 1), beyond),
        (header(3, 256 * 1024 + 1, 1), beyond),
        (header(0, 0, 0), unknown),
        (header(6, 0, 0), unknown),
        (header(2, 5, 1), unasked),
        (header(3, 0, 1), unasked),
    ] {
        let mut bench = Bench::new();
        let mut stream = bench.peer(1);
        stream.write_all(&bytes).unwrap();
        bench.expect_lost(reason);
        bench.expect_closed(&mut stream);
    }
}

#[test]
fn a_thousand_connections_of_garbage_do_no_harm() {
    let seed = std::env::var("MIZZEN_SEED")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(1);
    let mut random = Random::new(seed);
    let mut bench = Bench::new();
    for round in 0..1000_u64 {
        let len = random.index(200);
        let bytes = match random.below(4) {
            0 => garbage(&mut random, len),
            1 => {
                let mut bytes = hello(DIALLER, &TOKEN, OTHER, ME, round);
                let at = random.index(bytes.len());
                bytes[at] ^= 1 << random.below(8);
                bytes
            }
            2 => [
                hello(DIALLER, &TOKEN, OTHER, ME, round + 1000),
                garbage(&mut random, len),
            ]
            .concat(),
            _ => {
                let kind = random.below(5) as u8;
                let (len, body) = (random.below(1 << 18) as u32, random.below(2));
                let header = header(kind, len, body);
                let tail = random.index(500);
                [
                    hello(DIALLER, &TOKEN, OTHER, ME, round + 1000),
                    header,
                    garbage(&mut random, tail),
                ]
                .concat()
            }
        };
        let stream = bench.stranger(&bytes);
        (0..random.below(4)).for_each(|_| bench.poll());
        drop(stream);
    }
    (0..100).for_each(|_| bench.poll());
    bench.seen.clear();
    let mut stream = bench.stranger(&hello(DIALLER, &TOKEN, PeerId(61), ME, 1));
    bench.expect(&format!("{:?}", Event::Connected { peer: PeerId(61) }));
    stream.write_all(&frame(b"sane")).unwrap();
    bench.expect(&format!(
        "{:?}",
        Event::Frame {
            peer: PeerId(61),
            bytes: b"sane"
        }
    ));
}
