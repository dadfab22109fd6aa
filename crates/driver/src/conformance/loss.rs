//! Links end, and begin again: lines 17 to 22 of the contract.

use super::Harness;
use super::fleet::{Fleet, Seen, pattern};
use super::lending::BLANK;
use crate::{BodyId, PeerId, Refused, Way};

/// Contract 18.
pub fn a_cut_is_reported_once_at_both_ends<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    fleet.cut(0, 1);
    fleet.await_loss(0, 1);
    fleet.settle();
    assert!(
        matches!(fleet.seen(0), [Seen::Lost(..)]),
        "{:?}",
        fleet.seen(0)
    );
    assert!(
        matches!(fleet.seen(1), [Seen::Lost(..)]),
        "{:?}",
        fleet.seen(1)
    );
}

/// Contract 18: a body that is cut may go on from where it was.
pub fn a_body_that_is_cut_is_in_place_as_far_as_is_said<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    let (body, len) = (BodyId(1), 16 << 20);
    let bytes = pattern(7, len);
    for round in 1..6 {
        fleet
            .expect(1, 0, body, &[len / 3, len - len / 3])
            .expect("a place");
        fleet.give(0, 1, body, vec![bytes.clone()]).expect("a body");
        for _ in 0..round * round {
            fleet.pump();
        }
        fleet.cut(0, 1);
        fleet.await_loss(0, 1);
        fleet.settle();
        if let Some(in_place) = fleet.in_place(1, body) {
            assert!(in_place <= len, "{in_place} bytes of {len}");
            assert!(fleet.place_of(1, 0, body)[..in_place] == bytes[..in_place]);
        }
        (0..2).for_each(|at| drop(fleet.take(at)));
        fleet.link(0, 1);
    }
}

/// Contract 18: each body once, then the link, then nothing.
pub fn bodies_in_flight_fail_before_the_loss<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    (0..5).for_each(|id| fleet.expect(1, 0, BodyId(id), &[8 << 20]).expect("a body"));
    (0..3).for_each(|id| {
        fleet
            .give(0, 1, BodyId(id), vec![vec![1; 8 << 20]])
            .expect("a body")
    });
    fleet.pump();
    fleet.cut(0, 1);
    fleet.await_loss(0, 1);
    fleet.settle();
    let (id_0, id_1) = (fleet.id(0), fleet.id(1));
    for id in 0..5 {
        let (failed, received) = (
            Seen::BodyFailed(id_0, BodyId(id), Way::Receiving),
            Seen::BodyReceived(id_0, BodyId(id)),
        );
        assert_eq!(fleet.count(1, &failed) + fleet.count(1, &received), 1);
    }
    for id in 0..3 {
        let (failed, sent) = (
            Seen::BodyFailed(id_1, BodyId(id), Way::Sending),
            Seen::BodySent(id_1, BodyId(id)),
        );
        assert_eq!(fleet.count(0, &failed) + fleet.count(0, &sent), 1);
    }
    assert!(
        matches!(fleet.seen(0).last(), Some(Seen::Lost(..))),
        "{:?}",
        fleet.seen(0).last()
    );
    assert!(
        matches!(fleet.seen(1).last(), Some(Seen::Lost(..))),
        "{:?}",
        fleet.seen(1).last()
    );
}

/// Contract 18: even when its events take many polls.
pub fn nothing_follows_a_loss<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    (0_u8..100).for_each(|number| fleet.send(0, 1, &[number]));
    (0..5).for_each(|id| fleet.expect(1, 0, BodyId(id), &[10]).expect("a body"));
    fleet.cut(0, 1);
    while fleet.losses(1, 0) == 0 {
        fleet.poll(1, 1);
    }
    fleet.settle();
    assert!(
        matches!(fleet.seen(1).last(), Some(Seen::Lost(..))),
        "{:?}",
        fleet.seen(1).last()
    );
}

/// Contract 6 and 18: what arrived is a beginning of what was sent.
pub fn frames_before_a_cut_arrive_without_gaps<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    (0_u32..500).for_each(|number| fleet.send(0, 1, &number.to_le_bytes()));
    fleet.cut(0, 1);
    fleet.await_loss(0, 1);
    assert!(
        fleet
            .frames(1, 0)
            .iter()
            .zip(0_u32..)
            .all(|(frame, number)| *frame == number.to_le_bytes())
    );
}

