//! Frames: lines 6 to 9 of the contract.

use std::io::IoSlice;

use super::Harness;
use super::fleet::{Fleet, Seen, pattern};
use crate::{Caps, Driver, Refused};

/// Contract 6.
pub fn frames_arrive_in_order<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    (0_u32..2000).for_each(|number| fleet.send(0, 1, &number.to_le_bytes()));
    fleet.until("all frames arrive", |fleet| {
        fleet.frames(1, 0).len() == 2000
    });
    fleet.settle();
    assert!(
        fleet
            .frames(1, 0)
            .iter()
            .zip(0_u32..)
            .all(|(frame, number)| *frame == number.to_le_bytes())
    );
    assert_eq!(fleet.frames(1, 0).len(), 2000);
}

/// Contract 6.
pub fn frames_cross<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    for number in 0_u32..500 {
        fleet.send(0, 1, &number.to_le_bytes());
        fleet.send(1, 0, &(!number).to_le_bytes());
    }
    fleet.until("all frames arrive", |fleet| {
        fleet.frames(1, 0).len() == 500 && fleet.frames(0, 1).len() == 500
    });
    assert!(
        fleet
            .frames(1, 0)
            .iter()
            .zip(0_u32..)
            .all(|(frame, number)| *frame == number.to_le_bytes())
    );
    assert!(
        fleet
            .frames(0, 1)
            .iter()
            .zip(0_u32..)
            .all(|(frame, number)| *frame == (!number).to_le_bytes())
    );
}

/// Contract 6.
pub fn a_frame_comes_back_as_it_went<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    for round in 0..100 {
        let frame = pattern(round, 1 + round as usize * 7);
        fleet.send(0, 1, &frame);
        fleet.until("the frame arrives", |fleet| fleet.frames(1, 0) == [&frame]);
        fleet.send(1, 0, &frame);
        fleet.until("the frame comes back", |fleet| {
            fleet.frames(0, 1) == [&frame]
        });
        fleet.take(0);
        fleet.take(1);
    }
}

/// Contract 6.
pub fn frames_reach_only_their_peer<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 4);
    (0_u8..90).for_each(|number| fleet.send(0, 1 + usize::from(number) % 3, &[number]));
    fleet.until("all frames arrive", |fleet| {
        (1..4).all(|to| fleet.frames(to, 0).len() == 30)
    });
    fleet.settle();
    for to in 1..4 {
        assert!(
            fleet
                .frames(to, 0)
                .iter()
                .all(|frame| 1 + usize::from(frame[0]) % 3 == to)
        );
        assert_eq!(fleet.seen(to).len(), 30);
    }
}

/// Contract 7.
pub fn a_frame_without_slices_arrives<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    fleet.send_slices(0, 1, &[]);
    fleet.send(0, 1, b"after");
    fleet.until("both frames arrive", |fleet| {
        fleet.frames(1, 0) == [&b""[..], b"after"]
    });
}

/// Contract 7.
pub fn many_empty_frames_arrive<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    (0..1000).for_each(|_| fleet.send(0, 1, b""));
    fleet.until("all frames arrive", |fleet| {
        fleet.frames(1, 0).len() == 1000
    });
    fleet.settle();
    assert!(fleet.frames(1, 0).iter().all(|frame| frame.is_empty()));
    assert_eq!(fleet.seen(1).len(), 1000);
}

/// Contract 7.
pub fn empty_slices_add_nothing<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    let slice = |bytes| IoSlice::new(bytes);
    fleet.send_slices(
        0,
        1,
        &[
            slice(b""),
            slice(b"ab"),
            slice(b""),
            slice(b""),
            slice(b"c"),
            slice(b""),
        ],
    );
    fleet.send_slices(0, 1, &[slice(b""), slice(b"")]);
    fleet.until("both frames arrive", |fleet| {
        fleet.frames(1, 0) == [&b"abc"[..], b""]
    });
}

/// Contract 7.
pub fn slices_are_joined_in_order<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    let frame = pattern(7, 4000);
    for pieces in 1..=20 {
        let slices: Vec<IoSlice<'_>> = frame
            .chunks(frame.len().div_ceil(pieces))
            .map(IoSlice::new)
            .collect();
        fleet.send_slices(0, 1, &slices);
    }
    fleet.until("all frames arrive", |fleet| fleet.frames(1, 0).len() == 20);
    assert!(fleet.frames(1, 0).iter().all(|other| *other == frame));
}

/// Contract 7: more slices than a system call takes.
pub fn thousands_of_slices_are_joined<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    let frame = pattern(8, 4000);
    let slices: Vec<IoSlice<'_>> = frame.chunks(1).map(IoSlice::new).collect();
    (0..5).for_each(|_| fleet.send_slices(0, 1, &slices));
    fleet.until("all frames arrive", |fleet| fleet.frames(1, 0).len() == 5);
    assert!(fleet.frames(1, 0).iter().all(|other| *other == frame));
}

