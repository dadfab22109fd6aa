//! Who is looked at, and when.

use super::{Origin, Places, RECENT, TURN};
use crate::delivery::Delivery;
use crate::error::{Departure, Gone, RetrieveError};
use crate::message::{Flags, Payload};
use crate::rank::{Incarnation, ProcessId, Rank};

#[test]
fn the_recent_places_are_those_that_were_hot_before_each_once() {
    let places = Places::new();
    for index in [1, 2, 1, 2, 3, 3] {
        places.note(Origin::Link(index));
    }
    assert!(places.hot.get() == Origin::Link(3));
    let recent = places.recent.get();
    assert!(recent[..3] == [Origin::Link(2), Origin::Link(1), Origin::Lane(0)]);
    for index in 10..20 {
        places.note(Origin::Link(index));
    }
    let expected: [Origin; RECENT] = [18, 17, 16, 15].map(Origin::Link);
    assert!(places.recent.get() == expected);
}

#[test]
fn two_lanes_that_are_active_in_turn_do_not_keep_a_third_from_its_turn() {
    let outcome = crate::testing::local(1, |deck| {
        let inbox = deck.mailbox()?;
        let mut lanes = Vec::new();
        for _ in 0..3 {
            lanes.push(inbox.address().sender()?);
        }
        // The first two are hot and recent before the third has something.
        for _ in 0..4 {
            for number in [0u64, 1] {
                lanes[number as usize].send(&number)?;
                assert_eq!(inbox.retrieve()?.unpack_express::<u64>()?, number);
            }
        }
        lanes[2].send(&2u64)?;
        for _ in 0..2 * TURN {
            lanes[0].send(&0u64)?;
            lanes[1].send(&1u64)?;
            for _ in 0..2 {
                if inbox.retrieve()?.unpack_express::<u64>()? == 2 {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    });
    assert_eq!(outcome.unwrap(), [true]);
}

#[test]
fn news_in_the_middle_of_a_look_does_not_put_an_end_behind_the_next_life() {
    let order = crate::testing::local(1, |deck| {
        let inbox = deck.mailbox()?;
        let (places, core) = (&inbox.places, &inbox.core);
        let life = |incarnation| ProcessId::new(Rank(7), Incarnation(incarnation));
        let post = |source| {
            let delivery = Delivery {
                source,
                flags: Flags(0),
                payload: Payload::Owned(Vec::new()),
                lender: None,
                account: None,
            };
            assert!(core.deliver(delivery).is_none());
        };
        // The end of the second life is told late.
        core.tell_gone(Gone::new(life(0), Departure::Died));
        post(ProcessId::new(Rank(8), Incarnation(0)));
        post(life(2));
        core.tell_gone(Gone::new(life(1), Departure::Died));
        // A lane may have been opened since the look began; what others sent does not depend on it.
        core.look();
        let mut order = Vec::new();
        while let Some(outcome) = places.poll_queue(core) {
            order.push(outcome);
        }
        places.take_news(core);
        while let Some(outcome) = places.poll_queue(core) {
            order.push(outcome);
        }
        let name = |outcome: super::Outcome| match outcome {
            Ok(taken) => (taken.source, false),
            Err(RetrieveError::PeerGone(gone)) => (gone.process(), true),
            Err(error) => panic!("{error}"),
        };
        Ok(order.into_iter().map(name).collect::<Vec<_>>())
    });
    let life = |rank, incarnation| ProcessId::new(Rank(rank), Incarnation(incarnation));
    let expected = [
        (life(8, 0), false),
        (life(7, 0), true),
        (life(7, 1), true),
        (life(7, 2), false),
    ];
    assert_eq!(order.unwrap(), [expected]);
}
