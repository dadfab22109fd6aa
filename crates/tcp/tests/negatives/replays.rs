//! What others said, recorded and said again.

use mizzen_driver::{ConnectFailure, Driver, Event};
use mizzen_tcp::Records::Clear;

use crate::bench::{BOTH, ME, OTHER, listener};
use crate::pair::Pair;

#[test]
fn what_a_dialler_said_is_refused_when_it_is_said_again() {
    for records in BOTH {
        let mut pair = Pair::linked(records);
        let records = pair.send_bytes(b"pay 100");
        pair.path().to_b.write(&records);
        pair.expect_frame_at_b(b"pay 100");
        let said = pair.path().to_a.said.clone();
        // All at once; and a second time, byte by byte.
        let mut stranger = pair.b.stranger(&said);
        expect_closed(&mut pair, &mut stranger);
        let mut stranger = pair.b.stranger(b"");
        for byte in &said {
            // It may be closed before the end.
            let _ = std::io::Write::write(&mut stranger, &[*byte]);
            pair.b.poll();
        }
        expect_closed(&mut pair, &mut stranger);
        pair.b.expect_nothing();
        assert_eq!(pair.b.driver.strangers(), 0);
        // The link that was recorded is none the worse.
        let more = pair.send_bytes(b"thanks");
        pair.path().to_b.write(&more);
        pair.expect_frame_at_b(b"thanks");
    }
}

/// The driver answers the first flight, as it must, and then says nothing under the seal that the replayer could open.
fn expect_closed(pair: &mut Pair, stranger: &mut std::net::TcpStream) {
    use std::io::{ErrorKind, Read};
    stranger.set_nonblocking(true).unwrap();
    let deadline = std::time::Instant::now() + crate::bench::PATIENCE;
    loop {
        pair.b.poll();
        match stranger.read(&mut [0; 4096]) {
            Ok(0) => return,
            Err(error) if error.kind() != ErrorKind::WouldBlock => return,
            _ => assert!(std::time::Instant::now() < deadline),
        }
    }
}

#[test]
fn what_an_acceptor_said_is_refused_when_it_is_said_again() {
    for records in BOTH {
        let mut pair = Pair::linked(records);
        let said = pair.path().to_b.said.clone();
        pair.a.driver.disconnect(OTHER);
        let (listener, at) = listener();
        pair.a.driver.connect(OTHER, &at).unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        std::io::Write::write_all(&mut stream, &said).unwrap();
        pair.a.expect(Event::ConnectFailed {
            peer: OTHER,
            reason: ConnectFailure::Rejected,
        });
    }
}

#[test]
fn what_a_dialler_said_is_refused_when_another_hears_it() {
    let mut pair = Pair::linked(Clear);
    let said = pair.path().to_a.said.clone();
    let mut third = crate::bench::Bench::of(&pair.a.job, mizzen_driver::PeerId(70), Clear, |o| o);
    let mut stranger = third.stranger(&said);
    std::mem::swap(&mut pair.b, &mut third);
    expect_closed(&mut pair, &mut stranger);
    pair.b.expect_nothing();
}

#[test]
fn what_we_said_is_refused_when_it_is_said_to_us() {
    for records in BOTH {
        let mut pair = Pair::linked(records);
        // As a first flight to the one that said it, and as an answer to its dial.
        let said = pair.path().to_a.said.clone();
        let mut stranger = pair.a.stranger(&said);
        std::mem::swap(&mut pair.a, &mut pair.b);
        expect_closed(&mut pair, &mut stranger);
        std::mem::swap(&mut pair.a, &mut pair.b);
        pair.a.driver.disconnect(OTHER);
        let (listener, at) = listener();
        pair.a.driver.connect(OTHER, &at).unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        std::io::Write::write_all(&mut stream, &said).unwrap();
        pair.a.expect(Event::ConnectFailed {
            peer: OTHER,
            reason: ConnectFailure::Rejected,
        });
        pair.b.poll();
        let lost = |seen: &String| seen.contains(&format!("{ME:?}"));
        assert!(pair.b.seen.iter().all(lost));
    }
}

/// Everything that the acceptor says is passed to the dialler again, in a second connection to the same acceptor: two
/// handshakes cannot be mixed.
#[test]
fn flights_of_two_handshakes_do_not_go_together() {
    let mut pair = Pair::linked(Clear);
    let old = pair.path().to_b.said.clone();
    pair.a.driver.disconnect(OTHER);
    pair.go_on("a loss", |pair| !pair.b.seen.is_empty());
    pair.b.seen.clear();
    pair.dial();
    let mut at = 0;
    let deadline = std::time::Instant::now() + crate::bench::PATIENCE;
    while pair.a.seen.is_empty() {
        assert!(std::time::Instant::now() < deadline);
        pair.step(|path| {
            let from_a = path.to_a.take();
            path.to_b.write(&from_a);
            // The first record is the new one, the others are the old ones.
            let mut new = path.to_b.take();
            if at == 0 && new.len() > 5 {
                let first = 5 + usize::from(u16::from_be_bytes([new[3], new[4]]));
                new.truncate(first);
                at = first;
                new.extend(&old[first..]);
                path.to_a.write(&new);
            }
        });
    }
    let seen = pair.a.seen.pop_front().unwrap();
    assert!(seen.starts_with("ConnectFailed"), "{seen}");
}