/// Contract 9 and 18.
pub fn nothing_can_be_sent_after_a_loss<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    fleet.cut(0, 1);
    fleet.await_loss(0, 1);
    let refused = Err(Refused::NotConnected { peer: fleet.id(1) });
    assert_eq!(fleet.offer(0, 1, b"late"), refused);
    assert_eq!(fleet.give(0, 1, BodyId(1), vec![vec![1]]), refused);
    assert_eq!(fleet.expect(0, 1, BodyId(1), &[1]), refused);
}

/// Contract 18: a sender that waits for room is told of the loss, not of room.
pub fn a_loss_ends_the_wait_for_room<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    while fleet.offer(0, 1, &[1; 4000]).is_ok() {}
    fleet.retire(1);
    fleet.until("the loss is reported", |fleet| fleet.losses(0, 1) == 1);
    fleet.settle();
    assert!(
        matches!(fleet.seen(0).last(), Some(Seen::Lost(..))),
        "{:?}",
        fleet.seen(0)
    );
}

/// Contract 19.
pub fn a_disconnect_is_reported_at_the_other_end_only<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    fleet.disconnect(0, 1);
    fleet.until("the loss is reported", |fleet| fleet.losses(1, 0) == 1);
    fleet.settle();
    assert_eq!(fleet.seen(0), []);
    assert_eq!(fleet.seen(1).len(), 1);
    assert_eq!(
        fleet.offer(0, 1, b""),
        Err(Refused::NotConnected { peer: fleet.id(1) })
    );
}

/// Contract 19 and 1.
pub fn a_disconnect_ends_an_attempt<H: Harness>(harness: H) {
    let mut fleet = Fleet::new(harness, 2);
    let (peer, nobody) = (fleet.id(1), fleet.nobody());
    for polls in 0..4 {
        fleet.connect(0, 1);
        (0..polls).for_each(|_| {
            fleet.poll(1, 1);
            fleet.poll(0, 0);
        });
        fleet.disconnect(0, 1);
        fleet.settle();
        assert_eq!(fleet.seen(0), []);
        fleet.driver_connect(0, peer, &nobody);
        fleet.disconnect(0, 1);
        fleet.settle();
        assert_eq!(fleet.seen(0), []);
        // The other end may have seen a link come and go, in this order.
        let seen = fleet.take(1);
        assert!(
            matches!(seen[..], [] | [Seen::Connected(_), Seen::Lost(..)]),
            "{seen:?}"
        );
    }
    fleet.link(0, 1);
}

/// Contract 19.
pub fn a_disconnect_without_a_link_does_nothing<H: Harness>(harness: H) {
    let mut fleet = Fleet::new(harness, 3);
    fleet.link(0, 1);
    fleet.disconnect(0, 2);
    fleet.disconnect(0, 0);
    fleet.disconnect(2, 1);
    fleet.settle();
    assert!((0..3).all(|at| fleet.seen(at).is_empty()));
    fleet.send(0, 1, b"still here");
    fleet.until("the frame arrives", |fleet| {
        fleet.frames(1, 0) == [b"still here"]
    });
}

/// Contract 19.
pub fn a_second_disconnect_does_nothing<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    fleet.disconnect(0, 1);
    fleet.disconnect(0, 1);
    fleet.until("the loss is reported", |fleet| fleet.losses(1, 0) == 1);
    fleet.disconnect(1, 0);
    fleet.settle();
    assert_eq!((fleet.seen(0).len(), fleet.seen(1).len()), (0, 1));
}

/// Contract 19.
pub fn nothing_arrives_after_a_disconnect<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    fleet.transfer(1, 0, BodyId(1), pattern(1, 100_000));
    (0_u8..100).for_each(|number| fleet.send(1, 0, &[number]));
    fleet.poll(0, 3);
    fleet.disconnect(0, 1);
    fleet.take(0);
    fleet.settle();
    assert_eq!(fleet.seen(0), []);
}

/// Contract 19.
pub fn both_ends_disconnect_at_once<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    fleet.send(0, 1, b"lost");
    fleet.disconnect(0, 1);
    fleet.disconnect(1, 0);
    fleet.take(0);
    fleet.take(1);
    fleet.settle();
    assert_eq!((fleet.seen(0), fleet.seen(1)), (&[][..], &[][..]));
    fleet.link(1, 0);
}

