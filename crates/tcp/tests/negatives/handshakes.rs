//! Handshakes that are begun and not ended well, and bytes that are none.

use std::sync::Arc;
use std::time::{Duration, Instant};

use mizzen_driver::Event;
use mizzen_tcp::Records::{Clear, Sealed};

use crate::bench::{Bench, DIALLER, ME, OTHER, PATIENCE, frame, garbage, hello, random};

/// The first record of a client that knows TLS 1.2 only: its version, a random, no session, two ciphers, no compression,
/// one group, two signature schemes.
fn tls12_hello() -> Vec<u8> {
    let extensions = [
        &[0, 10, 0, 4, 0, 2, 0, 29][..],
        &[0, 13, 0, 6, 0, 4, 4, 3, 8, 7],
    ]
    .concat();
    let ciphers = [0, 0, 4, 0xc0, 0x2b, 0xc0, 0x2f, 1, 0, 0];
    let length = [u8::try_from(extensions.len()).unwrap()];
    let body = [&[3, 3][..], &[7; 32], &ciphers, &length, &extensions].concat();
    handshake(1, &body)
}

/// One message of a handshake in one record.
fn handshake(kind: u8, body: &[u8]) -> Vec<u8> {
    let len = u32::try_from(body.len()).unwrap().to_be_bytes();
    let message = [&[kind], &len[1..], body].concat();
    record(22, &message)
}

fn record(kind: u8, bytes: &[u8]) -> Vec<u8> {
    let len = u16::try_from(bytes.len()).unwrap().to_be_bytes();
    [&[kind, 3, 3], &len[..], bytes].concat()
}

#[test]
fn a_caller_of_tls_1_2_is_refused() {
    let mut bench = Bench::new(Sealed);
    let mut stream = bench.stranger(&tls12_hello());
    bench.expect_closed(&mut stream);
    bench.expect_nothing();
}

#[test]
fn a_dialled_process_of_tls_1_2_is_refused() {
    let mut bench = Bench::new(Sealed);
    let server = bench.job.credentials(OTHER).server_config();
    let mut other = bench.dialled(server);
    let body = [&[3, 3][..], &[7; 32], &[0, 0xc0, 0x2b, 0]].concat();
    other.write(&handshake(2, &body));
    bench.expect(Event::ConnectFailed {
        peer: OTHER,
        reason: mizzen_driver::ConnectFailure::Rejected,
    });
}

/// Each as the first thing that is said, and refused at once: the patience of these drivers is longer than the test's.
#[test]
fn bytes_of_other_protocols_are_refused_at_once() {
    let mut bench = Bench::with(Sealed, |options| options.hello_patience(2 * PATIENCE));
    let mut random = random();
    let noise = [0x80, 0x2e, 1, 3, 1]
        .into_iter()
        .chain(garbage(&mut random, 40));
    let noise: Vec<u8> = noise.collect();
    let bytes: [&[u8]; 14] = [
        b"GET / HTTP/1.1\r\nHost: example\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"EHLO example\r\n",
        b"\0\0\0\x5a\xffSMB",
        b"*1\r\n$4\r\nPING\r\n",
        b"{\"jsonrpc\":\"2.0\"}\n",
        b"\n",
        &[0; 64],
        &[0xff; 64],
        // SSL 2, an alert, application data, and an empty record before any handshake.
        &noise,
        &record(21, &[2, 40]),
        &record(23, &[1; 40]),
        &record(22, b""),
    ];
    for bytes in bytes {
        let mut stream = bench.stranger(bytes);
        bench.expect_closed(&mut stream);
    }
    for bytes in [hello(DIALLER, Sealed, OTHER, ME, 1), frame(b"hello")] {
        let mut stream = bench.stranger(&bytes);
        bench.expect_closed(&mut stream);
    }
    bench.expect_nothing();
    assert_eq!(bench.driver.strangers(), 0);
}