/// Contract 7: the caller changes its memory as soon as the call returns, with room and without.
pub fn a_frame_is_taken_before_the_call_returns<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    let mut accepted = 0;
    let mut memory = vec![0; 1000];
    while accepted < 5000 {
        memory.fill(accepted as u8);
        let outcome = fleet.offer(0, 1, &memory);
        memory.fill(0xee);
        match outcome {
            Ok(()) => accepted += 1,
            Err(_) => break,
        }
    }
    fleet.until("all frames arrive", |fleet| {
        fleet.frames(1, 0).len() == accepted
    });
    let is_whole = |(index, frame): (usize, &&[u8])| {
        frame.len() == 1000 && frame.iter().all(|&b| b == index as u8)
    };
    assert!(fleet.frames(1, 0).iter().enumerate().all(is_whole));
}

/// Contract 6.
pub fn frames_of_every_short_length_arrive<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    (0..400).for_each(|len| fleet.send(0, 1, &pattern(len, len as usize)));
    fleet.until("all frames arrive", |fleet| fleet.frames(1, 0).len() == 400);
    assert!(
        fleet
            .frames(1, 0)
            .iter()
            .zip(0..)
            .all(|(frame, len)| *frame == pattern(len, len as usize))
    );
}

/// Contract 6.
pub fn frames_around_powers_of_two_arrive<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    let max = fleet.caps(0).max_frame;
    let powers = (0..usize::BITS)
        .map(|bit| 1_usize << bit)
        .take_while(|&len| len <= max);
    let lens = powers
        .flat_map(|len| [len - 1, len, len + 1])
        .filter(|&len| len <= max);
    let lens: Vec<usize> = lens.collect();
    lens.iter()
        .for_each(|&len| fleet.send(0, 1, &pattern(len as u64, len)));
    fleet.until("all frames arrive", |fleet| {
        fleet.frames(1, 0).len() == lens.len()
    });
    assert!(
        fleet
            .frames(1, 0)
            .iter()
            .zip(&lens)
            .all(|(frame, &len)| *frame == pattern(len as u64, len))
    );
}

/// Contract 6.
pub fn long_and_short_frames_keep_their_order<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    let max = fleet.caps(0).max_frame;
    let len = |number: u64| {
        if number % 3 == 0 {
            max - number as usize
        } else {
            number as usize
        }
    };
    (0..90).for_each(|number| fleet.send(0, 1, &pattern(number, len(number))));
    fleet.until("all frames arrive", |fleet| fleet.frames(1, 0).len() == 90);
    assert!(
        fleet
            .frames(1, 0)
            .iter()
            .zip(0..)
            .all(|(frame, number)| *frame == pattern(number, len(number)))
    );
}

/// Contract 8, and `caps.max_frame`.
pub fn the_longest_frame_arrives<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    let max = fleet.caps(0).max_frame;
    (0..20).for_each(|number| fleet.send(0, 1, &pattern(number, max)));
    fleet.until("all frames arrive", |fleet| fleet.frames(1, 0).len() == 20);
    assert!(
        fleet
            .frames(1, 0)
            .iter()
            .zip(0..)
            .all(|(frame, number)| *frame == pattern(number, max))
    );
}

/// Contract 8, and `caps.max_frame`: the link is as good as before.
pub fn a_frame_one_byte_too_long_is_refused<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    let max = fleet.caps(0).max_frame;
    let frame = vec![1; max + 1];
    let refused = Err(Refused::TooLong { len: max + 1, max });
    assert_eq!(fleet.offer(0, 1, &frame), refused);
    let peer = fleet.id(1);
    let slices = [IoSlice::new(&frame[..max]), IoSlice::new(&[0])];
    assert_eq!(fleet.driver(0).send_frame(peer, &slices), refused);
    fleet.send(0, 1, b"after");
    fleet.until("the next frame arrives", |fleet| {
        !fleet.frames(1, 0).is_empty()
    });
    assert_eq!(fleet.seen(1), [Seen::Frame(fleet.id(0), b"after".to_vec())]);
}

/// Contract 9.
pub fn a_frame_without_a_link_is_refused<H: Harness>(harness: H) {
    let mut fleet = Fleet::new(harness, 3);
    fleet.link(0, 1);
    let peer = fleet.id(2);
    assert_eq!(fleet.offer(0, 2, b""), Err(Refused::NotConnected { peer }));
    let myself = fleet.id(0);
    assert_eq!(
        fleet.offer(0, 0, b""),
        Err(Refused::NotConnected { peer: myself })
    );
    fleet.settle();
    assert_eq!((fleet.seen(0), fleet.seen(2)), (&[][..], &[][..]));
}

/// Contract 8 and 14: the layer above may rely on the least capabilities.
pub fn capabilities_are_not_below_the_least<H: Harness>(harness: H) {
    let mut fleet = Fleet::new(harness, 1);
    let (caps, least) = (fleet.caps(0), Caps::least());
    assert!(caps.max_frame >= least.max_frame && caps.max_body >= least.max_body);
    assert!(caps.max_parts >= least.max_parts && caps.max_bodies >= least.max_bodies);
}
