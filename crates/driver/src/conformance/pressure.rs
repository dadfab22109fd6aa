//! Back-pressure and fairness: lines 10 and 11 of the contract.

use super::Harness;
use super::fleet::{Fleet, Seen, pattern};
use crate::{BodyId, Driver, Refused};

/// Contract 10.
pub fn a_peer_that_does_not_poll_makes_the_sender_wait<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    let accepted = flood(&mut fleet, 0, 1);
    assert!(accepted > 0, "an idle link has room");
    let peer = fleet.id(1);
    let frame = vec![0; fleet.caps(0).max_frame];
    assert_eq!(fleet.offer(0, 1, &frame), Err(Refused::Busy { peer }));
}

/// Contract 10: what was refused never arrives, what was accepted does.
pub fn a_refused_frame_leaves_no_trace<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    let accepted = flood(&mut fleet, 0, 1);
    (0..10).for_each(|_| {
        let _ = fleet.offer(0, 1, &[0xff; MANY]);
    });
    fleet.until("all frames arrive", |fleet| {
        fleet.frames(1, 0).len() >= accepted
    });
    fleet.settle();
    let frames = fleet.frames(1, 0);
    assert!(
        frames[..accepted]
            .iter()
            .zip(0..)
            .all(|(frame, number)| **frame == numbered(number))
    );
    // Room may have come in between; then they are whole.
    assert!(
        frames[accepted..]
            .iter()
            .all(|frame| **frame == vec![0xff; MANY])
    );
}

/// Contract 10.
pub fn writable_follows_busy_once<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    flood(&mut fleet, 0, 1);
    let writable = Seen::Writable(fleet.id(1));
    fleet.until("there is room", |fleet| fleet.count(0, &writable) > 0);
    fleet.settle();
    assert_eq!(fleet.count(0, &writable), 1);
}

/// Contract 10.
pub fn after_writable_the_longest_frame_is_accepted<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    let longest = pattern(1, fleet.caps(0).max_frame);
    let writable = Seen::Writable(fleet.id(1));
    for _ in 0..5 {
        flood(&mut fleet, 0, 1);
        fleet.take(0);
        fleet.until("there is room", |fleet| fleet.count(0, &writable) == 1);
        assert_eq!(fleet.offer(0, 1, &longest), Ok(()));
    }
    fleet.until("the last frame arrives", |fleet| {
        fleet
            .frames(1, 0)
            .iter()
            .filter(|frame| **frame == longest)
            .count()
            == 5
    });
}

/// Contract 10: bodies in flight do not take the room that was promised to a frame.
pub fn bodies_do_not_use_up_promised_room<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    let longest = pattern(1, fleet.caps(0).max_frame);
    fleet.transfer(0, 1, BodyId(1), pattern(1, 4 << 20));
    let writable = Seen::Writable(fleet.id(1));
    for _ in 0..5 {
        flood(&mut fleet, 0, 1);
        fleet.take(0);
        fleet.until("there is room", |fleet| fleet.count(0, &writable) == 1);
        fleet.poll(0, 1);
        assert_eq!(fleet.offer(0, 1, &longest), Ok(()));
    }
    fleet.until("the body arrives", |fleet| fleet.has_body(1, 0, BodyId(1)));
    assert!(fleet.body(1, 0, BodyId(1)) == pattern(1, 4 << 20));
}

/// Contract 10.
pub fn without_busy_there_is_no_writable<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    let mut was_busy = false;
    for number in 0_u8..50 {
        was_busy |= fleet.offer(0, 1, &[number]).is_err();
        fleet.settle_briefly();
    }
    let writable = Seen::Writable(fleet.id(1));
    assert!(was_busy || fleet.count(0, &writable) == 0);
}

/// Contract 10: neither end waits for the other.
pub fn two_floods_against_each_other_drain<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    let (mut there, mut back) = (0, 0);
    for _ in 0..5 {
        there += flood(&mut fleet, 0, 1);
        back += flood(&mut fleet, 1, 0);
        fleet.pump();
    }
    fleet.until("all frames arrive", |fleet| {
        fleet.frames(1, 0).len() == there && fleet.frames(0, 1).len() == back
    });
}

/// Contract 11.
pub fn a_full_link_leaves_the_others_open<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 3);
    flood(&mut fleet, 0, 1);
    for number in 0_u8..200 {
        while fleet.offer(0, 2, &[number]).is_err() {
            fleet.pump_only(&[0, 2]);
        }
    }
    fleet.until_only(&[0, 2], "the frames to the other arrive", |fleet| {
        fleet.frames(2, 0).len() == 200
    });
    assert_eq!(fleet.frames(1, 0).len(), 0);
}

/// Contract 11: a few frames from one peer arrive while another's flood is still coming in.
pub fn a_flood_does_not_starve_another_peer<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 3);
    let flooded = flood(&mut fleet, 1, 0);
    (0_u8..3).for_each(|number| fleet.send_only(2, 0, &[number]));
    while fleet.frames(0, 2).len() < 3 {
        fleet.poll(0, 4);
        fleet.poll(2, 4);
    }
    assert!(
        fleet.frames(0, 1).len() < flooded,
        "the flood of {flooded} frames was served first"
    );
}

/// Contract 11: a long body from one peer does not hold up another.
pub fn a_long_body_does_not_starve_another_peer<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 3);
    fleet.transfer(1, 0, BodyId(1), pattern(1, 16 << 20));
    fleet.pump();
    fleet.send_only(2, 0, b"short");
    fleet.until("the frame arrives", |fleet| !fleet.frames(0, 2).is_empty());
    assert!(
        !fleet.has_body(0, 1, BodyId(1)),
        "the body was served first"
    );
    fleet.await_body(1, 0, BodyId(1));
}

impl<H: Harness> Fleet<H> {
    /// Sends while only the sender is polled.
    fn send_only(&mut self, from: usize, to: usize, frame: &[u8]) {
        while self.offer(from, to, frame).is_err() {
            self.poll(from, 4);
        }
    }

    fn settle_briefly(&mut self) {
        while self.pump() > 0 {}
    }
}

/// Sends numbered frames, without polling the receiver, until the link is full; says how many.
fn flood<H: Harness>(fleet: &mut Fleet<H>, from: usize, to: usize) -> usize {
    let peer = fleet.id(to);
    let mut accepted = 0;
    // A refusal by chance is not a full link: it is full when refusals follow in a row.
    let mut refusals = 0;
    while refusals < 20 {
        match fleet
            .driver(from)
            .send_frame(peer, &[std::io::IoSlice::new(&numbered(accepted))])
        {
            Ok(()) => (accepted, refusals) = (accepted + 1, 0),
            Err(Refused::Busy { .. }) => refusals += 1,
            Err(refused) => panic!("frame refused: {refused}"),
        }
    }
    accepted
}

fn numbered(number: usize) -> Vec<u8> {
    let mut frame = vec![number as u8; MANY];
    frame[..8].copy_from_slice(&(number as u64).to_le_bytes());
    frame
}

/// Bytes of a flooding frame.
const MANY: usize = 2000;
