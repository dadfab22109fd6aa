use proptest::prelude::*;

use super::*;
use crate::boot::{Condition, MAX_PRESENT};

fn place() -> impl Strategy<Value = Place> {
    ("[a-z/.]{0,40}", any::<u32>()).prop_map(|(file, line)| Place { file, line })
}

fn operation() -> impl Strategy<Value = Operation> {
    ("\\PC{0,20}", any::<u64>(), "\\PC{0,20}").prop_map(|(group, number, name)| Operation {
        group,
        number,
        name,
    })
}

fn kind() -> impl Strategy<Value = Kind> {
    let all = [
        Kind::Message,
        Kind::Answer,
        Kind::Room,
        Kind::Group,
        Kind::Name,
        Kind::Memory,
        Kind::Other,
    ];
    prop::sample::select(all.to_vec())
}

fn wait() -> impl Strategy<Value = Wait> {
    (
        (kind(), "\\PC{0,60}", prop::collection::vec(0..20_u32, 0..5)),
        prop::option::of(place()),
        any::<u64>(),
        ("\\PC{0,12}", any::<bool>()),
        prop::option::of(operation()),
    )
        .prop_map(
            |((kind, what, whom), at, millis, (thread, serves), operation)| Wait {
                kind,
                what,
                whom,
                at,
                millis,
                thread,
                serves,
                operation,
            },
        )
}

fn present() -> impl Strategy<Value = Present> {
    let down = (0..20_u32, any::<u64>()).prop_map(|(rank, millis)| Down { rank, millis });
    (
        prop::collection::vec(wait(), 0..6),
        any::<u32>(),
        prop::collection::vec(down, 0..4),
    )
        .prop_map(|(waits, left_out, down)| Present {
            waits,
            left_out,
            down,
        })
}

proptest! {
    #[test]
    fn what_a_process_answers_comes_back(present in present()) {
        let bytes = present.encode();
        prop_assert_eq!(Present::decode(&bytes), Ok(present));
        for end in 0..bytes.len() {
            prop_assert!(Present::decode(&bytes[..end]).is_err());
        }
        prop_assert!(Present::decode(&[&bytes[..], &[0]].concat()).is_err());
    }

    #[test]
    fn foreign_bytes_are_refused_or_understood(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        if let Ok(present) = Present::decode(&bytes) {
            prop_assert_eq!(present.encode(), bytes);
        }
    }

    #[test]
    fn a_changed_byte_does_no_harm(present in present(), at: prop::sample::Index, value: u8) {
        let mut bytes = present.encode();
        let at = at.index(bytes.len());
        bytes[at] = value;
        if let Ok(changed) = Present::decode(&bytes) {
            prop_assert_eq!(changed.encode(), bytes);
        }
    }

    /// Whatever waits: everybody who waits for somebody that is there is held up by some end, or is part of one.
    #[test]
    fn everybody_who_waits_waits_for_an_end(answers in prop::collection::vec(present(), 1..20)) {
        let all: Vec<_> = (0..).zip(&answers).map(|(rank, present)| {
            Attendance::new(rank, Condition::Sleeps, Some(present.clone()))
        }).collect();
        let report = Report::of(&all);
        for one in &all {
            let is_told = report.ends.iter().any(|end| {
                end.ranks.contains(&one.rank) || end.held.contains(&one.rank)
            });
            prop_assert!(is_told || one.present.waits.is_empty(), "rank {}", one.rank);
            let is_shown = report.classes.iter().any(|class| class.ranks.contains(&one.rank));
            prop_assert!(is_shown, "rank {}", one.rank);
        }
        for pair in report.ends.windows(2) {
            let weight = |end: &End| end.held.len() + end.steps.len();
            prop_assert!(weight(&pair[0]) >= weight(&pair[1]));
        }
    }
}

