//! Links are made: lines 1 to 5 of the contract.

use super::Harness;
use super::fleet::{Fleet, Seen, pattern};
use crate::{ConnectError, Driver, Locator, Refused};

/// Contract 1 and 2.
pub fn a_connect_is_reported_once_at_both_ends<H: Harness>(harness: H) {
    let mut fleet = Fleet::new(harness, 2);
    fleet.connect(0, 1);
    fleet.await_link(0, 1);
    fleet.settle();
    assert_eq!(fleet.seen(0), [Seen::Connected(fleet.id(1))]);
    assert_eq!(fleet.seen(1), [Seen::Connected(fleet.id(0))]);
    let dialled = [0, 1].map(|at| fleet.has_dialled(at));
    assert_eq!(dialled, [Some(true), Some(false)]);
}

/// Contract 2.
pub fn the_process_that_was_reached_may_send_first<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    fleet.send(1, 0, b"hello");
    fleet.until("the frame arrives", |fleet| {
        fleet.frames(0, 1) == [b"hello"]
    });
}

/// Contract 2.
pub fn a_frame_sent_at_once_follows_the_report_of_the_link<H: Harness>(harness: H) {
    let mut fleet = Fleet::new(harness, 2);
    fleet.connect(0, 1);
    let up = Seen::Connected(fleet.id(1));
    fleet.until("one end is up", |fleet| fleet.count(0, &up) == 1);
    fleet.send(0, 1, b"early");
    fleet.until("the frame arrives", |fleet| !fleet.frames(1, 0).is_empty());
    let (peer, frame) = (fleet.id(0), b"early".to_vec());
    assert_eq!(
        fleet.seen(1),
        [Seen::Connected(peer), Seen::Frame(peer, frame)]
    );
}

/// Contract 3.
pub fn simultaneous_connects_make_one_link<H: Harness>(harness: H) {
    let mut fleet = Fleet::new(harness, 2);
    fleet.connect(0, 1);
    fleet.connect(1, 0);
    fleet.await_link(0, 1);
    fleet.settle();
    assert_eq!(fleet.seen(0), [Seen::Connected(fleet.id(1))]);
    assert_eq!(fleet.seen(1), [Seen::Connected(fleet.id(0))]);
    assert_ne!(fleet.has_dialled(0), fleet.has_dialled(1), "one of them");
}

/// Contract 3: from whichever end is polled first.
pub fn simultaneous_connects_lose_no_frame<H: Harness>(harness: H) {
    let mut fleet = Fleet::new(harness, 2);
    for round in 0_u8..12 {
        let (first, second) = if round % 2 == 0 { (0, 1) } else { (1, 0) };
        fleet.connect(first, second);
        (0..round / 2).for_each(|_| {
            fleet.poll(first, 1);
        });
        fleet.connect(second, first);
        let mut sent = [false; 2];
        while sent != [true; 2] {
            fleet.pump();
            for (at, other) in [(0, 1), (1, 0)] {
                sent[at] = sent[at] || fleet.offer(at, other, &[round]).is_ok();
            }
        }
        fleet.until("both frames arrive", |fleet| {
            fleet.frames(0, 1) == [[round]] && fleet.frames(1, 0) == [[round]]
        });
        fleet.settle();
        assert_eq!(fleet.losses(0, 1) + fleet.losses(1, 0), 0);
        fleet.disconnect(first, second);
        fleet.until("the loss is reported", |fleet| {
            fleet.losses(second, first) == 1
        });
        fleet.take(0);
        fleet.take(1);
    }
}

/// Contract 3.
pub fn eight_processes_connect_all_to_all_at_once<H: Harness>(harness: H) {
    let mut fleet = Fleet::new(harness, 8);
    let pairs = (0..8)
        .flat_map(|a| (0..8).map(move |b| (a, b)))
        .filter(|(a, b)| a != b);
    let pairs: Vec<(usize, usize)> = pairs.collect();
    pairs.iter().for_each(|&(a, b)| fleet.connect(a, b));
    fleet.until("all links are up", |fleet| {
        (0..8).all(|at| fleet.seen(at).len() == 7)
    });
    pairs
        .iter()
        .for_each(|&(a, b)| fleet.send(a, b, &[a as u8, b as u8]));
    fleet.until("all frames arrive", |fleet| {
        pairs
            .iter()
            .all(|&(a, b)| fleet.frames(b, a) == [[a as u8, b as u8]])
    });
    fleet.settle();
    let is_up = |seen: &&Seen| matches!(seen, Seen::Connected(_));
    assert!((0..8).all(|at| fleet.seen(at).iter().filter(is_up).count() == 7));
    assert!(pairs.iter().all(|&(a, b)| fleet.losses(a, b) == 0));
}

