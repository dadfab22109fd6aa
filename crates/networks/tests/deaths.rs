//! Gateways that die, and processes that do not keep the rules: what others see of it.

mod common;

use std::io::IoSlice;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use common::{Clusters, id, link, process, until};
use mizzen_driver::{Driver, Event, PeerId};
use mizzen_networks::{RelayedDriver, agent_id};
use mizzen_proto::membership::HostId;
use mizzen_proto::relay::{FragmentHeader, Lane, RelayFrame, Route, Said, Word};

/// The host of the gateway that a link goes through.
fn gateway_of(driver: &RelayedDriver, peer: PeerId) -> HostId {
    let text = driver.describe(peer).expect("a link");
    let host = text.rsplit(' ').next().and_then(|word| word.parse().ok());
    HostId(host.expect("a number"))
}

#[test]
fn when_a_gateway_dies_its_links_are_lost_and_another_leads_there() {
    let mut clusters = Clusters::beside(2);
    let mut drivers = [0, 1].map(|rank| clusters.attach(id(rank)));
    link(&mut drivers);
    let first = gateway_of(&drivers[0], id(1));
    assert_eq!(
        first,
        gateway_of(&drivers[1], id(0)),
        "both ways are the same"
    );
    clusters.kill(first);
    let start = Instant::now();
    until(&mut drivers, 1, |event| matches!(event, Event::Lost { .. }));
    assert!(
        start.elapsed() < Duration::from_secs(2),
        "{:?}",
        start.elapsed()
    );
    // The other end may have seen it meanwhile.
    drivers[0].disconnect(id(1));
    link(&mut drivers);
    assert_ne!(gateway_of(&drivers[0], id(1)), first);
    drivers[0]
        .send_frame(id(1), &[IoSlice::new(b"through the other")])
        .expect("room");
    until(&mut drivers, 1, |event| {
        matches!(
            event,
            Event::Frame {
                bytes: b"through the other",
                ..
            }
        )
    });
}

