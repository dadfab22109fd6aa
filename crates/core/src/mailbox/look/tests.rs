//! Who is looked at, and when.

use super::{Origin, Places, RECENT, TURN};

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