/// Contract 4.
pub fn a_process_does_not_connect_to_itself<H: Harness>(harness: H) {
    let mut fleet = Fleet::new(harness, 1);
    let (peer, at) = (fleet.id(0), fleet.locator(0));
    assert_eq!(
        fleet.driver(0).connect(peer, &at),
        Err(ConnectError::Myself { peer })
    );
    fleet.settle();
    assert_eq!(fleet.seen(0), []);
}

/// Contract 4.
pub fn a_second_connect_is_refused<H: Harness>(harness: H) {
    let mut fleet = Fleet::new(harness, 2);
    let (peer, at) = (fleet.id(1), fleet.locator(1));
    fleet.connect(0, 1);
    assert_eq!(
        fleet.driver(0).connect(peer, &at),
        Err(ConnectError::Already { peer })
    );
    fleet.await_link(0, 1);
    assert_eq!(
        fleet.driver(0).connect(peer, &at),
        Err(ConnectError::Already { peer })
    );
    fleet.settle();
    assert_eq!(fleet.seen(0), [Seen::Connected(peer)]);
}

/// Contract 4.
pub fn a_connect_back_over_a_link_is_refused<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    let (peer, at) = (fleet.id(0), fleet.locator(0));
    assert_eq!(
        fleet.driver(1).connect(peer, &at),
        Err(ConnectError::Already { peer })
    );
    fleet.settle();
    assert_eq!((fleet.seen(0), fleet.seen(1)), (&[][..], &[][..]));
}

/// Contract 4.
pub fn a_locator_of_another_kind_is_refused<H: Harness>(harness: H) {
    let mut fleet = Fleet::new(harness, 2);
    let peer = fleet.id(1);
    for text in ["?", ",", "carrier-pigeon:loft-3", "::::", "1.2.3.4", "sim/"] {
        let at = Locator::new(text).expect("printable text");
        let refused = fleet.driver(0).connect(peer, &at);
        assert!(
            matches!(refused, Err(ConnectError::BadLocator { .. })),
            "{text} gave {refused:?}"
        );
    }
    fleet.link(0, 1);
}

/// Contract 5 and 1.
pub fn a_connect_to_nobody_fails<H: Harness>(harness: H) {
    let mut fleet = Fleet::new(harness, 2);
    let (peer, nobody) = (fleet.id(1), fleet.nobody());
    fleet
        .driver(0)
        .connect(peer, &nobody)
        .expect("a locator of this driver");
    fleet.until("the failure is reported", |fleet| !fleet.seen(0).is_empty());
    fleet.settle();
    assert!(
        matches!(fleet.seen(0), [Seen::ConnectFailed(of, _)] if *of == peer),
        "{:?}",
        fleet.seen(0)
    );
    assert_eq!(fleet.seen(1), []);
}

/// Contract 5: the process found there reports nothing.
pub fn a_connect_that_finds_another_process_fails<H: Harness>(harness: H) {
    let mut fleet = Fleet::new(harness, 3);
    let (wanted, at) = (fleet.id(1), fleet.locator(2));
    fleet
        .driver(0)
        .connect(wanted, &at)
        .expect("a locator of this driver");
    fleet.until("the failure is reported", |fleet| !fleet.seen(0).is_empty());
    fleet.settle();
    assert!(
        matches!(fleet.seen(0), [Seen::ConnectFailed(of, _)] if *of == wanted),
        "{:?}",
        fleet.seen(0)
    );
    assert_eq!((fleet.seen(1), fleet.seen(2)), (&[][..], &[][..]));
}

/// Contract 5.
pub fn a_connect_to_a_process_that_left_fails<H: Harness>(harness: H) {
    let mut fleet = Fleet::new(harness, 2);
    let (peer, at) = (fleet.id(1), fleet.locator(1));
    fleet.retire(1);
    fleet
        .driver(0)
        .connect(peer, &at)
        .expect("a locator of this driver");
    fleet.until("the failure is reported", |fleet| !fleet.seen(0).is_empty());
    assert!(
        matches!(fleet.seen(0), [Seen::ConnectFailed(of, _)] if *of == peer),
        "{:?}",
        fleet.seen(0)
    );
}