/// Contract 17: memory that was being received into.
pub fn a_disconnect_frees_memory_being_received_into<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    fleet.transfer(0, 1, BodyId(1), pattern(1, 8 << 20));
    (0..3).for_each(|_| {
        fleet.pump();
    });
    fleet.disconnect(1, 0);
    fleet
        .reclaim_received(1, 0, BodyId(1))
        .iter_mut()
        .for_each(|part| part.fill(BLANK));
    fleet.until("the loss is reported", |fleet| fleet.losses(0, 1) == 1);
    fleet.settle();
    let is_ours = |part: &Vec<u8>| part.iter().all(|&byte| byte == BLANK);
    assert!(fleet.reclaim_received(1, 0, BodyId(1)).iter().all(is_ours));
}

/// Contract 17: memory that was being sent from; a body that did arrive is what it was.
pub fn a_disconnect_frees_memory_being_sent_from<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    fleet.transfer(0, 1, BodyId(1), pattern(1, 8 << 20));
    (0..3).for_each(|_| {
        fleet.pump();
    });
    fleet.disconnect(0, 1);
    *fleet.reclaim_sent(0, 1, BodyId(1)) = Vec::new();
    fleet.until("the loss is reported", |fleet| fleet.losses(1, 0) == 1);
    let failed = Seen::BodyFailed(fleet.id(0), BodyId(1), Way::Receiving);
    assert_eq!(fleet.count(1, &failed), 1);
}

/// Contract 17: memory is free once the loss is reported.
pub fn a_loss_frees_memory<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    fleet.transfer(0, 1, BodyId(1), pattern(1, 8 << 20));
    (0..3).for_each(|_| {
        fleet.pump();
    });
    fleet.cut(0, 1);
    fleet.await_loss(0, 1);
    *fleet.reclaim_sent(0, 1, BodyId(1)) = Vec::new();
    fleet
        .reclaim_received(1, 0, BodyId(1))
        .iter_mut()
        .for_each(|part| part.fill(BLANK));
    fleet.settle();
    let is_ours = |part: &Vec<u8>| part.iter().all(|&byte| byte == BLANK);
    assert!(fleet.reclaim_received(1, 0, BodyId(1)).iter().all(is_ours));
}

/// Contract 20.
pub fn dropping_a_driver_disconnects_every_peer<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 4);
    fleet.retire(0);
    fleet.until("all lose the link", |fleet| {
        (1..4).all(|at| fleet.losses(at, 0) == 1)
    });
    fleet.settle();
    assert!((1..4).all(|at| fleet.seen(at).len() == 1));
    fleet.send(1, 2, b"we go on");
    fleet.until("the frame arrives", |fleet| {
        fleet.frames(2, 1) == [b"we go on"]
    });
}

/// Contract 17 and 20.
pub fn dropping_a_driver_frees_its_memory<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    fleet.transfer(0, 1, BodyId(1), pattern(1, 4 << 20));
    fleet.transfer(1, 0, BodyId(2), pattern(2, 4 << 20));
    (0..3).for_each(|_| {
        fleet.pump();
    });
    fleet.retire(1);
    fleet
        .reclaim_received(1, 0, BodyId(1))
        .iter_mut()
        .for_each(|part| part.fill(BLANK));
    *fleet.reclaim_sent(1, 0, BodyId(2)) = Vec::new();
    fleet.until("the loss is reported", |fleet| fleet.losses(0, 1) == 1);
    let is_ours = |part: &Vec<u8>| part.iter().all(|&byte| byte == BLANK);
    assert!(fleet.reclaim_received(1, 0, BodyId(1)).iter().all(is_ours));
}

/// Contract 21.
pub fn a_lost_peer_can_be_connected_again<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    for round in 0_u8..15 {
        fleet.cut(0, 1);
        fleet.await_loss(0, 1);
        fleet.take(0);
        fleet.take(1);
        let (from, to) = if round % 2 == 0 { (0, 1) } else { (1, 0) };
        fleet.link(from, to);
        fleet.send(0, 1, &[round]);
        fleet.send(1, 0, &[!round]);
        fleet.until("the frames arrive", |fleet| {
            fleet.frames(1, 0) == [[round]] && fleet.frames(0, 1) == [[!round]]
        });
    }
}

