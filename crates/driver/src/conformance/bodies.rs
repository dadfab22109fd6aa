//! Bodies: lines 12 to 15 of the contract.

use super::Harness;
use super::fleet::{Fleet, Seen, pattern, split};
use crate::{BodyId, Refused};

/// Contract 12.
pub fn a_body_arrives_in_its_place<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    fleet.transfer(0, 1, BodyId(1), pattern(1, 10_000));
    fleet.await_body(0, 1, BodyId(1));
    fleet.settle();
    assert!(fleet.body(1, 0, BodyId(1)) == pattern(1, 10_000));
    assert_eq!(fleet.seen(0), [Seen::BodySent(fleet.id(1), BodyId(1))]);
    assert_eq!(fleet.seen(1), [Seen::BodyReceived(fleet.id(0), BodyId(1))]);
}

/// Contract 12: against the direction in which the link was made.
pub fn a_body_goes_back<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    fleet.transfer(1, 0, BodyId(u64::MAX), pattern(1, 10_000));
    fleet.await_body(1, 0, BodyId(u64::MAX));
    assert!(fleet.body(0, 1, BodyId(u64::MAX)) == pattern(1, 10_000));
}

/// Contract 12: no parts, and empty ones, at either end.
pub fn an_empty_body_arrives<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    let shapes: [&[usize]; 3] = [&[], &[0], &[0, 0, 0]];
    let mut id = 0;
    for there in shapes {
        for here in shapes {
            let body = BodyId(id);
            fleet.expect(1, 0, body, there).expect("an empty body");
            fleet
                .give(0, 1, body, here.iter().map(|_| Vec::new()).collect())
                .expect("an empty body");
            fleet.await_body(0, 1, body);
            assert!(fleet.body(1, 0, body).is_empty());
            id += 1;
        }
    }
}

/// Contract 12.
pub fn a_body_of_one_byte_arrives<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    (0..50).for_each(|id| fleet.transfer_and_check(0, 1, BodyId(id), pattern(id, 1)));
}

/// Contract 12.
pub fn bodies_around_a_page_arrive<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    for len in [4095, 4096, 4097, 8191, 8192, 8193, 65_535, 65_536, 65_537] {
        fleet.transfer_and_check(0, 1, BodyId(len), pattern(len, len as usize));
    }
}

/// Contract 12: around the sizes in which drivers like to cut.
pub fn bodies_around_a_mebibyte_arrive<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    for len in [
        (1 << 18) - 1,
        1 << 18,
        (1 << 18) + 1,
        (1 << 20) - 1,
        1 << 20,
        (1 << 20) + 1,
    ] {
        fleet.transfer_and_check(0, 1, BodyId(len), pattern(len, len as usize));
    }
}

/// Contract 14, and `caps.max_body` as far as memory allows.
pub fn a_long_body_arrives<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    let len = fleet.caps(0).max_body.min(16 << 20);
    fleet.transfer_and_check(0, 1, BodyId(1), pattern(1, len));
}

/// Contract 12.
pub fn each_end_splits_as_it_likes<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    let bytes = pattern(5, 3000);
    let shapes: [&[usize]; 6] = [
        &[3000],
        &[1, 2999],
        &[2999, 1],
        &[1000, 1000, 1000],
        &[1, 2, 4, 8, 16, 2969],
        &[7, 0, 2993],
    ];
    let mut id = 0;
    for there in shapes {
        for here in shapes {
            let body = BodyId(id);
            fleet
                .expect(1, 0, body, there)
                .expect("a body that the contract allows");
            fleet
                .give(0, 1, body, split(&bytes, here))
                .expect("a body that the contract allows");
            fleet.await_body(0, 1, body);
            assert!(fleet.body(1, 0, body) == bytes, "{here:?} into {there:?}");
            id += 1;
        }
    }
}

/// Contract 12: as above, across the sizes in which drivers like to cut.
pub fn long_bodies_are_split_as_either_end_likes<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    let bytes = pattern(6, 700_000);
    let shapes: [&[usize]; 3] = [
        &[1, 699_999],
        &[262_143, 2, 437_855],
        &[100_000, 0, 300_000, 300_000],
    ];
    for (id, (here, there)) in shapes
        .iter()
        .flat_map(|a| shapes.iter().map(move |b| (a, b)))
        .enumerate()
    {
        let body = BodyId(id as u64);
        fleet
            .expect(1, 0, body, there)
            .expect("a body that the contract allows");
        fleet
            .give(0, 1, body, split(&bytes, here))
            .expect("a body that the contract allows");
        fleet.await_body(0, 1, body);
        assert!(fleet.body(1, 0, body) == bytes, "{here:?} into {there:?}");
    }
}

