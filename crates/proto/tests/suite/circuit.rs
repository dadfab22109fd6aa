//! Circuits: what two processes have with each other through gateways, which drop and reorder.

use std::time::Duration;

use mizzen_proto::id::{Incarnation, ProcessId, Rank};
use mizzen_proto::membership::HostId;
use mizzen_proto::relay::{
    Broken, Circuit, Contents, Cover, FragmentHeader, GAP, Grant, KEEP_ALIVE, Lane, MOST_WINDOW,
    Overdrawn, PieceHeader, Progress, RelayFrame, Route, SILENT, Said, TAIL, Turn, Word,
    blocked_bytes, grant_bytes,
};
use mizzen_proto::time::Time;
use proptest::prelude::*;

const WINDOW: u64 = 1 << 20;
const LONG: usize = 60_000;
const MOMENT: Duration = Duration::from_nanos(1);

fn pair() -> [Circuit; 2] {
    let mut ends = [true, false].map(|dialled| Circuit::new(dialled, WINDOW, Time(0)));
    tell(&mut ends, 0, Time(0));
    tell(&mut ends, 1, Time(0));
    ends
}

/// One end says what it has to say, and the other hears it.
fn tell(ends: &mut [Circuit; 2], from: usize, now: Time) -> bool {
    let said = ends[from].poll_progress(now);
    if let Some(progress) = said {
        ends[1 - from].handle_progress(progress, now);
        grow(&mut ends[1 - from]);
    }
    said.is_some()
}

fn grow(end: &mut Circuit) {
    if end.wants_to_grow() {
        end.grow(u64::MAX);
    }
}

#[test]
fn an_end_sends_what_was_granted_and_no_more() {
    let mut ends = pair();
    let mut sent = 0;
    while ends[0].may_send(LONG) {
        ends[0].handle_sent(LONG, Time(1));
        sent += 1;
    }
    assert_eq!(sent, WINDOW / LONG as u64);
    for number in 0..sent {
        assert_eq!(
            ends[1].handle_fragment(number, LONG, Time(2)),
            Ok(Turn::Now)
        );
    }
    assert_eq!(ends[1].handle_fragment(sent, LONG, Time(2)), Err(Overdrawn));
    // A quarter is free: it is told at once.
    let mut ends = pair();
    for number in 0..6 {
        ends[1].handle_fragment(number, LONG, Time(2)).unwrap();
        ends[1].free(LONG);
    }
    assert!(tell(&mut ends, 1, Time(3)));
}

#[test]
fn short_fragments_need_a_place_as_well() {
    let mut ends = pair();
    let mut sent: u64 = 0;
    while ends[0].may_send(1) {
        ends[0].handle_sent(1, Time(1));
        sent += 1;
    }
    assert_eq!(sent, WINDOW / 256);
}

#[test]
fn what_is_missing_breaks_the_circuit_and_only_then() {
    // Later ones are here.
    let mut ends = pair();
    assert_eq!(ends[1].handle_fragment(1, 8, Time(5)), Ok(Turn::Later));
    assert_eq!(ends[1].broken(Time(4) + GAP), None);
    assert_eq!(ends[1].broken(Time(5) + GAP), Some(Broken::Missing));
    assert_eq!(ends[1].handle_fragment(0, 8, Time(6)), Ok(Turn::Now));
    ends[1].advance(Time(6));
    ends[1].handle_caught_up();
    assert_eq!(ends[1].broken(Time(6) + GAP), None);
    // The other end says that it has sent more.
    let mut ends = pair();
    ends[0].handle_sent(8, Time(7));
    let later = Time(7) + Duration::from_millis(200);
    assert!(tell(&mut ends, 0, later), "it asks what became of it");
    assert_eq!(ends[1].broken(later + (TAIL - MOMENT)), None);
    assert_eq!(ends[1].broken(later + TAIL), Some(Broken::Missing));
    assert_eq!(ends[1].handle_fragment(0, 8, later), Ok(Turn::Now));
    assert_eq!(ends[1].broken(later + TAIL), None);
    assert_eq!(ends[1].handle_fragment(0, 8, later), Ok(Turn::Past));
}