#[test]
fn what_has_no_room_is_left_out_and_counted() {
    let long = Wait {
        what: "ä".repeat(400),
        at: Some(Place {
            file: "ö".repeat(300) + "end.rs",
            line: 1,
        }),
        whom: (0..100).collect(),
        ..waits_for(&[1], 1)
    };
    let present = Present {
        waits: vec![long; 200],
        ..Present::default()
    };
    let bytes = present.encode();
    assert!(bytes.len() <= MAX_PRESENT);
    let told = Present::decode(&bytes).unwrap();
    assert!(!told.waits.is_empty() && told.waits.len() <= MAX_WAITS);
    assert_eq!(told.waits.len() + told.left_out as usize, 200);
    let place = told.waits[0].at.clone().unwrap();
    assert!(
        place.file.ends_with("end.rs"),
        "the end of a path says more"
    );
    assert_eq!(told.waits[0].whom.len(), MAX_WHOM);
}

fn waits_for(whom: &[u32], line: u32) -> Wait {
    Wait {
        kind: Kind::Message,
        what: format!("for {whom:?}"),
        whom: whom.to_vec(),
        at: Some(Place {
            file: "main.rs".to_owned(),
            line,
        }),
        millis: 12_000,
        thread: "main".to_owned(),
        serves: false,
        operation: None,
    }
}

/// A rank that waits for these.
fn waiting(rank: u32, whom: &[u32], line: u32) -> Attendance {
    let present = Present {
        waits: vec![waits_for(whom, line)],
        ..Present::default()
    };
    Attendance::new(rank, Condition::Sleeps, Some(present))
}

fn with(rank: u32, condition: Condition) -> Attendance {
    Attendance::new(rank, condition, Some(Present::default()))
}

fn first(all: &[Attendance]) -> End {
    Report::of(all).ends.swap_remove(0)
}

#[test]
fn the_one_that_is_late_comes_first() {
    let all = [
        waiting(0, &[2], 5),
        waiting(1, &[2], 5),
        with(2, Condition::Computes),
        waiting(3, &[2], 5),
        with(4, Condition::Computes),
    ];
    let report = Report::of(&all);
    assert_eq!(report.longest, Some(12_000));
    let [end] = &report.ends[..] else {
        panic!("{report:?}")
    };
    assert_eq!(end.cause, Cause::Rank(Standing::Computes));
    assert_eq!((&end.ranks[..], &end.held[..]), (&[2][..], &[0, 1, 3][..]));
    let shown: Vec<_> = report
        .classes
        .iter()
        .map(|class| &class.ranks[..])
        .collect();
    assert_eq!(shown, [&[2, 4][..], &[0, 1, 3]]);
}

#[test]
fn the_end_of_a_chain_comes_first() {
    let all = [
        waiting(0, &[1], 1),
        waiting(1, &[2], 2),
        waiting(2, &[3], 3),
        Attendance::new(3, Condition::Stopped, None),
    ];
    let end = first(&all);
    assert_eq!(end.cause, Cause::Rank(Standing::Stopped));
    assert_eq!((&end.ranks[..], &end.held[..]), (&[3][..], &[0, 1, 2][..]));
    let classes = Report::of(&all).classes;
    let shown: Vec<u32> = classes.iter().map(|class| class.ranks[0]).collect();
    assert_eq!(shown, [3, 2, 1, 0], "from the end backwards");
}

#[test]
fn a_cycle_is_a_cycle() {
    let all = [
        waiting(0, &[1], 3),
        waiting(1, &[0], 9),
        waiting(2, &[1], 4),
    ];
    let end = first(&all);
    assert_eq!(end.cause, Cause::Cycle);
    assert_eq!((&end.ranks[..], &end.held[..]), (&[0, 1][..], &[2][..]));
    let lines: Vec<_> = end.steps.iter().map(|step| step.wait.at.clone()).collect();
    let lines: Vec<u32> = lines
        .into_iter()
        .flatten()
        .map(|place| place.line)
        .collect();
    assert_eq!(lines, [3, 9]);
}

#[test]
fn a_long_cycle_is_followed_all_the_way_round() {
    let size = 5000;
    let all: Vec<_> = (0..size)
        .map(|rank| waiting(rank, &[(rank + 1) % size], rank))
        .collect();
    let end = first(&all);
    assert_eq!((end.cause, end.ranks.len()), (Cause::Cycle, 5000));
    assert_eq!(end.steps.len(), 5000);
}