/// Contract 14, and `caps.max_parts`.
pub fn as_many_parts_as_the_capabilities_say_are_carried<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    let parts = fleet.caps(0).max_parts;
    let bytes = pattern(9, parts * 3);
    fleet
        .expect(1, 0, BodyId(1), &vec![3; parts])
        .expect("as many parts as the capabilities say");
    fleet
        .give(0, 1, BodyId(1), split(&bytes, &vec![3; parts]))
        .expect("as many parts as the capabilities say");
    fleet.await_body(0, 1, BodyId(1));
    assert!(fleet.body(1, 0, BodyId(1)) == bytes);
}

/// Contract 14, and `caps.max_parts`.
pub fn one_part_too_many_is_refused<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    let max = fleet.caps(0).max_parts;
    let refused = Err(Refused::TooManyParts {
        parts: max + 1,
        max,
    });
    assert_eq!(fleet.give(0, 1, BodyId(1), vec![vec![1]; max + 1]), refused);
    assert_eq!(fleet.expect(0, 1, BodyId(1), &vec![1; max + 1]), refused);
    fleet.transfer_and_check(0, 1, BodyId(1), pattern(1, 100));
    fleet.transfer_and_check(1, 0, BodyId(1), pattern(2, 100));
}

/// Contract 14, and `caps.max_bodies`.
pub fn as_many_bodies_as_the_capabilities_say_are_carried<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    let max = fleet.caps(0).max_bodies as u64;
    (0..max).for_each(|id| {
        fleet
            .expect(1, 0, BodyId(id), &[10])
            .expect("as many as the capabilities say")
    });
    for id in (0..max).rev() {
        fleet
            .give(0, 1, BodyId(id), vec![pattern(id, 10)])
            .expect("as many as the capabilities say");
    }
    fleet.until("all bodies arrive", |fleet| {
        fleet.seen(1).len() as u64 == max
    });
    assert!((0..max).all(|id| fleet.body(1, 0, BodyId(id)) == pattern(id, 10)));
}

/// Contract 14, and `caps.max_bodies`.
pub fn one_body_too_many_is_refused<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    let max = fleet.caps(0).max_bodies;
    let refused = Err(Refused::TooManyBodies { max });
    (0..max).for_each(|id| {
        fleet
            .expect(1, 0, BodyId(id as u64), &[1])
            .expect("as many as the capabilities say")
    });
    assert_eq!(fleet.expect(1, 0, BodyId(max as u64), &[1]), refused);
    // The sender's are in flight until it polls: nothing else reports their end.
    (0..max).for_each(|id| {
        fleet
            .give(0, 1, BodyId(id as u64), vec![vec![1]])
            .expect("as many as they say")
    });
    assert_eq!(fleet.give(0, 1, BodyId(max as u64), vec![vec![1]]), refused);
    fleet.until("all bodies arrive", |fleet| {
        fleet.seen(1).len() == max && fleet.seen(0).len() == max
    });
    fleet.transfer_and_check(0, 1, BodyId(max as u64), pattern(1, 1));
}

/// Contract 12.
pub fn bodies_cross<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    for id in 0..8 {
        fleet.transfer(0, 1, BodyId(id), pattern(id, 300_000));
        fleet.transfer(1, 0, BodyId(100 + id), pattern(100 + id, 300_000));
    }
    for id in 0..8 {
        fleet.await_body(0, 1, BodyId(id));
        fleet.await_body(1, 0, BodyId(100 + id));
        assert!(fleet.body(1, 0, BodyId(id)) == pattern(id, 300_000));
        assert!(fleet.body(0, 1, BodyId(100 + id)) == pattern(100 + id, 300_000));
    }
}

/// Contract 12: long and short, all at once.
pub fn many_bodies_in_flight_arrive<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    let len = |id: u64| [0, 1, 5_000, 400_000][id as usize % 4];
    (0..16).for_each(|id| fleet.transfer(0, 1, BodyId(id), pattern(id, len(id))));
    fleet.until("all bodies arrive", |fleet| {
        fleet.seen(1).len() == 16 && fleet.seen(0).len() == 16
    });
    assert!((0..16).all(|id| fleet.body(1, 0, BodyId(id)) == pattern(id, len(id))));
}

