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
use mizzen_proto::membership::HostId;
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
    // All that is for the rank 1 goes to 3 as well, on the circuit that 3 has with the rank 0.
    let is_on = Arc::new(AtomicBool::new(false));
    let led = Arc::new(AtomicU64::new(0));
    let (count_of, circuit) = (Arc::clone(&led), AtomicU64::new(0));
    let lead = to_sealed(&is_on, move |_, header, contents| {
        if header.route.to == process(3) {
            circuit.store(header.circuit, Ordering::Relaxed);
        }
        let mut sent = vec![fragment(header, contents)];
        let known = circuit.load(Ordering::Relaxed);
        if header.route.to == process(1) && known != 0 {
            let route = Route {
                to: process(3),
                to_host: HostId(3),
                ..header.route
            };
            let circuit = known;
            let header = FragmentHeader {
                route,
                circuit,
                ..header
            };
            sent.push(fragment(header, contents));
            count_of.fetch_add(1, Ordering::Relaxed);
        }
        sent
    });
    // The first of two gateways in a row does it, and the second takes it there.
    let mut clusters = Clusters::hostile(2, lead);
    let mut drivers = [0, 1, 3].map(|rank| clusters.attach(id(rank)));
    link(&mut drivers);
    let at = drivers[2].locator().clone();
    drivers[0].connect(id(3), &at).expect("a good locator");
    until(&mut drivers, 0, |event| {
        matches!(event, Event::Connected { .. })
    });
    is_on.store(true, Ordering::Relaxed);
    let hello = [IoSlice::new(b"for three")];
    drivers[0].send_frame(id(3), &hello).expect("room");
    until(&mut drivers, 2, |event| {
        matches!(event, Event::Frame { .. })
    });
    let [zero, one, mut three] = drivers;
    let mut two = [zero, one];
    assert_eq!(count(&mut two, 100), (100, None));
    assert!(led.load(Ordering::Relaxed) >= 100);
    let mut look = |event: Event<'_>| assert!(!matches!(event, Event::Frame { .. }), "{event:?}");
    for _ in 0..50 {
        three.poll(64, &mut look).expect("a network that works");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// What is sent to whom instead of a flight with this number.
type Change = dyn Fn(PeerId, u64, &[u8]) -> Vec<Vec<u8>> + Send + Sync;

fn to_flights(change: Box<Change>) -> Deed {
    Arc::new(move |peer, bytes| match RelayFrame::decode(bytes) {
        Ok(RelayFrame::Fragment(header, contents)) => match Cover::decode(contents) {
            Some(Cover::Flight(_)) => {
                let changed = change(peer, header.number, contents).into_iter();
                let changed = changed.map(|contents| fragment(header, &contents));
                changed.collect()
            }
            _ => vec![bytes.to_vec()],
        },
        _ => vec![bytes.to_vec()],
    })
}

/// Dials through a gateway that does this to flights: why there is no link.
fn dial(change: Box<Change>) -> ConnectFailure {
    let mut clusters = Clusters::hostile(1, to_flights(change));
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

/// With one bit changed, near the end.
fn damaged(contents: &[u8]) -> Vec<u8> {
    let mut bytes = contents.to_vec();
    let at = bytes.len() - 9;
    bytes[at] ^= 1;
    bytes
}

#[test]
fn a_gateway_that_changes_a_greeting_or_an_answer_gets_no_link_made() {
    for victim in [id(1), id(0)] {
        let why = dial(Box::new(move |peer, _, contents| {
            let is_meant = peer == victim;
            vec![if is_meant {
                damaged(contents)
            } else {
                contents.to_vec()
            }]
        }));
        assert_eq!(why, ConnectFailure::Rejected, "{victim}");
    }
}

#[test]
fn a_gateway_that_changes_a_proof_gets_no_link_accepted() {
    let deed = to_flights(Box::new(|_, number, contents| {
        vec![match number {
            1 => damaged(contents),
            _ => contents.to_vec(),
        }]
    }));
    let mut clusters = Clusters::hostile(1, deed);
    let mut drivers = [0, 1].map(|rank| clusters.attach(id(rank)));
    link(&mut drivers);
    // Who dialled has proof of the other, and hears that its own was not taken.
    let [dialler, acceptor] = &mut drivers;
    let mut is_lost = false;
    let deadline = Instant::now() + Duration::from_secs(10);
    while !is_lost {
        assert!(Instant::now() < deadline, "waited in vain");
        let mut look = |event: Event<'_>| is_lost |= matches!(event, Event::Lost { .. });
        dialler.poll(64, &mut look).expect("a network that works");
        let mut nothing = |event: Event<'_>| panic!("{event:?}, though nothing was proved");
        acceptor
            .poll(64, &mut nothing)
            .expect("a network that works");
    }
}

#[test]
fn a_gateway_that_answers_itself_or_nothing_gets_no_link_made() {
    let why = dial(Box::new(|_, _, _| vec![]));
    assert_eq!(why, ConnectFailure::TimedOut, "nothing came");
    // It says to who dialled what that one has said itself.
    let greeting: Mutex<Vec<u8>> = Mutex::default();
    let why = dial(Box::new(move |peer, _, contents| {
        let mut greeting = greeting.lock().unwrap_or_else(PoisonError::into_inner);
        if peer == id(1) {
            *greeting = contents.to_vec();
            return vec![contents.to_vec()];
        }
        vec![greeting.clone()]
    }));
    assert_eq!(why, ConnectFailure::Rejected);
}

#[test]
fn what_a_gateway_makes_up_during_a_handshake_does_not_outlive_it() {
    // Before each flight, ones of other numbers, and contents that nobody sealed.
    let deed: Deed = Arc::new(|_, bytes| match RelayFrame::decode(bytes) {
        Ok(RelayFrame::Fragment(header, contents)) => {
            let mut sent = Vec::new();
            let is_flight = matches!(Cover::decode(contents), Some(Cover::Flight(_)));
            for number in 1..6_u64 {
                let number = header.number + number;
                let header = FragmentHeader { number, ..header };
                // The proof is number 1, and may not be taken from it.
                let is_proof = number == 1 && header.route.to == process(1);
                if is_flight && !is_proof {
                    sent.push(fragment(header, &[3]));
                    sent.push(fragment(header, &[3, 1, 2, 0, 9, 9]));
                    sent.push(fragment(header, b"\x01frame number 0 of those that count"));
                    sent.push(fragment(header, &[4; 40]));
                }
            }
            sent.push(bytes.to_vec());
            sent
        }
        _ => vec![bytes.to_vec()],
    });
    let mut clusters = Clusters::hostile(1, deed);
    let mut drivers = pair(&mut clusters);
    assert_eq!(count(&mut drivers, 200), (200, None));
}

#[test]
fn a_gateway_that_dials_in_anothers_name_holds_nobody_up_for_longer_than_it_is_there() {
    let is_on = Arc::new(AtomicBool::new(false));
    let lies = Arc::clone(&is_on);
    let deed: Deed = Arc::new(move |_, bytes| {
        let mut sent = vec![bytes.to_vec()];
        if !lies.load(Ordering::Relaxed) {
            return sent;
        }
        if let Ok(RelayFrame::Word(word)) = RelayFrame::decode(bytes) {
            let said = Said::Wanted { granted: 0 };
            let circuit = u64::MAX;
            let word = Word {
                said,
                circuit,
                ..word
            };
            sent.push(word.to_bytes().to_vec());
        }
        sent
    });
    let mut clusters = Clusters::hostile(1, deed);
    let mut drivers = pair(&mut clusters);
    is_on.store(true, Ordering::Relaxed);
    until(&mut drivers, 1, |event| matches!(event, Event::Lost { .. }));
    is_on.store(false, Ordering::Relaxed);
    // What it began comes to nothing, and nothing is remembered of it.
    let at = drivers[1].locator().clone();
    let deadline = Instant::now() + Duration::from_secs(20);
    let mut is_linked = false;
    while !is_linked {
        assert!(Instant::now() < deadline, "nobody links any more");
        // There may be one under way, or what is left of the last.
        let _ = drivers[0].connect(id(1), &at);
        let mut came = false;
        for (index, driver) in drivers.iter_mut().enumerate() {
            let mut look =
                |event: Event<'_>| came |= index == 0 && matches!(event, Event::Connected { .. });
            driver.poll(64, &mut look).expect("a network that works");
        }
        is_linked |= came;
        std::thread::sleep(Duration::from_micros(200));
    }
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
    // What comes is what was sent, until it ends; and nobody takes the other end for one that breaks rules.
    let (came, lost) = count(&mut drivers, 5_000_000);
    assert!(came > 0);
    assert!(
        matches!(lost, Some(LossReason::Broken(_) | LossReason::Closed)),
        "{lost:?}"
    );
}

#[test]
fn a_gateway_that_grants_what_nobody_granted_makes_no_end_misbehave() {
    // It holds one fragment back, and has the other end send all that follow.
    let deed: Deed = Arc::new(move |_, bytes| match RelayFrame::decode(bytes) {
        Ok(RelayFrame::Word(word)) => match word.said {
            Said::Open { dialled, progress } => {
                let granted = u64::MAX;
                let progress = Progress {
                    granted,
                    ..progress
                };
                let said = Said::Open { dialled, progress };
                vec![Word { said, ..word }.to_bytes().to_vec()]
            }
            _ => vec![bytes.to_vec()],
        },
        Ok(RelayFrame::Fragment(header, _)) if header.number == 30 => vec![],
        _ => vec![bytes.to_vec()],
    });
    let mut clusters = Clusters::hostile(1, deed);
    let mut drivers = pair(&mut clusters);
    let (came, lost) = count(&mut drivers, 5_000_000);
    assert!(came <= 30, "{came}");
    assert!(matches!(lost, Some(LossReason::Broken(_))), "{lost:?}");
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
    let is_on = Arc::new(AtomicBool::new(true));
    let phases: Arc<Mutex<BTreeMap<u64, u8>>> = Arc::default();
    let seen = Arc::clone(&phases);
    let deed = to_sealed(&is_on, move |_, header, contents| {
        if header.route.to == process(1) {
            let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen.insert(header.number, contents[0]);
        }
        vec![fragment(header, contents)]
    });
    let mut clusters = Clusters::striped_hostile(3, deed).sealed(50);
    let mut drivers = pair(&mut clusters);
    let replaced = || {
        let phases = phases.lock().unwrap_or_else(PoisonError::into_inner);
        let phases: Vec<u8> = phases.values().copied().collect();
        phases.windows(2).filter(|two| two[0] != two[1]).count()
    };
    // The other end says what it has after each quarter of its window: 4,096 fragments. How many keys that is depends on how
    // soon it is heard.
    for _ in 0..10 {
        assert_eq!(count(&mut drivers, 50_000), (50_000, None));
        if replaced() >= 5 {
            return;
        }
    }
    panic!("{} keys", replaced());
}

#[test]
fn many_who_begin_at_once_all_get_their_link() {
    // More than may be unproved at a time.
    let mut clusters = Clusters::new(1).sealed(u64::MAX);
    let mut acceptor = clusters.attach(id(1));
    let diallers = (0..100).map(|index| clusters.attach(id(2 * index)));
    let mut diallers: Vec<RelayedDriver> = diallers.collect();
    let at = acceptor.locator().clone();
    for dialler in &mut diallers {
        dialler.connect(id(1), &at).expect("a good locator");
    }
    let deadline = Instant::now() + Duration::from_secs(30);
    let mut linked = 0;
    while linked < 100 {
        assert!(Instant::now() < deadline, "{linked} have one");
        for dialler in &mut diallers {
            let mut look = |event: Event<'_>| match event {
                Event::Connected { .. } => linked += 1,
                other => panic!("{other:?}"),
            };
            dialler.poll(64, &mut look).expect("a network that works");
        }
        acceptor
            .poll(256, &mut |_| ())
            .expect("a network that works");
    }
}
