//! Bodies sent unasked, and frames sent together: lines 26 and 27 of the contract.

use super::Harness;
use super::fleet::{Fleet, Seen, pattern};
use crate::{BodyId, Driver, LossReason, Refused, Way};

/// Contract 26, and `caps.can_push`.
pub fn pushing_is_as_the_capabilities_say<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    let can_push = fleet.caps(0).can_push;
    let pushed = fleet.push(0, 1, BodyId(1), vec![pattern(1, 1000)]);
    if can_push {
        assert_eq!(pushed, Ok(()));
    } else {
        assert_eq!(pushed, Err(Refused::CannotPush));
    }
}

/// Contract 26.
pub fn a_pushed_body_waits_for_its_place<H: Harness>(harness: H) {
    let Some(mut fleet) = pushers(harness) else {
        return;
    };
    for (id, len) in [(1, 0), (2, 1), (3, 1000), (4, 300_000), (5, 3_000_000)] {
        let body = BodyId(id);
        fleet
            .push(0, 1, body, vec![pattern(id, len)])
            .expect("a body that may be pushed");
        let waiting = Seen::BodyWaiting(fleet.id(0), body);
        fleet.until("the body waits", |fleet| fleet.count(1, &waiting) == 1);
        fleet.settle();
        assert!(!fleet.has_body(1, 0, body));
        fleet.expect(1, 0, body, &[len]).expect("a place");
        fleet.await_body(0, 1, body);
        assert!(fleet.body(1, 0, body) == pattern(id, len));
        assert_eq!(fleet.count(1, &waiting), 1);
    }
}

/// Contract 26: one that was asked for in time does not wait.
pub fn a_pushed_body_that_has_a_place_does_not_wait<H: Harness>(harness: H) {
    let Some(mut fleet) = pushers(harness) else {
        return;
    };
    let body = BodyId(1);
    fleet.expect(1, 0, body, &[300, 700]).expect("a place");
    fleet
        .push(0, 1, body, vec![pattern(1, 1000)])
        .expect("a body that may be pushed");
    fleet.await_body(0, 1, body);
    assert!(fleet.body(1, 0, body) == pattern(1, 1000));
    assert_eq!(fleet.count(1, &Seen::BodyWaiting(fleet.id(0), body)), 0);
}

/// Contract 26: what comes behind a body that waits, waits too, and comes in order.
pub fn the_link_waits_with_its_body<H: Harness>(harness: H) {
    let Some(mut fleet) = pushers(harness) else {
        return;
    };
    fleet.send(0, 1, b"before");
    for id in [1, 2] {
        fleet
            .push(0, 1, BodyId(id), vec![pattern(id, 1000)])
            .expect("a body that may be pushed");
    }
    fleet.send(0, 1, b"after");
    let waits = |fleet: &Fleet<H>, id| fleet.count(1, &Seen::BodyWaiting(fleet.id(0), BodyId(id)));
    fleet.until("the first waits", |fleet| waits(fleet, 1) == 1);
    fleet.settle();
    assert_eq!(fleet.frames(1, 0), [b"before"]);
    assert_eq!(waits(&fleet, 2), 0);
    fleet.expect(1, 0, BodyId(1), &[1000]).expect("a place");
    fleet.until("the second waits", |fleet| waits(fleet, 2) == 1);
    fleet.expect(1, 0, BodyId(2), &[1000]).expect("a place");
    fleet.await_body(0, 1, BodyId(2));
    fleet.until("all arrives", |fleet| fleet.frames(1, 0).len() == 2);
    assert!(fleet.body(1, 0, BodyId(1)) == pattern(1, 1000));
    assert!(fleet.body(1, 0, BodyId(2)) == pattern(2, 1000));
}

/// Contract 26 and 22: other links go on.
pub fn a_body_that_waits_leaves_other_links_alone<H: Harness>(harness: H) {
    let caps = |fleet: &mut Fleet<H>| fleet.caps(0).can_push;
    let mut fleet = Fleet::linked(harness, 3);
    if !caps(&mut fleet) {
        return;
    }
    fleet
        .push(0, 1, BodyId(1), vec![pattern(1, 100_000)])
        .expect("a body that may be pushed");
    fleet.transfer(2, 1, BodyId(1), pattern(2, 2 << 20));
    (0_u8..50).for_each(|number| fleet.send(2, 1, &[number]));
    fleet.await_body(2, 1, BodyId(1));
    fleet.until("all frames arrive", |fleet| fleet.frames(1, 2).len() == 50);
    fleet.expect(1, 0, BodyId(1), &[100_000]).expect("a place");
    fleet.await_body(0, 1, BodyId(1));
    assert!(fleet.body(1, 0, BodyId(1)) == pattern(1, 100_000));
}

/// Contract 26 and 24: a driver that waits for a place is quiet, and the place wakes it.
pub fn a_driver_that_waits_for_a_place_is_quiet<H: Harness>(harness: H) {
    let Some(mut fleet) = pushers(harness) else {
        return;
    };
    if !fleet.caps(0).can_sleep {
        return;
    }
    fleet
        .push(0, 1, BodyId(1), vec![pattern(1, 100_000)])
        .expect("a body that may be pushed");
    let waiting = Seen::BodyWaiting(fleet.id(0), BodyId(1));
    fleet.until("the body waits", |fleet| fleet.count(1, &waiting) == 1);
    fleet.poll_until_quiet(1);
    fleet.expect(1, 0, BodyId(1), &[100_000]).expect("a place");
    fleet.sleep_until("the body is here", |fleet| fleet.has_body(1, 0, BodyId(1)));
}