/// Contract 1: each attempt has its own end.
pub fn a_failed_connect_can_be_repeated<H: Harness>(harness: H) {
    let mut fleet = Fleet::new(harness, 2);
    let (peer, nobody) = (fleet.id(1), fleet.nobody());
    for attempt in 1..=3 {
        fleet
            .driver(0)
            .connect(peer, &nobody)
            .expect("a locator of this driver");
        fleet.until("the failure is reported", |fleet| {
            fleet.seen(0).len() == attempt
        });
    }
    fleet.link(0, 1);
    fleet.send(0, 1, b"at last");
    fleet.until("the frame arrives", |fleet| {
        fleet.frames(1, 0) == [b"at last"]
    });
}

/// Contract 3 and 1: an attempt that fails is rescued by the other end's.
pub fn an_attempt_that_fails_does_not_spoil_the_other_ends<H: Harness>(harness: H) {
    let mut fleet = Fleet::new(harness, 2);
    for (wrong, right) in [(0, 1), (1, 0)] {
        let (peer, nobody) = (fleet.id(right), fleet.nobody());
        fleet
            .driver(wrong)
            .connect(peer, &nobody)
            .expect("a locator of this driver");
        fleet.connect(right, wrong);
        fleet.await_link(0, 1);
        fleet.settle();
        assert_eq!(fleet.seen(right), [Seen::Connected(fleet.id(wrong))]);
        fleet.disconnect(wrong, right);
        fleet.until("the loss is reported", |fleet| {
            fleet.losses(right, wrong) == 1
        });
        fleet.take(0);
        fleet.take(1);
    }
}

/// Contract 1.
pub fn one_process_connects_to_seven<H: Harness>(harness: H) {
    let mut fleet = Fleet::new(harness, 8);
    (1..8).for_each(|to| fleet.connect(0, to));
    fleet.until("all links are up", |fleet| fleet.seen(0).len() == 7);
    (1..8).for_each(|to| fleet.send(0, to, &pattern(to as u64, 100)));
    fleet.until("all frames arrive", |fleet| {
        (1..8).all(|to| fleet.frames(to, 0) == [pattern(to as u64, 100)])
    });
}

/// Contract 2.
pub fn seven_processes_connect_to_one<H: Harness>(harness: H) {
    let mut fleet = Fleet::new(harness, 8);
    (1..8).for_each(|from| fleet.connect(from, 0));
    fleet.until("all links are up", |fleet| {
        (0..8).all(|at| !fleet.seen(at).is_empty())
    });
    (1..8).for_each(|from| fleet.send(from, 0, &pattern(from as u64, 100)));
    fleet.until("all frames arrive", |fleet| {
        (1..8).all(|from| fleet.frames(0, from) == [pattern(from as u64, 100)])
    });
}

/// Contract 9.
pub fn an_attempt_under_way_is_not_a_link<H: Harness>(harness: H) {
    let mut fleet = Fleet::new(harness, 2);
    let peer = fleet.id(1);
    fleet.connect(0, 1);
    assert_eq!(
        fleet.offer(0, 1, b"too early"),
        Err(Refused::NotConnected { peer })
    );
    fleet.await_link(0, 1);
    fleet.send(0, 1, b"in time");
    fleet.until("the frame arrives", |fleet| {
        fleet.frames(1, 0) == [b"in time"]
    });
}

/// Contract 22: attempts, good and bad, next to a link.
pub fn attempts_leave_links_alone<H: Harness>(harness: H) {
    let mut fleet = Fleet::new(harness, 3);
    fleet.link(0, 1);
    let (other, nobody) = (fleet.id(2), fleet.nobody());
    fleet
        .driver(0)
        .connect(other, &nobody)
        .expect("a locator of this driver");
    (0_u8..100).for_each(|number| fleet.send(0, 1, &[number]));
    fleet.until("the failure is reported", |fleet| {
        fleet
            .seen(0)
            .iter()
            .any(|seen| matches!(seen, Seen::ConnectFailed(..)))
    });
    (100_u8..200).for_each(|number| fleet.send(0, 1, &[number]));
    fleet.until("all frames arrive", |fleet| fleet.frames(1, 0).len() == 200);
    assert!(
        fleet
            .frames(1, 0)
            .iter()
            .zip(0_u8..)
            .all(|(frame, number)| *frame == [number])
    );
}
