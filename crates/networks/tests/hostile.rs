//! Gateways that do not keep their word, between processes that seal: they may hold things up, and nothing else.

mod common;

use std::collections::BTreeMap;
use std::io::{ErrorKind, IoSlice};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use common::hostile::Deed;
use common::{Clusters, id, link, process, until};
use mizzen_driver::{ConnectFailure, Driver, Event, LossReason, PeerId, Refused};
use mizzen_networks::RelayedDriver;
use mizzen_proto::relay::{
    Cover, FRAME_HEADER, FragmentHeader, Progress, RelayFrame, Route, Said, Word,
};

/// A deed that is done to sealed fragments only, and from when it is told to.
fn to_sealed(
    is_on: &Arc<AtomicBool>,
    deed: impl Fn(PeerId, FragmentHeader, &[u8]) -> Vec<Vec<u8>> + Send + Sync + 'static,
) -> Deed {
    let is_on = Arc::clone(is_on);
    Arc::new(move |peer, bytes| match RelayFrame::decode(bytes) {
        Ok(RelayFrame::Fragment(header, contents)) if is_on.load(Ordering::Relaxed) => {
            match Cover::decode(contents) {
                Some(Cover::Sealed { .. }) => deed(peer, header, contents),
                _ => vec![bytes.to_vec()],
            }
        }
        _ => vec![bytes.to_vec()],
    })
}

fn fragment(header: FragmentHeader, contents: &[u8]) -> Vec<u8> {
    [&header.to_bytes()[..], contents].concat()
}

fn pair(clusters: &mut Clusters) -> [RelayedDriver; 2] {
    let mut drivers = [0, 1].map(|rank| clusters.attach(id(rank)));
    link(&mut drivers);
    drivers
}

/// Sends numbered frames from the first to the second, which must come once each and in order; the link may end before. How many came, and how it ended.
fn count(drivers: &mut [RelayedDriver; 2], frames: u64) -> (u64, Option<LossReason>) {
    let (mut sent, mut came, mut lost) = (0_u64, 0_u64, None);
    let deadline = Instant::now() + Duration::from_secs(30);
    while came < frames && lost.is_none() {
        assert!(Instant::now() < deadline, "{came} of {frames} came");
        while sent < frames {
            let text = format!("frame number {sent} of those that count");
            match drivers[0].send_frame(id(1), &[IoSlice::new(text.as_bytes())]) {
                Ok(()) => sent += 1,
                Err(Refused::Busy { .. } | Refused::NotConnected { .. }) => break,
                Err(error) => panic!("{error}"),
            }
        }
        let [from, to] = drivers;
        let mut look = |event: Event<'_>| match event {
            Event::Frame { bytes, .. } => {
                let wanted = format!("frame number {came} of those that count");
                assert_eq!(bytes, wanted.as_bytes(), "what came was not what is next");
                came += 1;
            }
            Event::Lost { reason, .. } => lost = Some(reason),
            _ => {}
        };
        to.poll(64, &mut look).expect("a network that works");
        from.poll(64, &mut |_| ()).expect("a network that works");
    }
    (came, lost)
}

#[test]
fn what_a_gateway_changes_is_not_taken_and_the_link_says_so() {
    let is_on = Arc::new(AtomicBool::new(false));
    let changed = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&changed);
    let deed = to_sealed(&is_on, move |_, header, contents| {
        let mut bytes = fragment(header, contents);
        if header.number == 20 {
            let last = bytes.len() - 1;
            bytes[last / 2 + 25] ^= 1;
            counted.fetch_add(1, Ordering::Relaxed);
        }
        vec![bytes]
    });
    let mut clusters = Clusters::hostile(1, deed);
    let mut drivers = pair(&mut clusters);
    is_on.store(true, Ordering::Relaxed);
    let (came, lost) = count(&mut drivers, 1000);
    assert_eq!(changed.load(Ordering::Relaxed), 1);
    assert!(came < 20, "{came}");
    assert_eq!(lost, Some(LossReason::Broken(ErrorKind::InvalidData)));
}

#[test]
fn what_a_gateway_sends_again_is_taken_once() {
    let is_on = Arc::new(AtomicBool::new(true));
    let kept: Mutex<BTreeMap<PeerId, Vec<Vec<u8>>>> = Mutex::default();
    let deed = to_sealed(&is_on, move |peer, header, contents| {
        let bytes = fragment(header, contents);
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        let old = kept.entry(peer).or_default();
        let mut sent = vec![bytes.clone(), bytes.clone()];
        sent.extend(old.get(old.len() / 2).cloned());
        old.push(bytes);
        sent
    });
    let mut clusters = Clusters::hostile(1, deed);
    let mut drivers = pair(&mut clusters);
    assert_eq!(count(&mut drivers, 300), (300, None));
}

