//! One session, step by step.

use std::time::Duration;

use mizzen_proto::id::BodyId;
use mizzen_proto::session::{
    ACKNOWLEDGE_WITHIN, End, Expected, KeepRefused, OTHERS_TURN, Output, PAUSE_MAX, PAUSE_MIN,
    Refusal, Session, SessionFrame, Stamp, Turn,
};
use mizzen_proto::wire::Frame;

use super::end::options;
use super::lone::{C1, C2, Lone, refusal};

// docs/wire-sessions.md §20.2, §21.7
#[test]
fn numbers_go_on_after_a_resume_and_only_what_is_missing_goes_again() {
    let mut lone = Lone::open();
    lone.keep(5);
    assert_eq!(lone.transmitted(), [1, 2, 3, 4, 5]);
    lone.session.handle_lost(C1, lone.now);
    lone.keep(1);
    let outputs = lone.greet(C2, |greeting| {
        greeting.connection = 2;
        greeting.received_through = 3;
    });
    assert!(outputs.contains(&Output::Free { through: 3 }));
    let again: Vec<_> = outputs
        .iter()
        .filter_map(|output| match output {
            Output::Transmit { connection, stamp } => Some((*connection, stamp.number)),
            _ => None,
        })
        .collect();
    assert_eq!(again, [(C2, 4), (C2, 5), (C2, 6)]);
}

// docs/wire-sessions.md §22.2
#[test]
fn a_frame_that_comes_again_is_dropped_and_acknowledged_again() {
    let mut lone = Lone::open();
    assert_eq!(lone.frame(1, 0), Ok(Some(1)));
    assert_eq!(lone.frame(2, 0), Ok(Some(2)));
    lone.sleep();
    assert_eq!(lone.acknowledged(), [2]);
    assert_eq!(lone.frame(1, 0), Ok(None));
    assert_eq!(lone.acknowledged(), [2], "at once");
    assert_eq!(lone.frame(3, 0), Ok(Some(3)));
}

// docs/wire-sessions.md §22.3
#[test]
fn an_acknowledgement_rides_or_goes_alone_after_a_while_or_a_quarter() {
    let mut lone = Lone::open();
    lone.frame(1, 0).unwrap();
    assert_eq!(lone.acknowledged(), []);
    let due = lone.session.next_timeout().unwrap();
    assert_eq!(due.since(lone.now), ACKNOWLEDGE_WITHIN);
    // The first that waits decides, not the last.
    lone.now = lone.now + Duration::from_millis(20);
    lone.frame(2, 0).unwrap();
    assert_eq!(lone.session.next_timeout(), Some(due));
    lone.sleep();
    assert_eq!(lone.acknowledged(), [2]);
    assert_eq!(lone.session.next_timeout(), None);

    lone.frame(3, 0).unwrap();
    lone.keep(1);
    let stamp = Stamp {
        number: 1,
        received_through: 3,
    };
    let connection = C1;
    assert_eq!(lone.outputs(), [Output::Transmit { connection, stamp }]);
    assert_eq!(lone.acknowledged(), [], "it was told");

    // 140,000 / 4 of 4 + 64 bytes each.
    let alone = 3 + 35_000_u64.div_ceil(68);
    for number in 4..=alone {
        assert_eq!(lone.acknowledged(), []);
        lone.frame(number, 1).unwrap();
    }
    assert_eq!(lone.acknowledged(), [alone]);
}

// docs/wire-sessions.md §22.4
#[test]
fn what_is_kept_is_bounded_and_freed_by_acknowledgements() {
    let mut lone = Lone::open();
    let mut kept = 0;
    let refused = loop {
        match lone.session.keep(936, lone.now) {
            Ok(_) => kept += 1,
            Err(refused) => break refused,
        }
    };
    assert_eq!((kept, refused), (140, KeepRefused::Full));
    lone.outputs();
    lone.frame(0, 1).unwrap();
    assert_eq!(lone.outputs(), [Output::Free { through: 1 }]);
    assert_eq!(lone.session.keep(936, lone.now), Ok(141));
}

#[test]
fn a_frame_that_is_sent_at_once_counts_like_one_that_waited() {
    let mut lone = Lone::open();
    lone.frame(1, 0).unwrap();
    let stamp = Stamp {
        number: 1,
        received_through: 1,
    };
    assert_eq!(lone.session.keep_sent(100, lone.now), Ok((C1, stamp)));
    assert_eq!(lone.outputs(), [], "it went, and acknowledged");
    lone.keep(1);
    assert!(!lone.session.is_ready(), "that one goes first");
    assert!(lone.session.keep_sent(100, lone.now).is_err());
    assert_eq!(lone.transmitted(), [2]);
    lone.frame(0, 1).unwrap();
    assert_eq!(lone.outputs(), [Output::Free { through: 1 }]);
    // Over the next connection what is not acknowledged goes again.
    lone.session.keep_sent(100, lone.now).unwrap();
    lone.session.handle_lost(C1, lone.now);
    assert!(!lone.session.is_ready());
    lone.greet(C2, |greeting| {
        (greeting.connection, greeting.received_through) = (2, 2);
        greeting.oldest_kept = 2;
    });
    lone.keep(1);
    assert_eq!(lone.transmitted(), [4], "3 went with the greeting");
}