/// Contract 13.
pub fn bodies_are_asked_for_in_any_order<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    let len = |id: u64| 1000 + id as usize;
    let order = [5, 2, 7, 0, 1, 6, 4, 3];
    order
        .iter()
        .for_each(|&id| fleet.expect(1, 0, BodyId(id), &[len(id)]).expect("a body"));
    (0..8).for_each(|id| {
        fleet
            .give(0, 1, BodyId(id), vec![pattern(id, len(id))])
            .expect("a body")
    });
    fleet.until("all bodies arrive", |fleet| fleet.seen(1).len() == 8);
    assert!((0..8).all(|id| fleet.body(1, 0, BodyId(id)) == pattern(id, len(id))));
}

/// Contract 13: asked for long before, with other traffic in between.
pub fn a_body_may_be_asked_for_early<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    fleet.expect(1, 0, BodyId(1), &[50_000]).expect("a body");
    (0_u8..100).for_each(|number| fleet.send(0, 1, &[number]));
    fleet.transfer_and_check(0, 1, BodyId(2), pattern(2, 50_000));
    fleet
        .give(0, 1, BodyId(1), vec![pattern(1, 50_000)])
        .expect("a body");
    fleet.await_body(0, 1, BodyId(1));
    assert!(fleet.body(1, 0, BodyId(1)) == pattern(1, 50_000));
}

/// Contract 13.
pub fn the_same_id_goes_both_ways<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    fleet.transfer(0, 1, BodyId(7), pattern(1, 200_000));
    fleet.transfer(1, 0, BodyId(7), pattern(2, 100_000));
    fleet.await_body(0, 1, BodyId(7));
    fleet.await_body(1, 0, BodyId(7));
    assert!(fleet.body(1, 0, BodyId(7)) == pattern(1, 200_000));
    assert!(fleet.body(0, 1, BodyId(7)) == pattern(2, 100_000));
}

/// Contract 13.
pub fn the_same_id_comes_from_two_peers<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 3);
    fleet.transfer(1, 0, BodyId(7), pattern(1, 200_000));
    fleet.transfer(2, 0, BodyId(7), pattern(2, 100_000));
    fleet.await_body(1, 0, BodyId(7));
    fleet.await_body(2, 0, BodyId(7));
    assert!(fleet.body(0, 1, BodyId(7)) == pattern(1, 200_000));
    assert!(fleet.body(0, 2, BodyId(7)) == pattern(2, 100_000));
}

/// Contract 13.
pub fn an_id_in_flight_is_refused<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    let refused = Err(Refused::BodyInUse { body: BodyId(7) });
    fleet.transfer(0, 1, BodyId(7), pattern(1, 200_000));
    assert_eq!(fleet.expect(1, 0, BodyId(7), &[5]), refused);
    assert_eq!(fleet.give(0, 1, BodyId(7), vec![vec![0; 5]]), refused);
    fleet.await_body(0, 1, BodyId(7));
    assert!(fleet.body(1, 0, BodyId(7)) == pattern(1, 200_000));
}

/// Contract 13.
pub fn an_id_can_be_used_again<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    for round in 0..50 {
        fleet.transfer_and_check(0, 1, BodyId(7), pattern(round, round as usize * 100));
        fleet.take(0);
        fleet.take(1);
    }
}

/// Contract 14, and `caps.max_body`.
pub fn a_body_one_byte_too_long_is_refused<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    let max = fleet.caps(0).max_body;
    let refused = Err(Refused::TooLong { len: max + 1, max });
    assert_eq!(fleet.pretend_to_give(0, 1, max + 1), refused);
    assert_eq!(fleet.pretend_to_expect(0, 1, max + 1), refused);
    fleet.transfer_and_check(0, 1, BodyId(1), pattern(1, 100));
}

/// Contract 9.
pub fn a_body_without_a_link_is_refused<H: Harness>(harness: H) {
    let mut fleet = Fleet::new(harness, 3);
    fleet.link(0, 1);
    let peer = fleet.id(2);
    assert_eq!(
        fleet.give(0, 2, BodyId(1), vec![vec![1]]),
        Err(Refused::NotConnected { peer })
    );
    assert_eq!(
        fleet.expect(0, 2, BodyId(1), &[1]),
        Err(Refused::NotConnected { peer })
    );
}