/// Contract 21: by the end that disconnected, before the other has seen it.
pub fn a_peer_can_be_connected_again_at_once<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    for round in 0_u8..10 {
        let (from, to) = if round % 2 == 0 { (0, 1) } else { (1, 0) };
        (0..20).for_each(|_| fleet.send(from, to, b"old"));
        fleet.disconnect(from, to);
        fleet.connect(from, to);
        fleet.await_link(0, 1);
        fleet.until("the loss is reported", |fleet| fleet.losses(to, from) == 1);
        fleet.send(from, to, b"new");
        fleet.until("the frame arrives", |fleet| {
            fleet.frames(to, from).last() == Some(&&b"new"[..])
        });
        let seen = fleet.take(to);
        let lost = seen
            .iter()
            .position(|seen| matches!(seen, Seen::Lost(..)))
            .expect("just awaited");
        assert!(matches!(seen[lost + 1], Seen::Connected(_)), "{seen:?}");
        assert_eq!(seen.len(), lost + 3, "{seen:?}");
        fleet.take(from);
    }
}

/// Contract 21.
pub fn a_successor_with_the_same_id_can_connect<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    for round in 0_u8..5 {
        (0..50).for_each(|_| {
            let _ = fleet.offer(1, 0, b"old");
        });
        fleet.retire(1);
        fleet.revive(1);
        fleet.connect(1, 0);
        fleet.await_link(0, 1);
        fleet.send(1, 0, &[round]);
        fleet.until("the frame arrives", |fleet| {
            fleet.frames(0, 1).last() == Some(&&[round][..])
        });
        let seen = fleet.take(0);
        let lost = seen
            .iter()
            .position(|seen| matches!(seen, Seen::Lost(..)))
            .expect("lost before it is linked");
        assert!(
            matches!(seen[lost + 1..], [Seen::Connected(_), Seen::Frame(..)]),
            "{seen:?}"
        );
    }
}

/// Contract 21.
pub fn a_successor_with_the_same_id_can_be_connected<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    fleet.retire(1);
    fleet.until("the loss is reported", |fleet| fleet.losses(0, 1) == 1);
    fleet.revive(1);
    fleet.link(0, 1);
    fleet.send(0, 1, b"welcome");
    fleet.until("the frame arrives", |fleet| {
        fleet.frames(1, 0) == [b"welcome"]
    });
}

/// Contract 21.
pub fn a_successor_with_another_id_can_connect<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    fleet.retire(1);
    let successor = PeerId(fleet.id(1).0 + (1 << 40));
    fleet.add(successor);
    fleet.connect(2, 0);
    fleet.await_link(0, 2);
    fleet.until("the loss is reported", |fleet| fleet.losses(0, 1) == 1);
    fleet.send(0, 2, b"welcome");
    fleet.until("the frame arrives", |fleet| {
        fleet.frames(2, 0) == [b"welcome"]
    });
    assert_eq!(fleet.losses(0, 2), 0);
}

/// Contract 21 and 13.
pub fn body_ids_are_free_on_the_new_link<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    for round in 0..5 {
        fleet.transfer(0, 1, BodyId(1), pattern(round, 2 << 20));
        fleet.pump();
        fleet.cut(0, 1);
        fleet.await_loss(0, 1);
        fleet.take(0);
        fleet.take(1);
        fleet.link(1, 0);
        fleet.transfer(0, 1, BodyId(1), pattern(100 + round, 50_000));
        fleet.await_body(0, 1, BodyId(1));
        assert!(fleet.body(1, 0, BodyId(1)) == pattern(100 + round, 50_000));
        fleet.take(0);
        fleet.take(1);
    }
}

/// Contract 22.
pub fn a_cut_leaves_other_links_alone<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 3);
    fleet.transfer(0, 2, BodyId(1), pattern(1, 2 << 20));
    fleet.transfer(0, 1, BodyId(1), pattern(2, 2 << 20));
    (0_u8..50).for_each(|number| fleet.send(0, 2, &[number]));
    fleet.cut(0, 1);
    (50_u8..100).for_each(|number| fleet.send(0, 2, &[number]));
    fleet.await_loss(0, 1);
    fleet.await_body(0, 2, BodyId(1));
    fleet.until("all frames arrive", |fleet| fleet.frames(2, 0).len() == 100);
    assert!(fleet.body(2, 0, BodyId(1)) == pattern(1, 2 << 20));
    assert_eq!(fleet.losses(0, 2) + fleet.losses(2, 0), 0);
}

impl<H: Harness> Fleet<H> {
    pub(super) fn await_loss(&mut self, a: usize, b: usize) {
        self.until("both ends lose the link", |fleet| {
            fleet.losses(a, b) == 1 && fleet.losses(b, a) == 1
        });
    }

    fn driver_connect(&mut self, from: usize, peer: PeerId, at: &crate::Locator) {
        crate::Driver::connect(self.driver(from), peer, at).expect("a locator of this driver");
    }
}