// docs/wire-sessions.md §21.7
#[test]
fn who_dials_for_the_first_time_does_not_wait_for_the_answer() {
    let mut lone = Lone::new();
    lone.keep(1);
    assert_eq!(lone.outputs(), [Output::Dial { number: 1 }]);
    lone.session.handle_dialled(1, C1, lone.now);
    let outputs = lone.outputs();
    assert!(matches!(
        outputs[..],
        [Output::Send { .. }, Output::Transmit { .. }]
    ));
    // The second time it does.
    lone.session.handle_lost(C1, lone.now);
    lone.sleep();
    assert_eq!(lone.outputs(), [Output::Dial { number: 2 }]);
    lone.session.handle_dialled(2, C2, lone.now);
    assert!(matches!(lone.outputs()[..], [Output::Send { .. }]));
    let mut answer = lone.greeting();
    (answer.connection, answer.turn, answer.received_through) = (2, Turn::Answer, 1);
    let answer = SessionFrame::Greeting(answer).to_vec();
    let _ = lone.session.handle_frame(C2, &answer, lone.now).unwrap();
    assert_eq!(lone.outputs(), [Output::Free { through: 1 }]);
    assert!(lone.session.is_connected());
}

// docs/wire-sessions.md §21.8
#[test]
fn who_is_refused_as_superseded_dials_with_a_greater_number() {
    let mut lone = Lone::new();
    lone.keep(1);
    lone.outputs();
    lone.session.handle_dialled(1, C1, lone.now);
    lone.outputs();
    lone.own(SessionFrame::Refusal(Refusal::Superseded { newest: 41 }))
        .unwrap();
    assert_eq!(lone.outputs(), [Output::Close { connection: C1 }]);
    lone.sleep();
    assert_eq!(lone.outputs(), [Output::Dial { number: 42 }]);
}

// docs/wire-sessions.md §21.3: the answer is checked as the question is
#[test]
fn an_answer_of_somebody_else_ends_the_connection_only() {
    for change in 0..3 {
        let mut lone = Lone::new();
        lone.keep(1);
        lone.outputs();
        lone.session.handle_dialled(1, C1, lone.now);
        lone.outputs();
        let mut answer = lone.greeting();
        answer.turn = Turn::Answer;
        match change {
            0 => answer.from.incarnation.0 += 1,
            1 => answer.connection = 2,
            _ => answer.turn = Turn::Ask,
        }
        answer.received_through = 99;
        lone.own(SessionFrame::Greeting(answer)).unwrap();
        assert_eq!(lone.outputs(), [Output::Close { connection: C1 }]);
        lone.sleep();
        assert_eq!(lone.outputs(), [Output::Dial { number: 2 }]);
    }
}

// docs/wire-sessions.md §25.1
#[test]
fn pauses_double_up_to_a_limit_and_depend_on_the_seed() {
    let pauses = |seed| {
        let mut lone = Lone::with(options(0, seed));
        lone.keep(1);
        let mut pauses = Vec::new();
        for number in 1..12 {
            assert_eq!(lone.outputs(), [Output::Dial { number }]);
            lone.session.handle_dial_failed(number, lone.now);
            let before = lone.now;
            lone.sleep();
            pauses.push(lone.now.since(before));
        }
        pauses
    };
    let (one, other) = (pauses(1), pauses(99));
    assert_ne!(one, other);
    assert_eq!(one, pauses(1));
    let mut most = PAUSE_MIN;
    for pause in one {
        assert!(pause >= most / 2 && pause <= most, "{pause:?} of {most:?}");
        most = (most * 2).min(PAUSE_MAX);
    }
}

// docs/wire-sessions.md §25.1
#[test]
fn who_was_dialled_lets_the_other_dial_again_first() {
    let mut lone = Lone::open();
    lone.frame(1, 0).unwrap();
    lone.keep(1);
    lone.outputs();
    lone.session.handle_lost(C1, lone.now);
    let pause = lone.session.next_timeout().unwrap().since(lone.now);
    assert!(pause >= OTHERS_TURN && pause <= OTHERS_TURN + PAUSE_MIN);
}

