//! On the path between two good peers whose records are sealed: what is changed costs the link, and is not handed out;
//! what came before it is.

use std::io::IoSlice;
use std::time::{Duration, Instant};

use mizzen_driver::{Driver, Event, LossReason};
use mizzen_tcp::Records::Sealed;

use crate::bench::{ME, OTHER, PATIENCE};
use crate::pair::{Pair, TAMPERED};

#[test]
fn what_is_passed_on_as_it_is_arrives() {
    let mut pair = Pair::linked(Sealed);
    let records = pair.send(&[b"one", b"two"]);
    pair.deliver(&records);
    pair.expect_frame_at_b(b"one");
    pair.expect_frame_at_b(b"two");
    pair.b.expect_nothing();
}

#[test]
fn nothing_on_the_path_is_readable() {
    let mut pair = Pair::linked(Sealed);
    let secret = b"a secret of thirty bytes, here";
    let records = pair.send(&[secret]);
    pair.deliver(&records);
    pair.expect_frame_at_b(secret);
    let said = &pair.path().to_a.said;
    assert!(!said.windows(8).any(|bytes| bytes == &secret[..8]));
    // Nor is who talks: certificates and hellos are sealed, too.
    let is_named = |said: &[u8]| said.windows(9).any(|bytes| bytes == b"mizzen://");
    assert!(!is_named(said));
    assert!(!is_named(&pair.path().to_b.said));
}

#[test]
fn records_in_another_order_cost_the_link() {
    let mut pair = Pair::linked(Sealed);
    let records = pair.send(&[b"one", b"two", b"three", b"four"]);
    pair.deliver([&records[0], &records[2], &records[1], &records[3]]);
    pair.expect_frame_at_b(b"one");
    pair.expect_lost_at_b(TAMPERED);
}

#[test]
fn a_record_that_comes_twice_costs_the_link() {
    let mut pair = Pair::linked(Sealed);
    let records = pair.send(&[b"one", b"two"]);
    pair.deliver([&records[0], &records[0], &records[1]]);
    pair.expect_frame_at_b(b"one");
    pair.expect_lost_at_b(TAMPERED);
}

#[test]
fn a_record_that_is_left_out_costs_the_link() {
    let mut pair = Pair::linked(Sealed);
    let records = pair.send(&[b"one", b"two", b"three"]);
    pair.deliver([&records[0], &records[2]]);
    pair.expect_frame_at_b(b"one");
    pair.expect_lost_at_b(TAMPERED);
}

#[test]
fn a_record_without_its_end_costs_the_link() {
    let records = Pair::linked(Sealed).send(&[b"one", b"two", b"three"]);
    for cut in 1..records[1].len() {
        let mut pair = Pair::linked(Sealed);
        let records = pair.send(&[b"one", b"two", b"three"]);
        pair.deliver([&records[0], &records[1][..cut].to_vec(), &records[2]]);
        pair.path()
            .to_b
            .stream
            .shutdown(std::net::Shutdown::Write)
            .unwrap();
        pair.expect_frame_at_b(b"one");
        pair.go_on("a loss", |pair| !pair.b.seen.is_empty());
        let lost = |reason| format!("{:?}", Event::Lost { peer: ME, reason });
        let seen = pair.b.seen.pop_front().unwrap();
        assert!(
            [lost(TAMPERED), lost(LossReason::Closed)].contains(&seen),
            "{seen}"
        );
        pair.b.expect_nothing();
    }
}

#[test]
fn a_stream_without_its_end_costs_the_link() {
    let mut pair = Pair::linked(Sealed);
    let records = pair.send(&[b"one", b"two"]);
    pair.deliver([&records[0], &records[1][..20].to_vec()]);
    pair.path()
        .to_b
        .stream
        .shutdown(std::net::Shutdown::Write)
        .unwrap();
    pair.expect_frame_at_b(b"one");
    pair.expect_lost_at_b(LossReason::Closed);
}

#[test]
fn a_body_that_was_changed_on_its_way_is_not_received() {
    let mut pair = Pair::linked(Sealed);
    let mut frames: Vec<Vec<u8>> = (0..3).map(|number| vec![number; 50_000]).collect();
    for frame in &frames {
        pair.send_frame(frame);
    }
    let mut sent = pair.path().to_a.take();
    let at = sent.len() - 30_000;
    sent[at] ^= 1;
    pair.path().to_b.write(&sent);
    frames.truncate(2);
    for frame in &frames {
        pair.expect_frame_at_b(frame);
    }
    pair.expect_lost_at_b(TAMPERED);
}

/// What `b` hands out is always a beginning of what was sent. The kind and the version in front of a record mean nothing
/// once records are sealed (RFC 8446, 5.2), and TLS may look past a change there: the record is as it was.
#[test]
fn a_bit_that_was_changed_at_any_of_64_places_costs_the_link() {
    let frames: Vec<Vec<u8>> = (0..4_u8).map(|number| vec![number; 24]).collect();
    // Behind them comes so much that a record whose length was changed has all its bytes.
    let behind = vec![9; 40_000];
    for place in 0..64 {
        let mut pair = Pair::linked(Sealed);
        let slices: Vec<&[u8]> = frames.iter().map(|frame| &frame[..]).collect();
        let mut sent: Vec<u8> = pair.send(&slices).into_iter().flatten().collect();
        let record = sent.len() / frames.len();
        let (at, bit) = (place * sent.len() / 64, place % 8);
        sent[at] ^= 1 << bit;
        pair.send_frame(&behind);
        sent.extend(pair.path().to_a.take());
        pair.path().to_b.write(&sent);
        let whole = at / record;
        for frame in &frames[..whole] {
            pair.expect_frame_at_b(frame);
        }
        if at % record < 3 && pair.next_at_b().starts_with("Frame") {
            pair.expect_frame_at_b(&frames[whole]);
        } else {
            pair.expect_lost_at_b(TAMPERED);
        }
    }
}

