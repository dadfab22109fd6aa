//! A peer that sends what it should not.

#![allow(unsafe_code)]

use mizzen_driver::{BodyId, Driver, Event, LossReason, PartMut, PeerId, Refused, Way};
use mizzen_tcp::Records::Sealed;

use crate::bench::{BOTH, Bench, OTHER, frame, header};

const PIECE: u8 = 2;
const LAST: u8 = 3;
const PUSHED: u8 = 4;
const LAST_PUSHED: u8 = 5;

/// Gives a body a place.
fn place(bench: &mut Bench, body: u64, memory: &mut [u8]) -> Result<(), Refused> {
    let part = PartMut::new(memory.as_mut_ptr(), memory.len());
    // SAFETY: the memory outlives the driver's use of it: each test waits for the end of the body, or of the link.
    unsafe { bench.driver.recv_body(OTHER, BodyId(body), &[part]) }
}

/// Each change is refused, or makes another good header, and never more than the link is lost.
#[test]
fn a_header_with_any_bit_changed_does_no_harm() {
    for records in BOTH {
        let mut bench = Bench::new(records);
        for kind in [1, LAST_PUSHED] {
            let body = u64::from(kind != 1);
            for bit in 0..16 * 8 {
                let serial = u64::from(kind) * 1000 + bit as u64;
                let mut other = bench.peer_of(PeerId(100 + serial), serial);
                let mut bytes = [header(kind, 5, body), vec![7; 5]].concat();
                bytes[bit / 8] ^= 1 << (bit % 8);
                other.say(&bytes);
                other.say(&frame(b"next"));
                drop(other);
                (0..40).for_each(|_| bench.poll());
                // If it waits for the place of a body, or for the rest.
                bench.driver.disconnect(PeerId(100 + serial));
                for seen in bench.seen.drain(..) {
                    let is_known = ["Frame", "BodyWaiting", "Lost"]
                        .iter()
                        .any(|name| seen.starts_with(name));
                    assert!(is_known, "bit {bit} of {kind}: {seen}");
                }
            }
        }
        let mut other = bench.peer(1);
        other.say(&frame(b"sane"));
        bench.expect_frame(b"sane");
    }
}

#[test]
fn lengths_beyond_their_bounds_cost_the_link_before_anything_follows() {
    let beyond = LossReason::Violation("a length beyond its bound");
    for records in BOTH {
        let mut bench = Bench::new(records);
        let mut serial = 0;
        for (kind, max) in [
            (1, 1 << 17),
            (PIECE, 1 << 18),
            (LAST, 1 << 18),
            (PUSHED, 1 << 18),
        ] {
            for len in [max + 1, 2 * max, 1 << 31, u32::MAX - 15, u32::MAX] {
                serial += 1;
                let mut other = bench.peer(serial);
                other.say(&header(kind, len, u64::from(kind != 1)));
                bench.expect_lost(beyond);
            }
        }
    }
}

#[test]
fn all_kinds_that_are_none_cost_the_link() {
    let unknown = LossReason::Violation("a header of unknown kind");
    let mut bench = Bench::new(Sealed);
    for kind in (0..=255).filter(|kind| !(1..=5).contains(kind)) {
        let mut other = bench.peer(1);
        other.say(&header(kind, 0, 0));
        bench.expect_lost(unknown);
    }
}

#[test]
fn a_pushed_body_that_nobody_awaits_waits_and_takes_no_memory() {
    for records in BOTH {
        let mut bench = Bench::new(records);
        let mut other = bench.peer(1);
        let bytes = vec![3; 100_000];
        other.say(&[header(LAST_PUSHED, 100_000, 9), bytes.clone()].concat());
        other.say(&frame(b"behind"));
        let (peer, body) = (OTHER, BodyId(9));
        bench.expect(Event::BodyWaiting { peer, body });
        // It is said once, and nothing behind it comes before it.
        bench.expect_nothing();
        let mut memory = vec![0; 100_000];
        place(&mut bench, 9, &mut memory).unwrap();
        bench.expect(Event::BodyReceived { peer, body });
        assert_eq!(memory, bytes);
        bench.expect_frame(b"behind");
    }
}