#[test]
fn who_is_silent_is_not_there_and_who_is_idle_is() {
    let mut ends = pair();
    assert_eq!(ends[0].broken(Time(0) + SILENT), Some(Broken::Silent));
    let mut now = Time(0);
    for _ in 0..20 {
        now = now + KEEP_ALIVE;
        assert!(tell(&mut ends, 0, now));
        tell(&mut ends, 1, now);
        assert_eq!((ends[0].broken(now), ends[1].broken(now)), (None, None));
    }
}

fn frame() -> impl Strategy<Value = Vec<u8>> {
    let process = any::<u64>().prop_map(ProcessId::from_u64);
    let route = (any::<[u32; 2]>(), process.clone(), process).prop_map(|(hosts, to, from)| Route {
        to_host: HostId(hosts[0]),
        to,
        from_host: HostId(hosts[1]),
        from,
    });
    let lane = prop_oneof![
        Just(Lane::Shared),
        Just(Lane::Last),
        (1..=8_u8).prop_map(Lane::Escape)
    ];
    let said = prop_oneof![
        (any::<bool>(), any::<[u64; 4]>()).prop_map(
            |(dialled, [sent, taken, granted, blocked])| {
                let progress = Progress {
                    sent,
                    taken,
                    granted,
                    blocked,
                };
                Said::Open { dialled, progress }
            }
        ),
        any::<u64>().prop_map(|granted| Said::Wanted { granted }),
        Just(Said::Closed),
        Just(Said::NoWay)
    ];
    let word = (route.clone(), any::<u8>(), any::<u64>(), said);
    let word = word.prop_map(|(route, hop, circuit, said)| {
        let word = Word {
            route,
            hop,
            circuit,
            said,
        };
        word.to_bytes().to_vec()
    });
    let fragment = (
        route,
        any::<u8>(),
        lane,
        any::<[u64; 2]>(),
        any::<Vec<u8>>(),
    );
    let fragment = fragment.prop_map(|(route, hop, lane, [circuit, number], contents)| {
        let header = FragmentHeader {
            route,
            hop,
            lane,
            circuit,
            number,
        };
        [&header.to_bytes()[..], &contents].concat()
    });
    let grant = (any::<u64>(), any::<[u64; 8]>()).prop_map(|(shared, escapes)| {
        let mut grant = Grant {
            shared,
            ..Grant::default()
        };
        grant.escapes[1..].copy_from_slice(&escapes);
        grant_bytes(&grant).to_vec()
    });
    let blocked = any::<u64>().prop_map(|granted| blocked_bytes(granted).to_vec());
    prop_oneof![word, fragment, grant, blocked]
}

fn encode(frame: &RelayFrame<'_>) -> Vec<u8> {
    match frame {
        RelayFrame::Grant(grant) => grant_bytes(grant).to_vec(),
        RelayFrame::Blocked(granted) => blocked_bytes(*granted).to_vec(),
        RelayFrame::Word(word) => word.to_bytes().to_vec(),
        RelayFrame::Fragment(header, contents) => [&header.to_bytes()[..], contents].concat(),
    }
}

proptest! {
    #[test]
    fn frames_come_back_as_they_went_and_there_is_one_form_of_each(bytes in frame(), at: prop::sample::Index, value: u8) {
        let decoded = RelayFrame::decode(&bytes);
        prop_assert_eq!(decoded.map(|frame| encode(&frame)), Ok(bytes.clone()));
        let mut changed = bytes;
        let at = at.index(changed.len());
        changed[at] = value;
        if let Ok(frame) = RelayFrame::decode(&changed) {
            prop_assert_eq!(encode(&frame), changed);
        }
    }

    #[test]
    fn anything_else_is_an_error_and_never_a_panic(bytes in any::<Vec<u8>>()) {
        if let Ok(frame) = RelayFrame::decode(&bytes) {
            prop_assert_eq!(encode(&frame), bytes.clone());
        }
        if let Some(Contents::Piece(header, piece)) = Contents::decode(&bytes) {
            prop_assert!(header.offset + piece.len() as u64 <= header.total);
        }
        if let Some(cover) = Cover::decode(&bytes) {
            let (Cover::Flight(inside) | Cover::Sealed { contents: inside, .. }) = cover;
            prop_assert_eq!([&cover.header()[..], inside].concat(), bytes.clone());
            prop_assert_eq!(Contents::decode(&bytes), None, "one never passes for the other");
        }
    }

    /// Whatever the order in which fragments come, and whichever words are lost, all are taken in order.
    #[test]
    fn everything_is_taken_in_order_whatever_comes_first(
        order in Just((0..40_u64).collect::<Vec<_>>()).prop_shuffle(),
        lost in proptest::collection::vec(any::<bool>(), 40),
    ) {
        let mut ends = pair();
        let mut early = std::collections::BTreeSet::new();
        let mut now = Time(1);
        for _ in &order {
            prop_assert!(ends[0].may_send(100));
            ends[0].handle_sent(100, now);
        }
        for (number, is_lost) in order.into_iter().zip(lost) {
            now = now + Duration::from_millis(10);
            if ends[1].handle_fragment(number, 100, now) == Ok(Turn::Later) {
                early.insert(number);
            }
            while early.remove(&ends[1].next()) {
                ends[1].advance(now);
            }
            if early.is_empty() {
                ends[1].handle_caught_up();
            }
            if !is_lost {
                tell(&mut ends, 0, now);
                tell(&mut ends, 1, now);
            }
        }
        prop_assert_eq!(ends[1].next(), 40);
        prop_assert_eq!(ends[1].broken(now), None);
    }

    #[test]
    fn pieces_come_back_as_they_went(body: u64, offset in 0..1_u64 << 40, bytes in any::<Vec<u8>>()) {
        let header = PieceHeader { body, offset, total: offset + bytes.len() as u64 };
        let encoded = [&header.to_bytes()[..], &bytes].concat();
        prop_assert_eq!(Contents::decode(&encoded), Some(Contents::Piece(header, &bytes)));
    }
}

