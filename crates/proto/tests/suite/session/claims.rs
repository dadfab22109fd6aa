//! What a peer may claim, and what becomes of it when it is not true.

use mizzen_proto::id::{BodyId, Incarnation, ProcessId, Rank};
use mizzen_proto::session::{
    ByteOrder, CONNECTION_STEP, ClusterId, ConnectionId, End, Expected, Greeting, JobId,
    MemoryForm, Output, Refusal, SESSION_VERSION, SessionError, SessionFrame, Stamp, TAKEN_MAX,
    Turn,
};
use proptest::prelude::*;

use super::lone::{C1, C2, Lone, refusal};

/// A change that makes a greeting wrong.
type Change = fn(&mut Greeting);

const KNOWN: BodyId = BodyId(4);
const UNKNOWN: BodyId = BodyId(5);

fn expect(body: BodyId, in_place: u64) -> Vec<Expected> {
    vec![Expected { body, in_place }]
}

// docs/wire-sessions.md §21.2, §21.3
#[test]
fn a_stranger_is_refused_and_the_session_goes_on() {
    let changes: [Change; 8] = [
        |greeting| greeting.job = JobId([8; 16]),
        |greeting| greeting.cluster = ClusterId(1),
        // One of our own form was here before.
        |greeting| greeting.form.byte_order = ByteOrder::Big,
        |greeting| greeting.window.bytes += 1,
        |greeting| greeting.turn = Turn::Answer,
        |greeting| greeting.from = ProcessId::new(Rank(4), Incarnation(2)),
        |greeting| greeting.to = ProcessId::new(Rank(3), Incarnation(0)),
        |greeting| greeting.connection = CONNECTION_STEP + 9,
    ];
    for change in changes {
        let mut lone = Lone::open();
        lone.keep(1);
        lone.outputs();
        let outputs = lone.greet(C2, |greeting| {
            greeting.connection = 2;
            // Not even numbers that would end a session are looked at.
            greeting.received_through = 77;
            change(greeting);
        });
        assert_eq!(refusal(&outputs), Some(Refusal::Stranger));
        assert_eq!(outputs.last(), Some(&Output::Close { connection: C2 }));
        assert!(lone.session.is_connected());
        assert_eq!(
            lone.frame(1, 1),
            Ok(Some(1)),
            "the connection that was there is"
        );
    }
}

// docs/wire-sessions.md §21.2
#[test]
fn a_peer_with_another_memory_is_welcome_and_known_for_what_it_is() {
    let mut lone = Lone::new();
    let other = MemoryForm {
        byte_order: ByteOrder::Big,
        word: 4,
    };
    assert_eq!(lone.session.peer_form(), MemoryForm::NATIVE);
    lone.greet(C1, |greeting| greeting.form = other);
    assert!(lone.session.is_connected());
    assert_eq!(lone.session.peer_form(), other);
    let outputs = lone.greet(C2, |greeting| {
        greeting.connection = 2;
        greeting.form = MemoryForm::NATIVE;
    });
    assert_eq!(refusal(&outputs), Some(Refusal::Stranger));
    assert_eq!(lone.session.peer_form(), other);
}

// docs/wire-sessions.md §21.4, §21.5
#[test]
fn a_greeting_that_is_not_newer_is_refused_and_ends_nothing() {
    let mut lone = Lone::new();
    lone.greet(C1, |greeting| greeting.connection = 5);
    for number in [0, 1, 4, 5] {
        let outputs = lone.greet(C2, |greeting| {
            greeting.connection = number;
            greeting.received_through = 99;
        });
        assert_eq!(refusal(&outputs), Some(Refusal::Superseded { newest: 5 }));
        assert!(lone.session.is_connected());
    }
    assert_eq!(lone.frame(1, 0), Ok(Some(1)));
}

// docs/wire-sessions.md §21.4
#[test]
fn a_flood_of_resumes_costs_a_refusal_each_and_keeps_nothing() {
    let mut lone = Lone::new();
    lone.greet(C1, |greeting| greeting.connection = 5);
    for number in 0..10_000 {
        let outputs = lone.greet(ConnectionId(100 + number), |greeting| {
            greeting.connection = number % 6;
        });
        assert_eq!(refusal(&outputs), Some(Refusal::Superseded { newest: 5 }));
        assert_eq!(outputs.len(), 2, "it is refused and closed: {outputs:?}");
    }
    assert!(lone.session.is_connected());
    assert_eq!(lone.frame(1, 0), Ok(Some(1)));
}