#[test]
fn our_own_records_sent_back_cost_the_link() {
    let mut pair = Pair::linked(Sealed);
    let mine = [IoSlice::new(b"mine")];
    pair.b.driver.send_frame(ME, &mine).unwrap();
    let deadline = Instant::now() + PATIENCE;
    while !pair.path().to_b.holds(b"mine".len()) {
        pair.step(|_| {});
        assert!(Instant::now() < deadline, "a frame was not sent");
    }
    let reflected = pair.path().to_b.take();
    pair.path().to_b.write(&reflected);
    pair.expect_lost_at_b(TAMPERED);
}

#[test]
fn a_record_of_another_link_of_the_same_two_costs_the_link() {
    let mut pair = Pair::linked(Sealed);
    let old = pair.send(&[b"pay 100"]);
    pair.deliver(&old);
    pair.expect_frame_at_b(b"pay 100");
    pair.a.driver.disconnect(OTHER);
    pair.go_on("a loss", |pair| !pair.b.seen.is_empty());
    pair.expect_lost_at_b(LossReason::Closed);
    pair.link();
    pair.deliver(&old);
    pair.expect_lost_at_b(TAMPERED);
}

#[test]
fn what_is_put_in_between_costs_the_link() {
    // An alert, a goodbye, a change of cipher, a piece of a handshake, a record without content, too long a record.
    let inserted: [&[u8]; 6] = [
        &[21, 3, 3, 0, 2, 2, 20],
        &[21, 3, 3, 0, 2, 1, 0],
        &[20, 3, 3, 0, 1, 1],
        &[22, 3, 3, 0, 4, 1, 0, 0, 0],
        &[23, 3, 3, 0, 0],
        &[23, 3, 3, 0xff, 0xff, 0],
    ];
    for inserted in inserted {
        let mut pair = Pair::linked(Sealed);
        let records = pair.send(&[b"one", b"two"]);
        pair.deliver([&records[0], &inserted.to_vec(), &records[1]]);
        pair.expect_frame_at_b(b"one");
        pair.expect_lost_at_b(TAMPERED);
    }
}

fn impatient(options: mizzen_tcp::TcpOptions) -> mizzen_tcp::TcpOptions {
    let patience = Duration::from_millis(200);
    options.hello_patience(patience).dial_patience(patience)
}

/// A handshake with one bit changed comes to nothing, unless the bit is none that means anything.
#[test]
fn a_bit_that_was_changed_in_a_handshake_makes_no_link() {
    let mut good = Pair::linked(Sealed);
    let (len_a, len_b) = (good.path().to_a.said.len(), good.path().to_b.said.len());
    for place in 0..64 {
        let is_of_a = place % 2 == 0;
        let len = if is_of_a { len_a } else { len_b };
        let at = place * len / 64;
        let mut pair = Pair::with(Sealed, Sealed, impatient);
        pair.dial();
        let mut version = false;
        let deadline = Instant::now() + PATIENCE;
        while pair.a.seen.is_empty() {
            assert!(Instant::now() < deadline);
            pair.step(|path| {
                let side = if is_of_a {
                    &mut path.to_a
                } else {
                    &mut path.to_b
                };
                if side.said.len() > at && side.flip(at, place % 8) {
                    version = side.is_version(at);
                }
                path.pass();
            });
        }
        let seen = pair.a.seen.pop_front().unwrap();
        let (peer, dialled) = (OTHER, true);
        let is_link = seen == format!("{:?}", Event::Connected { peer, dialled });
        assert!(!is_link || version, "{at} of {is_of_a}: {seen}");
        // `b` may have had its part; then it knows soon that `a` is gone.
        drop(pair.path.take());
        (0..50).for_each(|_| pair.b.poll());
        assert_eq!(pair.b.driver.strangers(), 0);
    }
}

/// A handshake that is cut anywhere makes no link for the one that lacks something, and leaves nobody behind.
#[test]
fn a_handshake_that_was_cut_makes_no_link() {
    let mut good = Pair::linked(Sealed);
    let len = good.path().to_a.said.len();
    for cut in (0..len).step_by(len / 40) {
        let mut pair = Pair::with(Sealed, Sealed, impatient);
        pair.dial();
        let mut passed = 0;
        let deadline = Instant::now() + PATIENCE;
        while pair.a.seen.is_empty() {
            assert!(Instant::now() < deadline);
            pair.step(|path| {
                let bytes = path.to_a.take();
                let now = bytes.len().min(cut - passed);
                passed += now;
                path.to_b.write(&bytes[..now]);
                let answer = path.to_b.take();
                path.to_a.write(&answer);
                if passed == cut {
                    let _ = path.to_b.stream.shutdown(std::net::Shutdown::Both);
                    let _ = path.to_a.stream.shutdown(std::net::Shutdown::Both);
                }
            });
        }
        let seen = pair.a.seen.pop_front().unwrap();
        assert!(seen.starts_with("ConnectFailed"), "cut at {cut}: {seen}");
        pair.b.expect_nothing();
        assert_eq!(pair.b.driver.strangers(), 0);
    }
}
