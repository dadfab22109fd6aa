//! Cuts at every byte, and other things that happen to connections of two sessions.

use std::time::Duration;

use mizzen_proto::session::{Dialling, End as Ending, SILENCE_MAX};
use mizzen_proto::time::Time;

use super::end::options;
use super::oracle::{check_account, check_flushed, check_left};
use super::world::{State, World};

/// Posts, pushes, offers, both ways; then both ends are read, and one leaves.
fn talk(world: &mut World) {
    // One dials, so that the first connection is the one that stays.
    assert!(world.post(0, 0, 0, false));
    world.run();
    for side in 0..2 {
        assert!(world.post(side, 10, 0, false));
        assert!(world.post(side, 3, 300, true));
        assert!(world.post(side, 3, 250, false));
        assert!(world.post(side, 20, 0, false));
    }
    world.run();
    for how in [1, 2, 2, 1] {
        world.read(0, how);
        world.read(1, how);
        world.run();
    }
    world.settle();
    check_flushed(world);
    world.leave(1);
    world.settle();
    check_left(world);
}

/// How many bytes go towards each end on the first connection when nothing is cut.
fn lengths() -> [u64; 2] {
    let mut world = World::new(1);
    talk(&mut world);
    [0, 1].map(|side| world.connections[0].pipes[side].written)
}

// docs/wire-sessions.md §20.1, §21.7, §23.1, §24.2: hello, frames, bodies, acknowledgements and bye are all of it
#[test]
fn a_cut_at_any_byte_of_a_connection_changes_nothing() {
    let lengths = lengths();
    assert!(lengths[0] > 1100 && lengths[1] > 1100, "{lengths:?}");
    for side in 0..2 {
        for byte in 0..=lengths[side] {
            let mut world = World::new(1);
            let mut cut = [None; 2];
            cut[side] = Some(byte);
            world.cuts.push_back(cut);
            talk(&mut world);
            assert!(world.connections.len() > 1 || byte == lengths[side]);
        }
    }
}

// docs/wire-sessions.md §21.7, §23.2
#[test]
fn a_cut_at_any_byte_of_the_resume_after_a_cut_changes_nothing() {
    let lengths = lengths();
    for first in [lengths[1] / 3, lengths[1] / 2] {
        for side in 0..2 {
            for byte in 0..600 {
                let mut world = World::new(2);
                let mut cut = [None; 2];
                cut[side] = Some(byte);
                world.cuts.extend([[None, Some(first)], cut]);
                talk(&mut world);
            }
        }
    }
}

// docs/wire-sessions.md §23.2
#[test]
fn a_body_goes_on_from_where_it_was_cut() {
    let body = 2000;
    let mut world = World::new(3);
    assert!(world.post(0, 0, body, true));
    world.cuts.push_back([None, Some(1200)]);
    world.settle();
    check_flushed(&world);
    let again = world.connections[1].pipes[1].written;
    assert!(again < 1200, "{again} bytes for the rest of {body}");
}

// docs/wire-sessions.md §21.4, §21.5
#[test]
fn when_both_dial_at_once_one_connection_stays() {
    let mut world = World::new(4);
    assert!(world.post(0, 0, 0, false) && world.post(1, 0, 0, false));
    assert_eq!(world.connections.len(), 2);
    assert_eq!(world.connections[0].number, world.connections[1].number);
    world.connect(0);
    world.connect(1);
    world.settle();
    check_flushed(&world);
    assert_eq!(world.connections.len(), 2, "nobody had to dial again");
    let closed = |at: usize| world.connections[at].closed;
    assert_eq!(closed(0), [true; 2]);
    assert_eq!(closed(1), [false; 2], "the greater process's stays");
}

// docs/wire-sessions.md §21.5
#[test]
fn an_older_connection_that_delivers_late_has_no_effect() {
    let mut world = World::new(5);
    world.post(0, 0, 0, false);
    world.settle();
    world.post(1, 0, 500, true);
    world.post(0, 0, 0, false);
    // The dialler gives up its connection while everything is still on its way.
    world.cut(0, [usize::MAX; 2]);
    world.tell_lost(0, 0);
    while world.connections.len() == 1 {
        assert!(world.sleep());
    }
    world.connect(1);
    world.deliver(1, 1, usize::MAX);
    assert!(world.connections[0].closed[1], "superseded at once");
    world.deliver(0, 0, usize::MAX);
    world.deliver(0, 1, usize::MAX);
    assert!(world.stale > 0);
    world.settle();
    check_flushed(&world);
    assert_eq!(world.connections.len(), 2, "the older one ended nothing");
}

// docs/wire-sessions.md §25.2: nobody says that anything was lost
#[test]
fn a_connection_that_loses_one_direction_is_replaced_and_ends_nothing() {
    for hole in 0..2 {
        let mut world = World::new(6);
        world.post(0, 0, 0, false);
        world.settle();
        world.connections[0].is_hole[hole] = true;
        let before = world.now;
        world.post(0, 0, 0, false);
        world.settle();
        check_flushed(&world);
        assert!(world.connections.len() > 1);
        let took = world.now.since(before);
        assert!(
            took >= SILENCE_MAX && took < SILENCE_MAX + Duration::from_secs(1),
            "{took:?}"
        );
    }
}

// docs/wire-sessions.md §25.2
#[test]
fn a_greeting_without_an_answer_is_tried_again() {
    let mut world = World::new(7);
    world.post(0, 0, 0, false);
    world.connections[0].is_hole = [true; 2];
    world.settle();
    check_flushed(&world);
    assert_eq!(world.connections.len(), 2);
}