// docs/wire-sessions.md §21.6, §23.2
#[test]
fn a_resume_that_cannot_be_true_ends_the_session_and_says_why() {
    let cases: [(SessionError, Change); 6] = [
        (
            SessionError::NeverSent {
                through: 4,
                sent: 3,
            },
            |greeting| greeting.received_through = 4,
        ),
        (
            SessionError::TakenBack {
                through: 1,
                acknowledged: 2,
            },
            |greeting| greeting.received_through = 1,
        ),
        (SessionError::NotKept { oldest: 3, next: 2 }, |greeting| {
            greeting.oldest_kept = 3
        }),
        (
            SessionError::Body {
                body: KNOWN,
                in_place: 50,
            },
            |greeting| greeting.expected = expect(KNOWN, 50),
        ),
        (
            SessionError::Body {
                body: UNKNOWN,
                in_place: 1,
            },
            |greeting| greeting.expected = expect(UNKNOWN, 1),
        ),
        (
            SessionError::NeverSent {
                through: u64::MAX,
                sent: 3,
            },
            |greeting| greeting.received_through = u64::MAX,
        ),
    ];
    for (error, change) in cases {
        let mut lone = Lone::open();
        lone.keep(3);
        assert_eq!(lone.transmitted(), [1, 2, 3]);
        lone.frame(1, 2).unwrap();
        lone.session.send_body(KNOWN, 50, None, lone.now).unwrap();
        lone.outputs();
        lone.session.handle_lost(C1, lone.now);
        // A fourth frame is kept, but was never sent.
        lone.keep(1);
        let outputs = lone.greet(C2, |greeting| {
            greeting.connection = 2;
            greeting.received_through = 2;
            greeting.oldest_kept = 2;
            change(greeting);
        });
        assert_eq!(lone.session.end(), Some(End::Broken(error)));
        assert!(outputs.contains(&Output::Close { connection: C2 }));
        let outputs = lone.greet(C2, |greeting| greeting.connection = 3);
        let received_through = 1;
        assert_eq!(refusal(&outputs), Some(Refusal::Ended { received_through }));
    }
}

// docs/wire-sessions.md §21.6
#[test]
fn a_resume_at_the_edges_of_what_is_true_is_taken() {
    for through in [2, 3] {
        let mut lone = Lone::open();
        lone.keep(3);
        lone.outputs();
        lone.frame(1, 2).unwrap();
        let outputs = lone.greet(C2, |greeting| {
            greeting.connection = 2;
            greeting.received_through = through;
            greeting.oldest_kept = 2;
        });
        assert!(outputs.contains(&Output::Close { connection: C1 }));
        let sent = outputs
            .iter()
            .filter(|output| matches!(output, Output::Transmit { .. }));
        assert_eq!(sent.count() as u64, 3 - through);
        assert!(lone.session.is_connected());
    }
}

// docs/wire-sessions.md §22.2, §22.3, §24.1
#[test]
fn numbers_and_acknowledgements_that_cannot_be_end_the_session() {
    let cases: [(u64, u64, SessionError); 4] = [
        (3, 0, SessionError::Gap { number: 3, next: 2 }),
        (
            u64::MAX,
            0,
            SessionError::Gap {
                number: u64::MAX,
                next: 2,
            },
        ),
        (
            2,
            3,
            SessionError::NeverSent {
                through: 3,
                sent: 2,
            },
        ),
        (
            2,
            0,
            SessionError::TakenBack {
                through: 0,
                acknowledged: 1,
            },
        ),
    ];
    for (number, through, error) in cases {
        let mut lone = Lone::open();
        lone.keep(2);
        lone.outputs();
        let first = u64::from(matches!(error, SessionError::TakenBack { .. }));
        lone.frame(1, first).unwrap();
        assert_eq!(lone.frame(number, through), Err(error));
        assert_eq!(lone.session.end(), Some(End::Broken(error)));
    }
    let mut lone = Lone::open();
    lone.keep(1);
    lone.outputs();
    let bye = SessionFrame::Bye(Stamp {
        number: 1,
        received_through: 0,
    });
    lone.own(bye.clone()).unwrap();
    assert_eq!(lone.own(bye), Ok(()), "it came again");
    let after = SessionError::AfterBye { number: 2, bye: 1 };
    assert_eq!(lone.frame(2, 0), Err(after));
}