/// Contract 15: with room and without.
pub fn frames_before_a_body_are_reported_before_it<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    let mut frames = 0;
    for id in 0..10 {
        fleet.expect(1, 0, BodyId(id), &[500]).expect("a body");
        while frames < 300 * (id + 1) && fleet.offer(0, 1, &[1; 3000]).is_ok() {
            frames += 1;
        }
        fleet
            .give(0, 1, BodyId(id), vec![pattern(id, 500)])
            .expect("a body");
        fleet.until("the body arrives", |fleet| fleet.has_body(1, 0, BodyId(id)));
        assert!(
            fleet.frames(1, 0).len() as u64 >= frames,
            "a body overtook a frame"
        );
    }
}

/// Contract 15.
pub fn a_frame_overtakes_a_long_body<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    let len = fleet.caps(0).max_body.min(16 << 20);
    fleet.transfer(0, 1, BodyId(1), pattern(1, len));
    fleet.send(0, 1, b"make way");
    fleet.until("the frame arrives", |fleet| !fleet.frames(1, 0).is_empty());
    assert!(
        !fleet.has_body(1, 0, BodyId(1)),
        "the frame waited for the body"
    );
    fleet.await_body(0, 1, BodyId(1));
    assert!(fleet.body(1, 0, BodyId(1)) == pattern(1, len));
}

/// Contract 6 and 12: frames of all lengths between the pieces of bodies.
pub fn frames_and_bodies_interleave<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    let max = fleet.caps(0).max_frame;
    for id in 0..10 {
        fleet.transfer(0, 1, BodyId(id), pattern(id, 350_000));
        let len = (id as usize * 1777) % max;
        (0..5).for_each(|number| fleet.send(0, 1, &pattern(id * 5 + number, len)));
    }
    fleet.until("all arrive", |fleet| {
        fleet.frames(1, 0).len() == 50 && (0..10).all(|id| fleet.has_body(1, 0, BodyId(id)))
    });
    assert!((0..10).all(|id| fleet.body(1, 0, BodyId(id)) == pattern(id, 350_000)));
    let len = |number: u64| (number as usize / 5 * 1777) % max;
    assert!(
        fleet
            .frames(1, 0)
            .iter()
            .zip(0..)
            .all(|(frame, number)| *frame == pattern(number, len(number)))
    );
}

/// Contract 17: the sender changes its memory as soon as it may.
pub fn sent_memory_is_not_read_after_the_report<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    for id in 0..5 {
        fleet.transfer(0, 1, BodyId(id), pattern(id, 500_000));
        fleet.until("the memory is free", |fleet| {
            fleet.has_sent(0, 1, BodyId(id))
        });
        fleet
            .reclaim_sent(0, 1, BodyId(id))
            .iter_mut()
            .for_each(|part| part.fill(0xee));
        fleet.await_body(0, 1, BodyId(id));
        assert!(fleet.body(1, 0, BodyId(id)) == pattern(id, 500_000));
    }
}

/// Contract 17: the receiver changes its memory as soon as it may.
pub fn received_memory_is_not_written_after_the_report<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    (0..8).for_each(|id| fleet.transfer(0, 1, BodyId(id), pattern(id, 300_000)));
    for id in 0..8 {
        fleet.until("a body arrives", |fleet| fleet.has_body(1, 0, BodyId(id)));
        fleet
            .reclaim_received(1, 0, BodyId(id))
            .iter_mut()
            .for_each(|part| part.fill(0xee));
    }
    fleet.settle();
    let is_ours = |part: &Vec<u8>| part.iter().all(|&byte| byte == 0xee);
    assert!((0..8).all(|id| fleet.reclaim_received(1, 0, BodyId(id)).iter().all(is_ours)));
}

impl<H: Harness> Fleet<H> {
    fn transfer_and_check(&mut self, from: usize, to: usize, body: BodyId, bytes: Vec<u8>) {
        self.transfer(from, to, body, bytes.clone());
        self.await_body(from, to, body);
        assert!(
            self.body(to, from, body) == bytes,
            "{body} of {} bytes is not what was sent",
            bytes.len()
        );
    }
}
