//! What the TCP driver makes of peers that are not of its kind, or not in their right mind.

mod bench;
mod common;

use std::io::{IoSlice, Read};
use std::net::{Shutdown, TcpListener};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bench::{
    ACCEPTOR, BOTH, Bench, DIALLER, ME, OTHER, PATIENCE, frame, garbage, header, hello, listener,
    random,
};
use common::Job;
use mizzen_driver::{ConnectFailure, Driver, Event, Locator, LossReason, PeerId};
use mizzen_tcp::Records::{self, Clear, Sealed};
use rustls::Connection;

#[test]
fn a_strangers_bytes_are_refused() {
    let mut bench = Bench::new(Sealed);
    for bytes in [
        &b"GET / HTTP/1.1\r\nHost: example\r\n\r\n"[..],
        &[0; 72],
        &[0xff; 5000],
        &hello(DIALLER, Sealed, OTHER, ME, 1),
        &frame(b"good day"),
    ] {
        let mut stream = bench.stranger(bytes);
        bench.expect_closed(&mut stream);
    }
    bench.expect_nothing();
    assert_eq!(bench.driver.strangers(), 0);
}

#[test]
fn a_hello_that_is_not_quite_right_is_refused() {
    for (records, others) in [(Sealed, Clear), (Clear, Sealed)] {
        let mut bench = Bench::new(records);
        for bytes in [
            hello(DIALLER, others, OTHER, ME, 1),
            hello(ACCEPTOR, records, OTHER, ME, 1),
            hello(DIALLER, records, OTHER, PeerId(51), 1),
            hello(DIALLER, records, PeerId(61), ME, 1),
            hello(DIALLER, records, ME, ME, 1),
        ] {
            let mut other = bench.caller(OTHER);
            other.say(&bytes);
            bench.expect_refused(&mut other);
        }
    }
}

#[test]
fn who_shows_our_own_certificate_is_refused() {
    let mut bench = Bench::new(Sealed);
    let mut other = bench.caller(ME);
    other.say(&hello(DIALLER, Sealed, ME, ME, 1));
    bench.expect_refused(&mut other);
}