#[test]
fn a_gateway_that_leads_nowhere_is_not_tried_for_ever() {
    // Whichever of the two is preferred: once it has no link with the far end, the other is found.
    let mut clusters = Clusters::beside(2);
    let mut drivers = [0, 1].map(|rank| clusters.attach(id(rank)));
    link(&mut drivers);
    let first = gateway_of(&drivers[0], id(1));
    drivers[0].disconnect(id(1));
    until(&mut drivers, 1, |event| matches!(event, Event::Lost { .. }));
    // The far end loses it, and never hears of it again.
    let far = clusters.far_directory();
    far.set(first, None);
    for _ in 0..50 {
        for driver in &mut drivers {
            driver.poll(64, &mut |_| ()).expect("a network that works");
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    link(&mut drivers);
    assert_ne!(gateway_of(&drivers[0], id(1)), first);
}

/// Sends these frames to a gateway as process 0, bare: whether the gateway ends the link.
fn is_refused(frames: &[Vec<u8>]) -> (bool, Clusters) {
    let clusters = Clusters::new(1);
    let (network, mut driver) = clusters.bare(id(0));
    let at = clusters.at(0).at();
    let gateway = agent_id(at.agent);
    driver
        .connect(gateway, &at.at[&network])
        .expect("a gateway");
    let deadline = Instant::now() + Duration::from_secs(10);
    let (mut is_linked, mut is_lost) = (false, false);
    while !is_linked && Instant::now() < deadline {
        let mut look = |event: Event<'_>| is_linked |= matches!(event, Event::Connected { .. });
        driver.poll(64, &mut look).expect("a network that works");
    }
    assert!(is_linked);
    for frame in frames {
        // The link may be full, or ended, before the last.
        if driver.send_frame(gateway, &[IoSlice::new(frame)]).is_err() {
            break;
        }
    }
    let deadline = Instant::now() + Duration::from_millis(500);
    while !is_lost && Instant::now() < deadline {
        let mut look = |event: Event<'_>| is_lost |= matches!(event, Event::Lost { .. });
        driver.poll(64, &mut look).expect("a network that works");
    }
    (is_lost, clusters)
}

fn header() -> FragmentHeader {
    FragmentHeader {
        route: Route {
            to_host: HostId(1),
            to: process(1),
            from_host: HostId(0),
            from: process(0),
        },
        hop: 0,
        lane: Lane::Shared,
        circuit: 1,
        number: 0,
    }
}

fn fragment(header: FragmentHeader) -> Vec<u8> {
    [&header.to_bytes()[..], &[1; 1000]].concat()
}

#[test]
fn who_keeps_the_rules_keeps_the_link() {
    // To nobody, and so answered: it is no crime.
    let (is_refused, clusters) = is_refused(&vec![fragment(header()); 50]);
    assert!(!is_refused);
    assert_eq!(clusters.at(0).held(), 0);
}

#[test]
fn who_breaks_a_rule_loses_the_link_and_leaves_nothing() {
    let FragmentHeader { route, .. } = header();
    let forged = Route {
        from: process(4),
        ..route
    };
    let word = |route, hop| Word {
        route,
        hop,
        circuit: 1,
        said: Said::Closed,
    };
    let wrong = [
        b"nonsense".to_vec(),
        vec![],
        fragment(FragmentHeader {
            lane: Lane::Escape(5),
            ..header()
        }),
        fragment(FragmentHeader {
            lane: Lane::Last,
            ..header()
        }),
        fragment(FragmentHeader { hop: 1, ..header() }),
        fragment(FragmentHeader {
            route: forged,
            ..header()
        }),
        word(forged, 0).to_bytes().to_vec(),
        word(route, 1).to_bytes().to_vec(),
        [&fragment(header())[..], &[0; 65_536]].concat(),
    ];
    for frame in wrong {
        let length = frame.len();
        let first = frame.first().copied();
        let (is_refused, clusters) = is_refused(&vec![frame; 20]);
        assert!(is_refused, "{length} bytes that begin with {first:?}");
        assert_eq!(clusters.at(0).held(), 0, "{length}");
    }
}

#[test]
fn what_is_said_to_an_earlier_life_is_no_wish_for_a_circuit() {
    // What rank 0 says of the circuit that it dialled comes once more: to the next life of rank 1.
    let kept: Arc<Mutex<Option<Vec<u8>>>> = Arc::default();
    let old = Arc::clone(&kept);
    let deed = move |_, bytes: &[u8]| {
        let mut old = old.lock().unwrap_or_else(PoisonError::into_inner);
        let (to, said) = match RelayFrame::decode(bytes) {
            Ok(RelayFrame::Word(word)) => (word.route.to, word.said),
            _ => return vec![bytes.to_vec()],
        };
        match said {
            Said::Open { dialled: true, .. } if to == process(1) => {
                *old = Some(bytes.to_vec());
                vec![bytes.to_vec()]
            }
            Said::Open { dialled: false, .. } if to == process(1) => {
                old.take().into_iter().chain([bytes.to_vec()]).collect()
            }
            _ => vec![bytes.to_vec()],
        }
    };
    let mut clusters = Clusters::hostile(1, Arc::new(deed)).plain();
    let [first, second] = [0, 1].map(|rank| clusters.attach(id(rank)));
    let mut drivers = vec![first, second];
    link(&mut drivers);
    let say = |drivers: &mut [RelayedDriver], text: &[u8]| {
        let sent = drivers[1].send_frame(id(0), &[IoSlice::new(text)]);
        sent.expect("room");
        until(
            drivers,
            0,
            |event| matches!(event, Event::Frame { bytes, .. } if *bytes == text),
        );
    };
    say(&mut drivers, b"old");
    let is_kept = || {
        kept.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_some()
    };
    while !is_kept() {
        say(&mut drivers, b"old");
    }
    drop(drivers.pop());
    until(&mut drivers, 0, |event| matches!(event, Event::Lost { .. }));
    drivers.push(clusters.attach(id(1)));
    let at = drivers[0].locator().clone();
    drivers[1].connect(id(0), &at).expect("a good locator");
    until(&mut drivers, 1, |event| {
        matches!(event, Event::Connected { .. })
    });
    assert!(!is_kept(), "it was said to the next life");
    say(&mut drivers, b"new");
}