#[test]
fn the_same_bytes_as_an_answer_fail_the_dial_at_once() {
    let mut bench = Bench::with(Sealed, |options| options.dial_patience(2 * PATIENCE));
    let server = bench.job.credentials(OTHER).server_config();
    for bytes in [
        &b"HTTP/1.1 400 Bad Request\r\n\r\n"[..],
        b"SSH-2.0-OpenSSH_9.6\r\n",
        &[0; 64],
        &[0xff; 64],
        &record(23, &[1; 40]),
        &record(21, &[2, 40]),
        &hello(2, Sealed, OTHER, ME, 1),
        &frame(b"hello"),
    ] {
        let mut other = bench.dialled(Arc::clone(&server));
        other.write(bytes);
        bench.expect(Event::ConnectFailed {
            peer: OTHER,
            reason: mizzen_driver::ConnectFailure::Rejected,
        });
    }
}

#[test]
fn a_record_longer_than_tls_allows_is_refused_before_it_comes() {
    let mut bench = Bench::with(Sealed, |options| options.hello_patience(2 * PATIENCE));
    for len in [16 * 1024 + 257_u16, u16::MAX] {
        let [high, low] = len.to_be_bytes();
        let mut stream = bench.stranger(&[22, 3, 3, high, low]);
        bench.expect_closed(&mut stream);
    }
}

#[test]
fn a_handshake_longer_than_64_kibibytes_is_refused() {
    let mut bench = Bench::with(Sealed, |options| options.hello_patience(2 * PATIENCE));
    // One that says so, one that does not, and one of empty messages that never ends.
    let large = [&[1, 1, 0, 0][..], &[0; 100]].concat();
    let mut stream = bench.stranger(&record(22, &large));
    bench.expect_closed(&mut stream);
    let first = record(22, &[&[1, 0, 0xff, 0xff][..], &[0; 16_000]].concat());
    let rest = record(22, &[0; 16_000]).repeat(4);
    let mut stream = bench.stranger(&[first, rest].concat());
    bench.expect_closed(&mut stream);
    let changes = record(20, &[1]).repeat(20_000);
    let mut stream = bench.stranger(&changes);
    bench.expect_closed(&mut stream);
}

/// A caller that says a little now and then is closed when the patience of its driver ends, not when its own does.
#[test]
fn a_handshake_byte_by_byte_ends_with_our_patience() {
    let patience = Duration::from_millis(300);
    let mut bench = Bench::with(Sealed, |options| options.hello_patience(patience));
    let config = bench.job.credentials(OTHER).client_config();
    let mut other = bench.client(config);
    let flight = other.take_sealed();
    let start = Instant::now();
    let mut said = 0;
    while !other.is_closed {
        assert!(start.elapsed() < Duration::from_secs(3), "{said} bytes");
        if said < flight.len() - 1 {
            other.write(&flight[said..=said]);
            said += 1;
        }
        bench.poll();
        other.step();
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(start.elapsed() >= patience);
    assert_eq!(bench.driver.strangers(), 0);
    bench.expect_nothing();
}

#[test]
fn a_dialled_process_that_answers_byte_by_byte_ends_with_our_patience() {
    let patience = Duration::from_millis(300);
    let mut bench = Bench::with(Sealed, |options| options.dial_patience(patience));
    let server = bench.job.credentials(OTHER).server_config();
    let mut other = bench.dialled(server);
    let start = Instant::now();
    let mut flight = Vec::new();
    while bench.seen.is_empty() {
        assert!(start.elapsed() < Duration::from_secs(3));
        bench.poll();
        other.hear_only();
        flight.extend(other.take_sealed());
        if !flight.is_empty() {
            other.write(&[flight.remove(0)]);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    bench.expect(Event::ConnectFailed {
        peer: OTHER,
        reason: mizzen_driver::ConnectFailure::TimedOut,
    });
}

/// Run in a process of its own, whose environment is ours to set.
#[test]
fn no_file_of_keys_is_written() {
    let name = "handshakes::a_link_and_a_frame";
    let file = std::env::temp_dir().join(format!("mizzen-keys-{}", std::process::id()));
    let run = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", name])
        .env("SSLKEYLOGFILE", &file)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success() && said.contains("1 passed"), "{said}");
    assert!(!file.exists());
}

#[test]
#[ignore = "run by the one before, in another environment"]
fn a_link_and_a_frame() {
    for records in [Sealed, Clear] {
        let mut pair = crate::pair::Pair::linked(records);
        let bytes = pair.send_bytes(b"secret");
        pair.path().to_b.write(&bytes);
        pair.expect_frame_at_b(b"secret");
    }
}