#[test]
fn a_flood_of_strangers_is_bounded_and_keeps_nobody_out() {
    let mut bench = Bench::new(Sealed);
    let mut strangers = Vec::new();
    for _ in 0..500 {
        strangers.push(bench.stranger(&[22, 3, 1, 2]));
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
    let patience = Duration::from_millis(30);
    let mut bench = Bench::with(Sealed, |options| options.hello_patience(patience));
    let mut silent = bench.stranger(b"");
    let mut slow = bench.stranger(&[22, 3, 1]);
    bench.expect_closed(&mut silent);
    bench.expect_closed(&mut slow);
    assert_eq!(bench.driver.strangers(), 0);
}

#[test]
fn a_peer_that_proves_itself_and_says_no_hello_is_closed_in_time() {
    let patience = Duration::from_millis(200);
    let mut bench = Bench::with(Sealed, |options| options.hello_patience(patience));
    let mut silent = bench.caller(OTHER);
    bench.expect_refused(&mut silent);
    let mut slow = bench.caller(OTHER);
    slow.say(&hello(DIALLER, Sealed, OTHER, ME, 1)[..39]);
    bench.expect_refused(&mut slow);
}

#[test]
fn a_dial_that_is_answered_by_a_stranger_fails() {
    for answer in [
        &[0; 72][..],
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"\x16\x03",
        b"",
    ] {
        let mut bench = Bench::new(Sealed);
        let credentials = bench.job.credentials(OTHER);
        let mut other = bench.dialled(credentials.server_config());
        other.write(answer);
        other.stream.shutdown(Shutdown::Write).unwrap();
        expect_rejected(&mut bench);
    }
}

#[test]
fn a_dial_that_is_answered_by_a_wrong_hello_fails() {
    for (records, others) in [(Sealed, Clear), (Clear, Sealed)] {
        for answer in [
            hello(ACCEPTOR, others, OTHER, ME, 1),
            hello(ACCEPTOR, records, PeerId(61), ME, 1),
            hello(ACCEPTOR, records, OTHER, PeerId(51), 1),
            hello(DIALLER, records, OTHER, ME, 1),
        ] {
            let mut bench = Bench::new(records);
            let credentials = bench.job.credentials(OTHER);
            let mut other = bench.dialled(credentials.server_config());
            let said = bench.hear(&mut other, 40);
            assert_eq!(said[..32], hello(DIALLER, records, ME, OTHER, 0)[..32]);
            other.say(&answer);
            expect_rejected(&mut bench);
        }
    }
}

fn expect_rejected(bench: &mut Bench) {
    bench.expect(Event::ConnectFailed {
        peer: OTHER,
        reason: ConnectFailure::Rejected,
    });
}

#[test]
fn a_dial_that_is_answered_well_is_a_link() {
    for records in BOTH {
        let mut bench = Bench::new(records);
        let credentials = bench.job.credentials(OTHER);
        let mut other = bench.dialled(credentials.server_config());
        bench.hear(&mut other, 40);
        other.say(&hello(ACCEPTOR, records, OTHER, ME, 1));
        other.is_clear = records == Clear;
        // What comes with the answer is not lost.
        other.say(&frame(b"at once"));
        bench.expect_connected(OTHER);
        bench.expect_frame(b"at once");
    }
}

#[test]
fn a_dial_that_nobody_answers_fails_in_time() {
    let patience = Duration::from_millis(30);
    let mut bench = Bench::with(Sealed, |options| options.dial_patience(patience));
    let (_listener, at) = listener();
    bench.driver.connect(OTHER, &at).unwrap();
    bench.expect(Event::ConnectFailed {
        peer: OTHER,
        reason: ConnectFailure::TimedOut,
    });
}

#[test]
fn the_addresses_of_a_locator_are_tried_in_turn() {
    let job = Arc::new(Job::new([7; 16]));
    let other = |who| Bench::of(&job, who, Sealed, |options| options);
    // Long enough for a handshake, or a busy machine makes this a test of itself.
    let patience = Duration::from_millis(500);
    let mut bench = Bench::of(&job, ME, Sealed, |options| options.dial_patience(patience));
    let (mut wrong, mut other) = (other(PeerId(70)), other(OTHER));
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
    bench.expect_connected(OTHER);
    other.expect_connected(ME);
    wrong.expect_nothing();
}

#[test]
fn a_parked_dial_becomes_the_link_when_ours_fails() {
    let job = Arc::new(Job::new([7; 16]));
    let patience = Duration::from_millis(200);
    let mut low = Bench::of(&job, ME, Sealed, |options| options.dial_patience(patience));
    let mut high = Bench::of(&job, OTHER, Sealed, |options| options);
    let (_silent, nowhere) = listener();
    low.driver.connect(OTHER, &nowhere).unwrap();
    let at = low.driver.locator().clone();
    high.driver.connect(ME, &at).unwrap();
    let deadline = Instant::now() + PATIENCE;
    while low.seen.is_empty() || high.seen.is_empty() {
        assert!(Instant::now() < deadline);
        low.poll();
        high.poll();
    }
    low.expect_connected(OTHER);
    high.expect_connected(ME);
}

#[test]
fn a_hello_that_was_overtaken_does_not_replace_the_link() {
    for records in BOTH {
        let mut bench = Bench::new(records);
        let mut link = bench.peer(10);
        let mut overtaken = bench.caller(OTHER);
        overtaken.say(&hello(DIALLER, records, OTHER, ME, 9));
        bench.expect_refused(&mut overtaken);
        link.say(&frame(b"still here"));
        bench.expect_frame(b"still here");

        let mut newer = bench.caller(OTHER);
        newer.say(&hello(DIALLER, records, OTHER, ME, 11));
        bench.expect_lost(LossReason::Replaced);
        bench.expect_connected(OTHER);
        bench.hear(&mut newer, 40);
        newer.is_clear = records == Clear;
        newer.say(&frame(b"new"));
        bench.expect_frame(b"new");
    }
}

#[test]
fn a_peer_that_sends_byte_by_byte_is_understood() {
    for records in BOTH {
        let mut bench = Bench::new(records);
        let credentials = bench.job.credentials(OTHER);
        let mut other = bench.client(credentials.client_config());
        let slowly = |bench: &mut Bench, other: &mut bench::Other, bytes: Vec<u8>| {
            for byte in bytes {
                other.write(&[byte]);
                bench.poll();
            }
        };
        while other.tls.is_handshaking() {
            let flight = other.take_sealed();
            slowly(&mut bench, &mut other, flight);
            other.step();
        }
        let flight = other.seal(&hello(DIALLER, records, OTHER, ME, 1));
        slowly(&mut bench, &mut other, flight);
        bench.expect_connected(OTHER);
        bench.hear(&mut other, 40);
        for payload in [&b""[..], b"x", &[7; 300]] {
            let bytes = match records {
                Clear => frame(payload),
                Sealed => other.seal(&frame(payload)),
            };
            slowly(&mut bench, &mut other, bytes);
            bench.expect_frame(payload);
        }
        // Each byte sealed on its own.
        if records == Sealed {
            for byte in frame(b"in pieces") {
                other.say(&[byte]);
                bench.poll();
            }
            bench.expect_frame(b"in pieces");
        }
    }
}

#[test]
fn a_hello_in_parts_is_understood() {
    let mut bench = Bench::new(Sealed);
    let mut other = bench.caller(OTHER);
    for byte in hello(DIALLER, Sealed, OTHER, ME, 1) {
        other.say(&[byte]);
        bench.poll();
    }
    bench.expect_connected(OTHER);
}

/// A dialler says nothing behind its hello before the answer: it cannot know yet how that would be read.
#[test]
fn frames_that_come_with_the_hello_are_refused() {
    for records in BOTH {
        let mut bench = Bench::new(records);
        let together = [hello(DIALLER, records, OTHER, ME, 1), frame(b"at once")].concat();
        let mut other = bench.caller(OTHER);
        other.say(&together);
        bench.expect_refused(&mut other);
    }
}

#[test]
fn a_peer_that_leaves_at_once_is_seen_to_leave() {
    for records in BOTH {
        let mut bench = Bench::new(records);
        let mut other = bench.peer(1);
        other.say(&frame(b"good day"));
        other.stream.shutdown(Shutdown::Write).unwrap();
        bench.expect_frame(b"good day");
        bench.expect_lost(LossReason::Closed);
    }
}

#[test]
fn a_peer_that_leaves_with_its_hello_is_seen_to_leave() {
    let mut bench = Bench::new(Sealed);
    let mut other = bench.caller(OTHER);
    other.say(&hello(DIALLER, Sealed, OTHER, ME, 1));
    other.stream.shutdown(Shutdown::Write).unwrap();
    bench.expect_connected(OTHER);
    bench.expect_lost(LossReason::Closed);
}

#[test]
fn a_peer_that_says_goodbye_is_seen_to_leave() {
    let mut bench = Bench::new(Sealed);
    let mut other = bench.peer(1);
    other.say(&frame(b"good day"));
    other.tls.send_close_notify();
    other.step();
    bench.expect_frame(b"good day");
    bench.expect_lost(LossReason::Closed);
}

#[test]
fn a_peer_that_reads_nothing_for_long_is_not_lost() {
    let mut bench = Bench::new(Clear);
    let mut stream = bench.peer(1).stream;
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
    stream.set_nonblocking(false).unwrap();
    let reader = std::thread::spawn(move || {
        let mut bytes = vec![0; accepted * 10_016];
        stream.read_exact(&mut bytes).unwrap();
    });
    while !reader.is_finished() {
        bench.poll();
    }
    reader.join().unwrap();
    bench.expect(Event::Writable { peer: OTHER });
}

#[test]
fn what_is_written_is_a_header_and_the_payload() {
    for records in BOTH {
        let mut bench = Bench::new(records);
        let mut other = bench.peer(1);
        let slices = [IoSlice::new(b"ab"), IoSlice::new(b""), IoSlice::new(b"c")];
        bench.driver.send_frame(OTHER, &slices).unwrap();
        assert_eq!(bench.hear(&mut other, 19), frame(b"abc"));
    }
}

#[test]
fn a_truncated_frame_is_not_handed_out() {
    let whole = frame(&[5; 1000]);
    for records in BOTH {
        for cut in [1, 15, 16, 17, 500, whole.len() - 1] {
            let mut bench = Bench::new(records);
            let mut other = bench.peer(1);
            other.say(&frame(b"whole"));
            other.say(&whole[..cut]);
            drop(other);
            bench.expect_frame(b"whole");
            bench.expect_lost(LossReason::Closed);
        }
    }
}

#[test]
fn malformed_headers_cost_the_link() {
    let beyond = LossReason::Violation("a length beyond its bound");
    let unknown = LossReason::Violation("a header of unknown kind");
    let unasked = LossReason::Violation("a body nobody asked for");
    for records in BOTH {
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
            let mut bench = Bench::new(records);
            let mut other = bench.peer(1);
            other.say(&bytes);
            bench.expect_lost(reason);
            bench.expect_closed(&mut other.stream);
        }
    }
}