// docs/wire-sessions.md §22.4
#[test]
fn while_it_is_cut_posting_waits_when_the_window_is_full() {
    let mut world = World::new(8);
    world.post(0, 0, 0, false);
    world.settle();
    world.cut(0, [0; 2]);
    while world.post(0, 3000, 0, false) {}
    let full = world.ends[0].session.kept_bytes();
    assert!(full > 136_000 && full <= 140_000, "{full}");
    world.settle();
    check_flushed(&world);
    assert!(world.post(0, 3000, 0, false));
    assert_eq!(world.ends[0].session.kept_bytes(), 8 + 3000 + 16 + 64);
}

// docs/wire-sessions.md §24.1, §24.2
#[test]
fn a_bye_that_crosses_a_cut_or_another_bye_arrives() {
    for both in [false, true] {
        for arrive in 0..60 {
            let mut world = World::new(9);
            world.post(0, 0, 0, false);
            world.post(1, 0, 0, false);
            world.settle();
            world.post(1, 5, 0, false);
            world.leave(0);
            if both {
                world.leave(1);
            }
            let at = world.connections.len() - 1;
            world.cut(at, [arrive; 2]);
            world.settle();
            check_left(&world);
        }
    }
}

// docs/wire-sessions.md §24.3
#[test]
fn who_lost_the_last_acknowledgement_learns_it_from_the_refusal() {
    let mut world = World::new(10);
    world.post(0, 0, 0, false);
    world.settle();
    world.leave(0);
    world.deliver(0, 1, usize::MAX);
    world.deliver(0, 0, usize::MAX);
    assert_eq!(world.ends[0].ended, Some(Ending::Left));
    assert_eq!(
        world.ends[1].ended, None,
        "it waits for the acknowledgement of its bye"
    );
    world.cut(0, [0; 2]);
    world.settle();
    check_left(&world);
    assert!(world.connections.len() > 1);
}

// docs/wire-sessions.md §20.3, §24.4
#[test]
fn after_a_verdict_during_a_resume_the_account_lists_what_may_be_missing() {
    let mut world = World::new(11);
    world.post(0, 0, 0, false);
    world.settle();
    world.post(0, 1, 0, false);
    world.deliver(0, 1, usize::MAX);
    world.post(0, 2, 0, false);
    world.cut(0, [0; 2]);
    world.tell_lost(0, 0);
    world.post(0, 3, 0, false);
    while world.connections.len() == 1 {
        assert!(world.sleep());
    }
    world.connect(1);
    world.verdict(0);
    let account = world.ends[0].session.account();
    let numbers = [1, 2, 3].map(|at: usize| world.ends[0].posted[at].number);
    assert!(!account.is_exact);
    assert_eq!(account.unacknowledged.count(), 2);
    assert!(
        account.unacknowledged.contains(numbers[0]) && account.unacknowledged.contains(numbers[1])
    );
    assert_eq!(account.never_sent.count(), 1);
    assert!(account.never_sent.contains(numbers[2]));
    world.settle();
    check_account(&world);
    assert!(
        world.ends[1].session.end().is_none(),
        "idle: it has nothing to ask for"
    );
    world.post(1, 0, 0, false);
    world.settle();
    assert_eq!(world.ends[1].session.end(), Some(Ending::PeerEnded));
    assert!(world.ends[1].session.account().is_exact);
    check_account(&world);
}

// docs/wire-sessions.md §25.3
#[test]
fn an_end_that_needs_nothing_is_silent_and_dials_nobody() {
    let mut world = World::new(12);
    world.post(0, 0, 700, true);
    world.settle();
    check_flushed(&world);
    assert!(
        world
            .ends
            .iter()
            .all(|end| end.session.next_timeout().is_none())
    );
    world.cut(0, [0; 2]);
    world.settle();
    assert_eq!(world.connections.len(), 1);
    world.post(1, 0, 0, false);
    world.settle();
    check_flushed(&world);
    assert_eq!(world.connections.len(), 2);
}

// docs/wire-sessions.md §25.3: who cannot dial may have something to say
#[test]
fn the_only_end_that_can_dial_always_has_a_connection() {
    let [mut here, mut there] = [options(0, 13), options(1, 13)];
    (here.dialling, there.dialling) = (Dialling::Here, Dialling::There);
    let mut world = World::with([here, there]);
    world.ends[0].session.handle_timeout(Time(0));
    world.flush(0);
    world.settle();
    world.cut(0, [0; 2]);
    world.settle();
    assert_eq!(world.connections.len(), 2);
    world.post(1, 0, 0, false);
    world.settle();
    check_flushed(&world);
    assert!(
        world
            .connections
            .iter()
            .all(|connection| connection.dialler == 0)
    );
}

// docs/wire-sessions.md §20.3, §25.1
#[test]
fn no_number_of_failed_attempts_ends_a_session() {
    let mut world = World::new(14);
    world.post(0, 0, 0, false);
    for attempt in 0..20_000 {
        assert_eq!(world.connections[attempt].state, State::Dialling);
        world.fail(attempt);
        let before = world.now;
        assert!(world.sleep());
        let pause = world.now.since(before);
        let (least, most) = (Duration::from_millis(10), Duration::from_millis(500));
        assert!(pause >= least && pause <= most, "{pause:?}");
    }
    assert!(world.now > Time(0) + Duration::from_secs(3600));
    world.settle();
    check_flushed(&world);
}