#[test]
fn what_a_gateway_brings_in_another_order_is_put_in_order() {
    let is_on = Arc::new(AtomicBool::new(true));
    let held: Mutex<BTreeMap<PeerId, Vec<u8>>> = Mutex::default();
    let deed = to_sealed(&is_on, move |peer, header, contents| {
        let bytes = fragment(header, contents);
        let mut held = held.lock().unwrap_or_else(PoisonError::into_inner);
        match held.remove(&peer) {
            None if header.number % 3 == 0 => {
                held.insert(peer, bytes);
                vec![]
            }
            None => vec![bytes],
            Some(before) => vec![bytes, before],
        }
    });
    let mut clusters = Clusters::hostile(1, deed);
    let mut drivers = pair(&mut clusters);
    // Two flights came before: the last fragment is number 301, which is not held.
    assert_eq!(count(&mut drivers, 300), (300, None));
}

#[test]
fn what_a_gateway_reads_says_nothing() {
    let seen: Arc<Mutex<Vec<u8>>> = Arc::default();
    let read = |seen: &Arc<Mutex<Vec<u8>>>| -> Deed {
        let seen = Arc::clone(seen);
        Arc::new(move |_, bytes| {
            let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen.extend_from_slice(bytes);
            vec![bytes.to_vec()]
        })
    };
    let has = |wanted: &[u8]| {
        let seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(seen.len() > 10_000, "it saw {} bytes", seen.len());
        seen.windows(wanted.len()).any(|window| window == wanted)
    };
    let mut clusters = Clusters::hostile(2, read(&seen));
    let mut drivers = pair(&mut clusters);
    assert_eq!(count(&mut drivers, 200), (200, None));
    let text = drivers[0].describe(id(1)).expect("a link");
    assert!(text.starts_with("sealed end to end"), "{text}");
    assert!(!has(b"of those that count"));
    assert!(!has(b"mizzen://"), "nor whose certificates are shown");
    // The same without a seal: so it is worth looking.
    seen.lock().unwrap_or_else(PoisonError::into_inner).clear();
    let mut clusters = Clusters::hostile(2, read(&seen)).plain();
    let mut drivers = pair(&mut clusters);
    assert_eq!(count(&mut drivers, 200), (200, None));
    assert!(has(b"of those that count"));
}

#[test]
fn what_a_gateway_makes_up_is_not_taken() {
    // As a frame that is not sealed, as one sealed with other keys, as a flight; with the next number, and with a later one.
    let is_on = Arc::new(AtomicBool::new(true));
    let deed = to_sealed(&is_on, |_, header, contents| {
        let later = FragmentHeader {
            number: header.number + 7,
            ..header
        };
        let plain = [&FRAME_HEADER[..], b"frame number 5 of those that count"].concat();
        let sealed = [&[4][..], &[0x5a; 60]].concat();
        let odd = [&[5][..], &[0x5a; 60]].concat();
        let flight = [&[3][..], &[0, 1, 0, 0]].concat();
        let mut sent = Vec::new();
        for made_up in [plain, sealed, odd, flight, vec![], vec![9; 50]] {
            sent.push(fragment(header, &made_up));
            sent.push(fragment(later, &made_up));
        }
        sent.push(fragment(header, contents));
        sent
    });
    let mut clusters = Clusters::hostile(1, deed);
    let mut drivers = pair(&mut clusters);
    assert_eq!(count(&mut drivers, 200), (200, None));
}

#[test]
fn what_a_gateway_puts_in_another_place_is_not_taken() {
    // Under another number, of another circuit, as another phase.
    let is_on = Arc::new(AtomicBool::new(true));
    let deed = to_sealed(&is_on, |_, header, contents| {
        let number = FragmentHeader {
            number: header.number + 1,
            ..header
        };
        let circuit = FragmentHeader {
            circuit: header.circuit + 1,
            ..header
        };
        let mut other_phase = contents.to_vec();
        other_phase[0] ^= 1;
        vec![
            fragment(number, contents),
            fragment(header, &other_phase),
            fragment(header, contents),
            fragment(circuit, contents),
        ]
    });
    let mut clusters = Clusters::hostile(1, deed);
    let mut drivers = pair(&mut clusters);
    assert_eq!(count(&mut drivers, 200), (200, None));
}