#[test]
fn a_pushed_body_of_another_length_than_its_place_costs_the_link() {
    let wrong = LossReason::Violation("a body of another length");
    // Longer, shorter, more to come than there is room, and nothing where something must be.
    for (kind, len) in [
        (LAST_PUSHED, 11),
        (LAST_PUSHED, 9),
        (PUSHED, 10),
        (PUSHED, 0),
    ] {
        for records in BOTH {
            let mut bench = Bench::new(records);
            let mut other = bench.peer(1);
            other.say(&header(kind, len, 9));
            let (peer, body) = (OTHER, BodyId(9));
            bench.expect(Event::BodyWaiting { peer, body });
            let mut memory = [0; 10];
            place(&mut bench, 9, &mut memory).unwrap();
            let way = Way::Receiving;
            let in_place = 0;
            bench.expect(Event::BodyFailed {
                peer,
                body,
                way,
                in_place,
            });
            bench.expect_lost(wrong);
        }
    }
}

#[test]
fn the_id_of_a_pushed_body_used_again_is_another_body() {
    for records in BOTH {
        let mut bench = Bench::new(records);
        let mut other = bench.peer(1);
        let (peer, body) = (OTHER, BodyId(9));
        for content in [[1; 10], [2; 10]] {
            other.say(&[header(LAST_PUSHED, 10, 9), content.to_vec()].concat());
            bench.expect(Event::BodyWaiting { peer, body });
            let mut memory = [0; 10];
            place(&mut bench, 9, &mut memory).unwrap();
            bench.expect(Event::BodyReceived { peer, body });
            assert_eq!(memory, content);
        }
    }
}

/// A piece of a body that is received already, or of which the end came, is of a body nobody asked for.
#[test]
fn a_piece_behind_the_end_of_its_body_costs_the_link() {
    for records in BOTH {
        let mut bench = Bench::new(records);
        let mut other = bench.peer(1);
        let mut memory = [0; 10];
        place(&mut bench, 9, &mut memory).unwrap();
        other.say(&[header(LAST, 10, 9), vec![1; 10]].concat());
        other.say(&[header(LAST, 10, 9), vec![2; 10]].concat());
        let (peer, body) = (OTHER, BodyId(9));
        bench.expect(Event::BodyReceived { peer, body });
        bench.expect_lost(LossReason::Violation("a body nobody asked for"));
        assert_eq!(memory, [1; 10]);
    }
}

#[test]
fn a_peer_that_pushes_ten_thousand_bodies_is_read_one_at_a_time() {
    let mut bench = Bench::new(Sealed);
    let mut other = bench.peer(1);
    for body in 1..=10_000 {
        other.say(&header(LAST_PUSHED, 0, body));
    }
    let (peer, body) = (OTHER, BodyId(1));
    bench.expect(Event::BodyWaiting { peer, body });
    bench.expect_nothing();
    for body in 1..=10_000 {
        place(&mut bench, body, &mut []).unwrap();
        let body = BodyId(body);
        bench.expect(Event::BodyReceived { peer, body });
        if body.0 < 10_000 {
            let body = BodyId(body.0 + 1);
            bench.expect(Event::BodyWaiting { peer, body });
        }
    }
}

#[test]
fn no_more_than_1024_bodies_have_a_place() {
    let mut bench = Bench::new(Sealed);
    let mut other = bench.peer(1);
    for body in 0..1024 {
        place(&mut bench, body, &mut []).unwrap();
    }
    let refused = place(&mut bench, 1024, &mut []);
    assert!(matches!(refused, Err(Refused::TooManyBodies { max: 1024 })));
    let refused = place(&mut bench, 5, &mut []);
    assert!(matches!(
        refused,
        Err(Refused::TooManyBodies { .. } | Refused::BodyInUse { .. })
    ));
    other.say(&header(LAST, 0, 5));
    bench.expect(Event::BodyReceived {
        peer: OTHER,
        body: BodyId(5),
    });
    place(&mut bench, 1024, &mut []).unwrap();
}

#[test]
fn a_truncated_body_fails_and_is_not_received() {
    for records in BOTH {
        let mut bench = Bench::new(records);
        let mut other = bench.peer(1);
        let mut memory = [0; 1000];
        place(&mut bench, 9, &mut memory).unwrap();
        other.say(&[header(LAST, 1000, 9), vec![1; 999]].concat());
        drop(other);
        let (peer, body, way) = (OTHER, BodyId(9), Way::Receiving);
        let in_place = 999;
        bench.expect(Event::BodyFailed {
            peer,
            body,
            way,
            in_place,
        });
        bench.expect_lost(LossReason::Closed);
    }
}
