//! What a peer must not do with bodies: line 16 of the contract.

use super::Harness;
use super::fleet::{Fleet, Seen, pattern};
use crate::{BodyId, LossReason, Way};

/// Contract 16.
pub fn a_body_nobody_asked_for_costs_the_link<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    fleet
        .give(0, 1, BodyId(1), vec![pattern(1, 1000)])
        .expect("a body that the sender may send");
    assert_violation(&mut fleet);
}

/// Contract 16.
pub fn an_empty_body_nobody_asked_for_costs_the_link<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    fleet
        .give(0, 1, BodyId(1), Vec::new())
        .expect("a body that the sender may send");
    assert_violation(&mut fleet);
}

/// Contract 16.
pub fn a_body_under_another_id_costs_the_link<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    fleet.expect(1, 0, BodyId(1), &[1000]).expect("a body");
    fleet
        .give(0, 1, BodyId(2), vec![pattern(1, 1000)])
        .expect("a body that the sender may send");
    assert_violation(&mut fleet);
    assert_eq!(
        fleet.count(1, &Seen::BodyFailed(fleet.id(0), BodyId(1), Way::Receiving)),
        1
    );
}

/// Contract 16 and 13: a body that arrived is not asked for any more.
pub fn a_body_sent_twice_costs_the_link<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    fleet.transfer(0, 1, BodyId(1), pattern(1, 1000));
    fleet.await_body(0, 1, BodyId(1));
    fleet
        .give(0, 1, BodyId(1), vec![pattern(2, 1000)])
        .expect("a body that the sender may send");
    assert_violation(&mut fleet);
    assert!(fleet.body(1, 0, BodyId(1)) == pattern(1, 1000));
}

/// Contract 16.
pub fn a_shorter_body_costs_the_link<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    fleet.expect(1, 0, BodyId(1), &[1000]).expect("a body");
    fleet
        .give(0, 1, BodyId(1), vec![pattern(1, 999)])
        .expect("a body that the sender may send");
    assert_violation(&mut fleet);
    fleet.assert_guards(1, 0, BodyId(1));
}

/// Contract 16.
pub fn an_empty_body_where_bytes_are_awaited_costs_the_link<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    fleet.expect(1, 0, BodyId(1), &[1]).expect("a body");
    fleet
        .give(0, 1, BodyId(1), Vec::new())
        .expect("a body that the sender may send");
    assert_violation(&mut fleet);
}

/// Contract 16: no byte outside of the parts is written.
pub fn a_longer_body_costs_the_link<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    fleet.expect(1, 0, BodyId(1), &[500, 500]).expect("a body");
    fleet
        .give(0, 1, BodyId(1), vec![pattern(1, 1001)])
        .expect("a body that the sender may send");
    assert_violation(&mut fleet);
    fleet.assert_guards(1, 0, BodyId(1));
}

/// Contract 16: as above, when the driver cuts the body.
pub fn a_much_longer_body_costs_the_link<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    fleet.expect(1, 0, BodyId(1), &[600_000]).expect("a body");
    fleet
        .give(0, 1, BodyId(1), vec![pattern(1, 3_000_000)])
        .expect("a body that the sender may send");
    assert_violation(&mut fleet);
    fleet.assert_guards(1, 0, BodyId(1));
}

/// Contract 16 and 6: what was sent before is delivered.
pub fn frames_before_a_violation_arrive<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    (0_u8..50).for_each(|number| fleet.send(0, 1, &[number]));
    fleet
        .give(0, 1, BodyId(1), vec![pattern(1, 1000)])
        .expect("a body that the sender may send");
    assert_violation(&mut fleet);
    assert!(
        fleet
            .frames(1, 0)
            .iter()
            .zip(0_u8..)
            .all(|(frame, number)| *frame == [number])
    );
    assert_eq!(fleet.frames(1, 0).len(), 50);
}

/// Contract 22.
pub fn a_violation_leaves_other_links_alone<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 3);
    fleet.transfer(2, 1, BodyId(1), pattern(1, 2 << 20));
    (0_u8..50).for_each(|number| fleet.send(2, 1, &[number]));
    fleet
        .give(0, 1, BodyId(1), vec![pattern(2, 1000)])
        .expect("a body that the sender may send");
    assert_violation(&mut fleet);
    (50_u8..100).for_each(|number| fleet.send(2, 1, &[number]));
    fleet.await_body(2, 1, BodyId(1));
    fleet.until("all frames arrive", |fleet| fleet.frames(1, 2).len() == 100);
    assert!(fleet.body(1, 2, BodyId(1)) == pattern(1, 2 << 20));
    assert_eq!(fleet.losses(1, 2) + fleet.losses(2, 1), 0);
}

/// That process 0 broke the rules and both ends lost the link, once.
fn assert_violation<H: Harness>(fleet: &mut Fleet<H>) {
    fleet.until("both ends lose the link", |fleet| {
        fleet.losses(0, 1) == 1 && fleet.losses(1, 0) == 1
    });
    fleet.settle();
    assert_eq!((fleet.losses(0, 1), fleet.losses(1, 0)), (1, 1));
    let offender = fleet.id(0);
    let is_violation =
        |seen: &Seen| matches!(seen, Seen::Lost(of, LossReason::Violation(_)) if *of == offender);
    assert!(
        fleet.seen(1).iter().any(is_violation),
        "{:?}",
        fleet.seen(1)
    );
}