/// Contract 26 and 16: a place of another length costs the link.
pub fn a_place_of_another_length_costs_the_link<H: Harness>(harness: H) {
    let Some(mut fleet) = pushers(harness) else {
        return;
    };
    fleet
        .push(0, 1, BodyId(1), vec![pattern(1, 1000)])
        .expect("a body that may be pushed");
    let waiting = Seen::BodyWaiting(fleet.id(0), BodyId(1));
    fleet.until("the body waits", |fleet| fleet.count(1, &waiting) == 1);
    fleet.expect(1, 0, BodyId(1), &[999]).expect("a place");
    fleet.until("both ends lose the link", |fleet| {
        fleet.losses(0, 1) == 1 && fleet.losses(1, 0) == 1
    });
    let is_violation = |seen: &Seen| matches!(seen, Seen::Lost(_, LossReason::Violation(_)));
    assert!(fleet.seen(1).iter().any(is_violation));
    fleet.assert_guards(1, 0, BodyId(1));
}

/// Contract 26, 18 and 19: a link with a body that waits can be ended by either side.
pub fn a_body_that_waits_ends_with_its_link<H: Harness>(harness: H) {
    let Some(mut fleet) = pushers(harness) else {
        return;
    };
    fleet
        .push(0, 1, BodyId(1), vec![pattern(1, 30_000_000)])
        .expect("a body that may be pushed");
    let waiting = Seen::BodyWaiting(fleet.id(0), BodyId(1));
    fleet.until("the body waits", |fleet| fleet.count(1, &waiting) == 1);
    fleet.disconnect(1, 0);
    fleet.until("the sender loses the link", |fleet| fleet.losses(0, 1) == 1);
    assert_eq!(
        fleet.count(0, &Seen::BodyFailed(fleet.id(1), BodyId(1), Way::Sending)),
        1
    );
    fleet.link(0, 1);
    fleet.transfer(0, 1, BodyId(1), pattern(2, 1000));
    fleet.await_body(0, 1, BodyId(1));
    assert!(fleet.body(1, 0, BodyId(1)) == pattern(2, 1000));
}

/// Contract 27 and 6.
pub fn gathered_frames_arrive_in_order<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    let peer = fleet.id(1);
    for round in 0_u8..20 {
        fleet.driver(0).gather(peer);
        (0_u8..10).for_each(|number| fleet.send(0, 1, &[round, number]));
        fleet.send(0, 1, &pattern(u64::from(round), 3000));
        fleet.driver(0).flush(peer);
        fleet.send(0, 1, b"alone");
    }
    fleet.until("all arrive", |fleet| fleet.frames(1, 0).len() == 20 * 12);
    for (round, frames) in fleet.frames(1, 0).chunks(12).enumerate() {
        let numbers = frames[..10].iter().zip(0_u8..);
        assert!(
            numbers
                .into_iter()
                .all(|(frame, number)| *frame == [round as u8, number])
        );
        assert!(*frames[10] == pattern(round as u64, 3000));
        assert_eq!(frames[11], b"alone");
    }
}

/// Contract 27 and 15: a gathered frame goes before the body behind it.
pub fn a_gathered_frame_comes_before_its_body<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    let (peer, sender) = (fleet.id(1), fleet.id(0));
    fleet.expect(1, 0, BodyId(1), &[100_000]).expect("a place");
    fleet.driver(0).gather(peer);
    fleet.send(0, 1, b"announced");
    fleet
        .give(0, 1, BodyId(1), vec![pattern(1, 100_000)])
        .expect("a body");
    fleet.driver(0).flush(peer);
    fleet.await_body(0, 1, BodyId(1));
    let place = |wanted: &Seen| fleet.seen(1).iter().position(|seen| seen == wanted);
    assert!(
        place(&Seen::Frame(sender, b"announced".to_vec()))
            < place(&Seen::BodyReceived(sender, BodyId(1)))
    );
}

/// Contract 27 and 10: gathering does not promise more room than there is.
pub fn gathering_ends_in_busy<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    let peer = fleet.id(1);
    fleet.driver(0).gather(peer);
    let frame = pattern(1, 4000);
    let mut accepted = 0;
    while fleet.offer(0, 1, &frame).is_ok() {
        accepted += 1;
        assert!(accepted < 1_000_000, "a sender that is never told to wait");
    }
    fleet.driver(0).flush(peer);
    let writable = Seen::Writable(peer);
    fleet.until("there is room", |fleet| fleet.count(0, &writable) == 1);
    fleet.until("all arrive", |fleet| fleet.frames(1, 0).len() == accepted);
}

/// Two ends, if they can push.
fn pushers<H: Harness>(harness: H) -> Option<Fleet<H>> {
    let mut fleet = Fleet::linked(harness, 2);
    fleet.caps(0).can_push.then_some(fleet)
}