#[test]
fn a_thousand_connections_of_garbage_do_no_harm() {
    let mut random = random();
    for records in BOTH {
        let mut bench = Bench::new(records);
        let config = bench.job.credentials(OTHER).client_config();
        for round in 0..500 {
            let len = random.usize(..200);
            let noise = garbage(&mut random, len);
            match random.u64(..5) {
                0 => drop(bench.stranger(&noise)),
                1 => {
                    let mut bytes = bench.client(Arc::clone(&config)).take_sealed();
                    let at = random.usize(..bytes.len());
                    bytes[at] ^= 1 << random.u64(..8);
                    drop(bench.stranger(&bytes));
                }
                2 => {
                    let mut bytes = hello(DIALLER, records, OTHER, ME, round);
                    let at = random.usize(..bytes.len());
                    bytes[at] ^= 1 << random.u64(..8);
                    bench.caller(OTHER).say(&bytes);
                }
                3 => spoil(&mut bench, records, round, &noise),
                _ => {
                    let kind = random.u8(..5);
                    let (len, body) = (random.u32(..1 << 18), random.u64(..2));
                    let bytes = [header(kind, len, body), noise].concat();
                    spoil(&mut bench, records, round, &bytes);
                }
            }
            (0..random.u64(..4)).for_each(|_| bench.poll());
        }
        (0..100).for_each(|_| bench.poll());
        bench.seen.clear();
        let mut other = bench.peer_of(PeerId(61), 1);
        other.say(&frame(b"sane"));
        bench.expect(Event::Frame {
            peer: PeerId(61),
            bytes: b"sane",
        });
    }
}

/// Says a good hello and then this, partly as it is.
fn spoil(bench: &mut Bench, records: Records, round: u64, bytes: &[u8]) {
    let mut other = bench.caller(OTHER);
    other.say(&hello(DIALLER, records, OTHER, ME, round + 1000));
    bench.poll();
    match (&other.tls, round % 3) {
        (Connection::Client(_), 0) => other.write(bytes),
        _ => {
            other.is_clear = records == Clear;
            other.say(bytes);
        }
    }
}