// docs/wire-sessions.md §23.3
#[test]
fn a_body_that_is_not_under_way_cannot_be_taken() {
    let mut lone = Lone::open();
    let body = BodyId(3);
    lone.session.send_body(body, 9, None, lone.now).unwrap();
    let from = 0;
    let send = Output::SendBody {
        connection: C1,
        body,
        from,
    };
    assert_eq!(lone.outputs(), [send]);
    let taken = || {
        let stamp = Stamp {
            number: 0,
            received_through: 0,
        };
        SessionFrame::Taken(stamp, vec![body])
    };
    lone.own(taken()).unwrap();
    assert_eq!(lone.outputs(), [Output::Taken { body }]);
    assert_eq!(lone.own(taken()), Err(SessionError::UnknownBody { body }));
}

// docs/wire-sessions.md §21.8: a refusal cannot claim what a greeting cannot
#[test]
fn a_refusal_that_cannot_be_true_ends_the_session_too() {
    let mut lone = Lone::new();
    lone.keep(1);
    assert_eq!(lone.outputs(), [Output::Dial { number: 1 }]);
    lone.session.handle_dialled(1, C1, lone.now);
    lone.outputs();
    let received_through = 2;
    let error = SessionError::NeverSent {
        through: 2,
        sent: 1,
    };
    let refused = lone.own(SessionFrame::Refusal(Refusal::Ended { received_through }));
    assert_eq!(refused, Err(error));
    assert_eq!(lone.session.end(), Some(End::Broken(error)));
}

// docs/wire-sessions.md §21.8, §24.4
#[test]
fn who_is_taken_for_dead_learns_it_and_what_was_taken_before() {
    let mut lone = Lone::new();
    lone.keep(1);
    lone.keep(1);
    assert_eq!(lone.outputs(), [Output::Dial { number: 1 }]);
    lone.session.handle_dialled(1, C1, lone.now);
    lone.outputs();
    let received_through = 1;
    let refused = lone.own(SessionFrame::Refusal(Refusal::Fenced { received_through }));
    assert!(refused.is_ok());
    assert_eq!(lone.session.end(), Some(End::Fenced));
    let account = lone.session.account();
    assert!(account.is_exact);
    assert_eq!(account.unacknowledged.count(), 1);
    assert!(account.unacknowledged.contains(2));
}