// docs/wire-sessions.md §20.2, §24.1
#[test]
fn the_last_number_is_for_bye() {
    let mut options = options(0, 1);
    options.first_number = u64::MAX - 2;
    let mut lone = Lone::with(options);
    lone.greet(C1, |_| {});
    assert_eq!(lone.session.keep(1, lone.now), Ok(u64::MAX - 2));
    assert_eq!(lone.session.keep(1, lone.now), Ok(u64::MAX - 1));
    assert_eq!(lone.session.keep(1, lone.now), Err(KeepRefused::Exhausted));
    lone.session.leave(lone.now);
    let last = lone.outputs().pop();
    let stamp = Stamp {
        number: u64::MAX,
        received_through: u64::MAX - 3,
    };
    let (connection, frame) = (C1, SessionFrame::Bye(stamp));
    assert_eq!(last, Some(Output::Send { connection, frame }));
    assert_eq!(lone.session.keep(1, lone.now), Err(KeepRefused::Leaving));
    for number in u64::MAX - 2..u64::MAX {
        assert_eq!(lone.frame(number, u64::MAX), Ok(Some(number)));
    }
    let bye = SessionFrame::Bye(Stamp {
        number: u64::MAX,
        received_through: u64::MAX,
    });
    lone.own(bye).unwrap();
    assert_eq!(lone.session.end(), Some(End::Left));
    assert!(lone.session.account().unacknowledged.is_empty());
}

// docs/wire-sessions.md §24.3
#[test]
fn a_session_that_is_over_is_never_resumed() {
    let mut lone = Lone::open();
    lone.frame(1, 0).unwrap();
    lone.session.handle_verdict();
    let ended = Output::Ended(End::Verdict);
    assert_eq!(lone.outputs(), [Output::Close { connection: C1 }, ended]);
    let outputs = lone.greet(C2, |greeting| greeting.connection = 2);
    let received_through = 1;
    assert_eq!(refusal(&outputs), Some(Refusal::Ended { received_through }));
    assert_eq!(lone.session.keep(1, lone.now), Err(KeepRefused::Over));
    assert_eq!(
        lone.frame(2, 0),
        Ok(None),
        "nothing is accepted of an ended life"
    );
    assert_eq!(lone.session.next_timeout(), None);
}

#[test]
fn an_attempt_that_succeeds_too_late_is_closed() {
    let mut lone = Lone::new();
    lone.keep(1);
    assert_eq!(lone.outputs(), [Output::Dial { number: 1 }]);
    let outputs = lone.greet(C1, |greeting| greeting.connection = 1);
    assert_eq!(outputs[0], Output::Abandon { number: 1 });
    lone.session.handle_dialled(1, C2, lone.now);
    assert_eq!(lone.outputs(), [Output::Close { connection: C2 }]);
    assert!(lone.session.is_connected());
}

#[test]
fn who_leaves_before_it_said_anything_has_left() {
    let mut lone = Lone::new();
    lone.session.leave(lone.now);
    assert_eq!(lone.outputs(), [Output::Ended(End::Left)]);
}

// docs/wire-sessions.md §22.5: the link's own check of reserved bytes is the check of the flow
#[test]
fn a_flow_that_is_not_direct_is_an_error() {
    let post = [0x10, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0];
    assert!(Frame::decode(&post).is_ok());
    for byte in [2, 3] {
        let mut post = post;
        post[byte] = 1;
        assert!(Frame::decode(&post).is_err());
    }
}

#[test]
fn an_idle_session_is_small() {
    assert!(
        size_of::<Session>() <= 640,
        "{} bytes",
        size_of::<Session>()
    );
}

// docs/wire-sessions.md §23.3
#[test]
fn what_the_greeting_tells_of_bodies_is_not_told_again() {
    let mut lone = Lone::open();
    let bodies = [BodyId(1), BodyId(2), BodyId(3)];
    for body in bodies {
        lone.session.expect_body(body, 9, lone.now).unwrap();
    }
    lone.outputs();
    // Both end before the peer could be told, one of them with its connection; of the third a part has come.
    assert!(lone.session.handle_body_received(C1, bodies[0], lone.now));
    assert!(lone.session.handle_body_progress(bodies[1], 9));
    assert!(!lone.session.handle_body_progress(bodies[2], 4));
    let outputs = lone.greet(C2, |greeting| greeting.connection = 2);
    let (body, from, connection) = (bodies[2], 4, C2);
    let place = Output::ReceiveBody {
        connection,
        body,
        from,
    };
    let close = Output::Close { connection: C1 };
    assert_eq!(
        outputs[..2],
        [close, place],
        "places come before the promise"
    );
    let [Output::Send { frame, .. }] = &outputs[2..] else {
        panic!("{outputs:?}");
    };
    let SessionFrame::Greeting(greeting) = frame else {
        panic!("{frame:?}");
    };
    let in_place = 4;
    assert_eq!(greeting.expected, [Expected { body, in_place }]);
}