#[test]
fn a_way_back_leads_back() {
    let process = |rank| ProcessId::new(Rank(rank), Incarnation(3));
    let route = Route {
        to_host: HostId(1),
        to: process(5),
        from_host: HostId(2),
        from: process(6),
    };
    assert_eq!(route.back().to, process(6));
    assert_eq!(route.back().back(), route);
    assert_ne!(route.flow(), route.back().flow());
}

#[test]
fn a_window_grows_with_the_length_of_the_way_and_not_with_what_lies_there() {
    let mut ends = pair();
    let mut windows = vec![];
    for round in 0..10 {
        let mut sent = 0;
        while ends[0].may_send(LONG) {
            ends[0].handle_sent(LONG, Time(round));
            sent += 1;
        }
        windows.push(sent * LONG as u64);
        assert!(ends[0].handle_blocked(), "it is new");
        assert!(!ends[0].handle_blocked(), "and then it is not");
        for _ in 0..sent {
            let next = ends[1].next();
            assert_eq!(
                ends[1].handle_fragment(next, LONG, Time(round)),
                Ok(Turn::Now)
            );
            ends[1].free(LONG);
        }
        assert!(tell(&mut ends, 0, Time(round)));
        assert!(tell(&mut ends, 1, Time(round)));
    }
    assert!(
        windows.windows(2).all(|pair| pair[1] >= pair[0]),
        "{windows:?}"
    );
    let last = *windows.last().unwrap();
    assert!(
        last <= MOST_WINDOW && last > MOST_WINDOW - 2 * LONG as u64,
        "{windows:?}"
    );

    // Nothing is freed: it is not the way.
    let mut ends = pair();
    while ends[0].may_send(LONG) {
        let number = ends[0].next_number();
        ends[0].handle_sent(LONG, Time(1));
        ends[1].handle_fragment(number, LONG, Time(1)).unwrap();
    }
    ends[0].handle_blocked();
    tell(&mut ends, 0, Time(1));
    tell(&mut ends, 1, Time(1));
    assert!(!ends[0].may_send(LONG));
    // Who says that it waits at what was not granted is believed once for each word that grants more.
    let lie = Progress {
        blocked: u64::MAX,
        ..Progress::default()
    };
    let mut end = Circuit::new(true, WINDOW, Time(0));
    end.poll_progress(Time(0));
    for _ in 0..20 {
        end.handle_progress(lie, Time(1));
        grow(&mut end);
    }
    let told = end.poll_progress(Time(1)).expect("it has more to give");
    assert_eq!(told.granted, 2 * WINDOW); // And there may be little left.
    let mut end = Circuit::new(true, WINDOW, Time(0));
    end.grow(1000);
    assert_eq!(end.more(), 1000);
    end.grow(0);
    let told = end.poll_progress(Time(1)).expect("it is new");
    assert_eq!(told.granted, WINDOW + 1000);
}