// docs/wire-sessions.md §21.1, §21.2, §21.8, §22.1, §23.3
#[test]
fn greetings_and_refusals_are_what_the_page_says() {
    let mut greeting = Lone::new().greeting();
    greeting.expected = vec![Expected {
        body: BodyId(0x0102),
        in_place: 0x0304,
    }];
    let bytes = SessionFrame::Greeting(greeting.clone()).to_vec();
    assert_eq!(bytes.len(), 80 + 16);
    assert_eq!(bytes[..4], [1, 1, SESSION_VERSION as u8, 0]);
    assert_eq!(bytes[76..80], [1, 8, 0, 0]);
    assert_eq!(bytes[80..90], [2, 1, 0, 0, 0, 0, 0, 0, 4, 3]);
    assert_eq!(Greeting::decode(&bytes), Ok(greeting));
    for len in 0..bytes.len() {
        let is_whole = len == 80;
        assert_eq!(
            Greeting::decode(&bytes[..len]).is_ok(),
            is_whole,
            "{len} bytes"
        );
    }
    for (at, value) in [
        (0, 2),
        (1, 0),
        (1, 3),
        (76, 0),
        (76, 3),
        (77, 0),
        (77, 2),
        (78, 1),
        (79, 1),
    ] {
        let mut bytes = bytes.clone();
        bytes[at] = value;
        assert!(Greeting::decode(&bytes).is_err(), "byte {at}");
    }
    let mut other = bytes.clone();
    other[2] = 8;
    let version = SessionError::Version { ours: 7, theirs: 8 };
    assert_eq!(Greeting::decode(&other[..9]), Err(version));
    let doubled = [&bytes[..], &bytes[80..]].concat();
    assert!(Greeting::decode(&doubled).is_err(), "a body is named once");

    let refusals = [
        (Refusal::Superseded { newest: 7 }, [5, 1, 7, 0]),
        (
            Refusal::Ended {
                received_through: 7,
            },
            [5, 2, 0, 7],
        ),
        (Refusal::Stranger, [5, 3, 0, 0]),
        (
            Refusal::Fenced {
                received_through: 7,
            },
            [5, 4, 0, 7],
        ),
    ];
    for (refusal, [kind, reason, newest, through]) in refusals {
        let bytes = SessionFrame::Refusal(refusal).to_vec();
        assert_eq!(bytes.len(), 24);
        assert_eq!(
            [bytes[0], bytes[1], bytes[8], bytes[16]],
            [kind, reason, newest, through]
        );
        assert_eq!(Refusal::decode(&bytes), Ok(refusal));
        let mut reserved = bytes.clone();
        reserved[5] = 1;
        assert!(Refusal::decode(&reserved).is_err() && Refusal::decode(&bytes[..23]).is_err());
    }
}

// docs/wire-sessions.md §22.1, §23.3
#[test]
fn what_is_behind_a_stamp_is_checked() {
    let stamp = |number: u64| [number.to_le_bytes(), [0; 8]].concat();
    let many = vec![0; 8 * (TAKEN_MAX + 1)];
    let bad: [Vec<u8>; 9] = [
        vec![],
        vec![0; 15],
        stamp(1),
        [stamp(0), vec![0x10, 0, 0, 0]].concat(),
        [stamp(0), vec![6, 0, 0, 0, 0, 0, 0, 0]].concat(),
        [stamp(0), vec![6, 0, 0, 0, 0, 0, 0, 1], vec![0; 8]].concat(),
        [stamp(0), vec![6, 0, 0, 0, 0, 0, 0, 0], vec![0; 7]].concat(),
        [stamp(0), vec![6, 0, 0, 0, 0, 0, 0, 0], many].concat(),
        [stamp(1), vec![2, 0, 0, 0, 0, 0, 0, 1]].concat(),
    ];
    for bytes in bad {
        let mut lone = Lone::open();
        let result = lone.session.handle_frame(C1, &bytes, lone.now);
        assert!(
            matches!(result, Err(SessionError::Malformed { .. })),
            "{bytes:?}"
        );
    }
}

proptest! {
    // docs/wire-sessions.md §20.3, §21.3: foreign bytes never panic, and an unproved answer ends no session
    #[test]
    fn no_bytes_panic_a_session(
        frames in prop::collection::vec(prop::collection::vec(prop_oneof![0..7_u8, any::<u8>()], 0..120), 0..40),
        dials: bool,
    ) {
        let mut lone = if dials { Lone::new() } else { Lone::open() };
        lone.keep(2);
        lone.outputs();
        lone.session.handle_dialled(1, C1, lone.now);
        for frame in frames {
            if let Ok(greeting) = Greeting::decode(&frame) {
                lone.session.handle_greeting(C2, &greeting, lone.now);
            }
            let _ = lone.session.handle_frame(C1, &frame, lone.now);
            lone.outputs();
        }
    }

    #[test]
    fn a_greeting_survives_the_wire(words: [u64; 3], bodies in prop::collection::btree_map(any::<u64>(), any::<u64>(), 0..50)) {
        let mut greeting = Lone::new().greeting();
        [greeting.connection, greeting.received_through, greeting.oldest_kept] = words;
        greeting.expected = bodies.into_iter().map(|(body, in_place)| Expected { body: BodyId(body), in_place }).collect();
        let bytes = SessionFrame::Greeting(greeting.clone()).to_vec();
        prop_assert_eq!(Greeting::decode(&bytes), Ok(greeting));
    }
}