#[test]
fn what_a_gateway_leads_to_somebody_else_is_not_taken_there() {
    // All that is for the rank 1 goes to 3 as well, which is on the same network, and has a link with 0, too.
    let is_on = Arc::new(AtomicBool::new(false));
    let deed = to_sealed(&is_on, |_, header, contents| {
        let route = Route {
            to: process(3),
            to_host: mizzen_proto::membership::HostId(3),
            ..header.route
        };
        vec![
            fragment(FragmentHeader { route, ..header }, contents),
            fragment(header, contents),
        ]
    });
    // The first of two gateways in a row does it, and the second takes it there.
    let mut clusters = Clusters::hostile(2, deed);
    let mut drivers = [0, 1, 3].map(|rank| clusters.attach(id(rank)));
    link(&mut drivers);
    let at = drivers[2].locator().clone();
    drivers[0].connect(id(3), &at).expect("a good locator");
    until(&mut drivers, 0, |event| {
        matches!(event, Event::Connected { .. })
    });
    is_on.store(true, Ordering::Relaxed);
    let [zero, one, mut three] = drivers;
    let mut two = [zero, one];
    assert_eq!(count(&mut two, 100), (100, None));
    let mut look = |event: Event<'_>| assert!(!matches!(event, Event::Frame { .. }), "{event:?}");
    for _ in 0..50 {
        three.poll(64, &mut look).expect("a network that works");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Dials through gateways that do this to flights: why there is no link.
fn dial(change: impl Fn(u64, &[u8]) -> Vec<Vec<u8>> + Send + Sync + 'static) -> ConnectFailure {
    let deed: Deed = Arc::new(move |_, bytes| match RelayFrame::decode(bytes) {
        Ok(RelayFrame::Fragment(header, contents)) => match Cover::decode(contents) {
            Some(Cover::Flight(_)) => {
                let changed = change(header.number, contents).into_iter();
                let changed = changed.map(|contents| fragment(header, &contents));
                changed.collect()
            }
            _ => vec![bytes.to_vec()],
        },
        _ => vec![bytes.to_vec()],
    });
    let mut clusters = Clusters::hostile(1, deed);
    let mut drivers = [0, 1].map(|rank| clusters.attach(id(rank)));
    let at = drivers[1].locator().clone();
    drivers[0].connect(id(1), &at).expect("a good locator");
    let mut why = None;
    until(&mut drivers, 0, |event| match event {
        Event::ConnectFailed { reason, .. } => {
            why = Some(*reason);
            true
        }
        Event::Connected { .. } => panic!("a link, though nobody proved anything"),
        _ => false,
    });
    why.expect("a reason")
}

#[test]
fn a_gateway_that_changes_a_handshake_gets_no_link_made() {
    // Of the answer and of the proof, the last byte: what is there belongs to a signature, or to what holds all together.
    let changed = |number: u64, contents: &[u8]| {
        let mut bytes = contents.to_vec();
        if number == 0 {
            let last = bytes.len() - 1;
            bytes[last] ^= 1;
        }
        vec![bytes]
    };
    let why = dial(changed);
    assert!(
        matches!(why, ConnectFailure::Rejected | ConnectFailure::TimedOut),
        "{why}"
    );
}

#[test]
fn a_gateway_that_answers_itself_gets_no_link_made() {
    // It says to each what it has said itself.
    let why = dial(|_, contents| vec![contents.to_vec(), contents.to_vec()].split_off(2));
    assert_eq!(why, ConnectFailure::TimedOut, "nothing came");
    let why = dial(|_, _| vec![vec![3, 0, 4, 0, 2, 0, 0, 0]]);
    assert!(
        matches!(why, ConnectFailure::Rejected | ConnectFailure::TimedOut),
        "{why}"
    );
}

#[test]
fn a_gateway_that_lies_about_how_far_the_ends_are_breaks_links_and_nothing_else() {
    let is_on = Arc::new(AtomicBool::new(false));
    let lies = Arc::clone(&is_on);
    let deed: Deed = Arc::new(move |_, bytes| match RelayFrame::decode(bytes) {
        Ok(RelayFrame::Word(word)) if lies.load(Ordering::Relaxed) => match word.said {
            Said::Open { dialled, .. } => {
                let progress = Progress {
                    sent: 1 << 40,
                    taken: u64::MAX,
                    granted: u64::MAX,
                    blocked: u64::MAX,
                };
                let said = Said::Open { dialled, progress };
                vec![Word { said, ..word }.to_bytes().to_vec()]
            }
            _ => vec![bytes.to_vec()],
        },
        _ => vec![bytes.to_vec()],
    });
    let mut clusters = Clusters::hostile(1, deed);
    let mut drivers = pair(&mut clusters);
    is_on.store(true, Ordering::Relaxed);
    // What comes is what was sent, until it ends.
    let (came, lost) = count(&mut drivers, 5_000_000);
    assert!(came > 0);
    assert!(lost.is_some());
}

#[test]
fn a_gateway_that_floods_takes_nobody_elses_place() {
    let is_on = Arc::new(AtomicBool::new(true));
    let deed = to_sealed(&is_on, |_, header, contents| {
        let mut sent = vec![fragment(header, contents)];
        for more in 0..20 {
            let header = FragmentHeader {
                number: header.number + 100_000 + more,
                ..header
            };
            sent.push(fragment(header, &[4; 2000]));
        }
        sent
    });
    let mut clusters = Clusters::hostile(1, deed);
    let mut drivers = pair(&mut clusters);
    assert_eq!(count(&mut drivers, 2000), (2000, None));
}

#[test]
fn keys_are_replaced_under_load_and_nothing_is_lost() {
    // Over three connections, so that fragments of two keys overtake each other.
    let mut clusters = Clusters::striped(3).sealed(50);
    let mut drivers = pair(&mut clusters);
    assert_eq!(count(&mut drivers, 20_000), (20_000, None));
}