#[test]
fn a_session_that_is_down_is_blamed_and_not_its_ends() {
    let down = |rank| Down { rank, millis: 700 };
    let mut all = [
        waiting(0, &[1], 1),
        waiting(1, &[0], 2),
        waiting(2, &[0], 3),
    ];
    all[1].present.down.push(down(0));
    let end = first(&all);
    assert_eq!((end.cause, end.down), (Cause::Session, Some(700)));
    assert_eq!(
        (&end.ranks[..], &end.held[..]),
        (&[0, 1][..], &[0, 1, 2][..])
    );
    // One that stands still loses its connections.
    all[1] = Attendance::new(1, Condition::Stopped, None);
    all[0].present.down.push(down(1));
    assert_eq!(first(&all).cause, Cause::Rank(Standing::Stopped));
}

#[test]
fn those_who_wait_for_anybody_are_one() {
    let all = [waiting(0, &[], 4), waiting(1, &[], 4), waiting(2, &[], 4)];
    let report = Report::of(&all);
    assert_eq!(report.ends.len(), 1);
    assert_eq!(report.ends[0].ranks, [0, 1, 2]);
    assert_eq!(report.ends[0].cause, Cause::Rank(Standing::Waits));
}

#[test]
fn who_does_not_answer_is_told_as_what_its_host_sees() {
    let standing =
        |condition, present: Option<Present>| Attendance::new(0, condition, present).standing();
    let none = || Some(Present::default());
    assert_eq!(standing(Condition::Stopped, None), Standing::Stopped);
    assert_eq!(standing(Condition::Stopped, none()), Standing::Stopped);
    assert_eq!(standing(Condition::Stuck, None), Standing::Stuck);
    assert_eq!(standing(Condition::Computes, None), Standing::Silent);
    assert_eq!(standing(Condition::Computes, none()), Standing::Computes);
    assert_eq!(standing(Condition::Sleeps, none()), Standing::Sleeps);
    assert_eq!(standing(Condition::Ended, None), Standing::Left);
}

#[test]
fn nobody_waits_when_nobody_waits() {
    let report = Report::of(&[with(0, Condition::Computes), with(1, Condition::Computes)]);
    assert_eq!((report.longest, report.ends.len()), (None, 0));
    assert_eq!(report.classes[0].ranks, [0, 1]);
    assert_eq!(Report::of(&[]), Report::default());
}

#[test]
fn a_hang_is_like_itself_later() {
    let early = Report::of(&[waiting(0, &[1], 3), with(1, Condition::Computes)]);
    let mut late = [waiting(0, &[1], 3), with(1, Condition::Computes)];
    late[0].present.waits[0].millis = 24_000;
    assert!(early.is_like(&Report::of(&late)));
    late[1] = with(1, Condition::Sleeps);
    assert!(!early.is_like(&Report::of(&late)));
}

fn calls(whom: u32, line: u32) -> Wait {
    Wait {
        kind: Kind::Answer,
        ..waits_for(&[whom], line)
    }
}

/// A rank with these waits.
fn with_waits(rank: u32, condition: Condition, waits: Vec<Wait>) -> Attendance {
    let present = Present {
        waits,
        ..Present::default()
    };
    Attendance::new(rank, condition, Some(present))
}

#[test]
fn a_call_waits_for_who_serves_and_not_for_what_else_its_rank_does() {
    let all = [
        with_waits(0, Condition::Sleeps, vec![calls(1, 5)]),
        waiting(1, &[0], 7),
        waiting(2, &[0], 7),
    ];
    let end = first(&all);
    assert_eq!(end.cause, Cause::Service(Standing::Sleeps));
    assert_eq!((&end.ranks[..], &end.held[..]), (&[1][..], &[0, 1, 2][..]));
}

#[test]
fn a_service_that_waits_for_another_is_followed() {
    let serving = Wait {
        serves: true,
        ..calls(2, 9)
    };
    let all = [
        with_waits(0, Condition::Sleeps, vec![calls(1, 5)]),
        with_waits(1, Condition::Computes, vec![serving]),
        Attendance::new(2, Condition::Stopped, None),
    ];
    let end = first(&all);
    assert_eq!(end.cause, Cause::Rank(Standing::Stopped));
    assert_eq!((&end.ranks[..], &end.held[..]), (&[2][..], &[0, 1][..]));
}
