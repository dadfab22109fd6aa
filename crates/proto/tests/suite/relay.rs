//! Gateways that hand on: turns, credits, what is dropped. Whole networks of them are in `crates/sim`.

use std::collections::BTreeMap;

use mizzen_proto::id::{Incarnation, ProcessId, Rank};
use mizzen_proto::membership::HostId;
use mizzen_proto::relay::{
    Action, Credit, Fate, FlowId, Gateway, Grant, Heading, Lane, LinkId, MOST_SHARED, Overdrawn,
    Peer, Reserve, STALL, Slot, Turns,
};
use mizzen_proto::route::{FRAGMENT, MAX_HOPS};
use mizzen_proto::time::Time;
use proptest::prelude::*;

const WHOLE: u32 = FRAGMENT as u32;

fn process(rank: u32) -> ProcessId {
    ProcessId::new(Rank(rank), Incarnation(0))
}

fn heading(job: u32, flow: u64, length: u32) -> Heading {
    Heading {
        flow: FlowId { job, flow },
        to: HostId(9),
        process: process(9),
        hop: 1,
        length,
    }
}

/// Bytes of each flow among the next so many fragments, if each flow always waits.
fn shares(flows: &[(u32, u64, u32)], fragments: usize) -> BTreeMap<(u32, u64), u64> {
    let mut turns = Turns::default();
    let mut bytes = BTreeMap::new();
    let mut slot = 0;
    for (job, flow, length) in flows {
        for _ in 0..2 {
            turns.push(heading(*job, *flow, *length), Slot(slot));
            slot += 1;
        }
        bytes.insert((*job, *flow), 0);
    }
    for _ in 0..fragments {
        let (number, next) = turns.whose().expect("all wait");
        turns.take(number).expect("it waits");
        let FlowId { job, flow } = next.flow;
        *bytes.entry((job, flow)).or_default() += u64::from(next.length);
        turns.push(next, Slot(slot));
        slot += 1;
    }
    bytes
}

proptest! {
    #[test]
    fn flows_of_a_job_get_the_same_bytes_whatever_their_lengths(lengths in proptest::collection::vec(1..=WHOLE, 2..9)) {
        let flows: Vec<_> = (0..).zip(&lengths).map(|(flow, length)| (0, flow, *length)).collect();
        let shares = shares(&flows, 4_000);
        let (least, most) = (shares.values().min(), shares.values().max());
        prop_assert!(most.unwrap() - least.unwrap() <= 3 * FRAGMENT, "{shares:?}");
    }

    #[test]
    fn what_is_granted_is_never_overdrawn_and_always_comes_back(
        steps in proptest::collection::vec((0..MAX_HOPS, 1..=WHOLE, any::<bool>()), 1..400),
        shared in 0..6_u64,
    ) {
        let mut reserve = Reserve::new(shared * FRAGMENT, MAX_HOPS);
        let mut credit = Credit::default();
        let mut held = Vec::new();
        for (hop, length, frees) in steps {
            credit.handle_grant(reserve.granted());
            if let Some(lane) = credit.take(hop, length) {
                prop_assert_eq!(reserve.handle_arrival(lane, hop + 1, length), Ok(()));
                held.push((lane, length));
                let bytes: u64 = held.iter().map(|(_, length)| u64::from(*length)).sum();
                prop_assert!(bytes <= reserve.size());
            } else {
                prop_assert!(!held.is_empty(), "nothing is held, and nothing may be sent");
            }
            if frees && !held.is_empty() {
                let (lane, length) = held.remove(0);
                reserve.free(lane, length);
            }
        }
        for (lane, length) in held {
            reserve.free(lane, length);
        }
        // Everything is free: one of each hop may come.
        credit.handle_grant(reserve.granted());
        for hop in 0..MAX_HOPS {
            prop_assert!(credit.take(hop, WHOLE).is_some());
        }
    }
}

#[test]
fn jobs_get_the_same_bytes_however_many_flows_they_have() {
    let mut flows = vec![(1, 0, WHOLE)];
    flows.extend((0..9).map(|flow| (2, flow, 1_000)));
    let shares = shares(&flows, 20_000);
    let of = |job| {
        shares
            .iter()
            .filter(|(key, _)| key.0 == job)
            .map(|(_, bytes)| bytes)
            .sum::<u64>()
    };
    assert!(
        of(1).abs_diff(of(2)) <= 3 * FRAGMENT,
        "{} and {}",
        of(1),
        of(2)
    );
}

#[test]
fn who_sends_what_was_not_granted_is_found_out() {
    let mut reserve = Reserve::new(0, 1);
    assert_eq!(reserve.handle_arrival(Lane::Shared, 1, 1), Err(Overdrawn));
    let mut reserve = Reserve::new(0, 1);
    assert_eq!(reserve.handle_arrival(Lane::Escape(1), 1, 7), Ok(()));
    assert_eq!(
        reserve.handle_arrival(Lane::Escape(1), 1, 7),
        Err(Overdrawn)
    );
    // The escape of another hop than it has, of none, of one that does not exist; what nobody granted; what is too long.
    for (lane, hop, length) in [
        (Lane::Escape(2), 1, 7),
        (Lane::Escape(0), 0, 7),
        (Lane::Escape(200), 200, 7),
        (Lane::Last, 1, 7),
        (Lane::Escape(1), 1, WHOLE + 1),
    ] {
        assert_eq!(
            Reserve::new(0, MAX_HOPS).handle_arrival(lane, hop, length),
            Err(Overdrawn),
            "{lane:?}"
        );
    }
}

const IN: LinkId = LinkId(1);
const OUT: LinkId = LinkId(2);

/// A gateway between host 1 and host 9.
fn between(pool: u64, shared: u64) -> Gateway {
    let mut gateway = Gateway::new(pool, shared);
    gateway
        .handle_link(IN, Peer::Gateway(HostId(1)), Time(0))
        .expect("there is room");
    gateway
        .handle_link(OUT, Peer::End(process(9)), Time(0))
        .expect("there is room");
    actions(&mut gateway);
    gateway
}

fn actions(gateway: &mut Gateway) -> Vec<Action> {
    std::iter::from_fn(|| gateway.poll_action()).collect()
}

fn direct(heading: &Heading) -> Option<HostId> {
    Some(heading.to)
}

#[test]
fn a_fragment_goes_on_at_once_and_its_credit_comes_back_when_its_buffer_is_free() {
    let mut gateway = between(100 * FRAGMENT, 4 * FRAGMENT);
    let fate = gateway.handle_fragment(
        IN,
        heading(0, 0, WHOLE),
        Lane::Shared,
        Slot(5),
        Time(1),
        direct,
    );
    assert_eq!(fate, Ok(Fate::Queued));
    let sent = Heading {
        hop: 2,
        ..heading(0, 0, WHOLE)
    };
    assert_eq!(
        actions(&mut gateway),
        [Action::Send(OUT, sent, Lane::Last, Slot(5))]
    );
    assert_eq!(gateway.held(), 1);
    gateway.handle_sent(OUT, Slot(5), Time(2));
    assert!(
        matches!(actions(&mut gateway)[..], [Action::Grant(IN, Grant { shared, .. })] if shared == 5 * FRAGMENT)
    );
    assert_eq!(gateway.held(), 0);
}

#[test]
fn memory_is_reserved_before_anything_is_granted() {
    let mut gateway = Gateway::new(12 * FRAGMENT, 4 * FRAGMENT);
    assert!(
        gateway
            .handle_link(LinkId(0), Peer::Gateway(HostId(1)), Time(0))
            .is_ok()
    );
    assert_eq!(gateway.reserved(), 12 * FRAGMENT);
    assert!(
        gateway
            .handle_link(LinkId(1), Peer::End(process(2)), Time(0))
            .is_err()
    );
    // With too little for all shared bytes there are fewer of them.
    let mut gateway = Gateway::new(9 * FRAGMENT, 4 * FRAGMENT);
    assert!(
        gateway
            .handle_link(LinkId(0), Peer::Gateway(HostId(1)), Time(0))
            .is_ok()
    );
    assert_eq!(gateway.reserved(), 9 * FRAGMENT);
}

#[test]
fn a_host_that_takes_nothing_is_cut_and_holds_up_nobody() {
    let mut gateway = between(100 * FRAGMENT, 16 * FRAGMENT);
    gateway
        .handle_link(LinkId(3), Peer::End(process(8)), Time(0))
        .expect("there is room");
    actions(&mut gateway);
    for slot in 0..8 {
        let fate = gateway.handle_fragment(
            IN,
            heading(0, 7, WHOLE),
            Lane::Shared,
            Slot(slot),
            Time(1),
            direct,
        );
        assert_eq!(fate, Ok(Fate::Queued));
    }
    let sent = actions(&mut gateway);
    assert_eq!(
        sent.len(),
        4,
        "the driver has what it may, the rest waits here: {sent:?}"
    );
    // Slow is not stopped.
    gateway.handle_moved(OUT, Time(2));
    gateway.handle_time(Time(1) + STALL);
    assert!(actions(&mut gateway).is_empty());
    gateway.handle_time(Time(2) + STALL);
    let told = actions(&mut gateway);
    let flow = FlowId { job: 0, flow: 7 };
    assert_eq!(
        told[..2],
        [Action::Stalled(flow, process(9)), Action::Cut(OUT)]
    );
    assert_eq!(
        told.iter()
            .filter(|action| matches!(action, Action::Free(_)))
            .count(),
        8
    );
    assert_eq!(gateway.held(), 0);
    // What its driver says later is nobody's business.
    gateway.handle_sent(OUT, Slot(0), Time(3));
    let other = Heading {
        to: HostId(8),
        process: process(8),
        ..heading(0, 6, 100)
    };
    assert_eq!(
        gateway.handle_fragment(IN, other, Lane::Shared, Slot(20), Time(3), direct),
        Ok(Fate::Queued)
    );
    assert!(matches!(
        actions(&mut gateway)[..],
        [Action::Send(LinkId(3), ..)]
    ));
}

#[test]
fn what_waited_for_a_lost_link_takes_another_way_or_is_dropped() {
    let mut gateway = Gateway::new(200 * FRAGMENT, 16 * FRAGMENT);
    for (link, peer) in [(1, 1), (2, 2), (3, 3)] {
        gateway
            .handle_link(LinkId(link), Peer::Gateway(HostId(peer)), Time(0))
            .expect("there is room");
    }
    actions(&mut gateway);
    // No credit towards 2 yet: they wait.
    let through_two = |_: &Heading| Some(HostId(2));
    for slot in 0..3 {
        let fate = gateway.handle_fragment(
            IN,
            heading(0, slot, 500),
            Lane::Shared,
            Slot(slot),
            Time(1),
            through_two,
        );
        assert_eq!(fate, Ok(Fate::Queued));
    }
    assert_eq!(actions(&mut gateway), [Action::Blocked(LinkId(2), 0)]);
    gateway.handle_grant(
        LinkId(3),
        Reserve::new(FRAGMENT, MAX_HOPS).granted(),
        Time(2),
    );
    let last = |heading: &Heading| (heading.flow.flow < 2).then_some(HostId(3));
    gateway.handle_lost(LinkId(2), Time(3), last);
    let done = actions(&mut gateway);
    assert_eq!(
        done.iter()
            .filter(|action| matches!(action, Action::Send(LinkId(3), ..)))
            .count(),
        2
    );
    assert!(done.contains(&Action::Free(Slot(2))), "{done:?}");
    assert_eq!(gateway.tally().no_way, 1);
}

#[test]
fn at_the_last_gateway_that_it_may_pass_only_its_end_is_left() {
    let mut gateway = between(100 * FRAGMENT, 4 * FRAGMENT);
    let far = Heading {
        hop: MAX_HOPS - 1,
        ..heading(0, 0, 10)
    };
    let fate = gateway.handle_fragment(IN, far, Lane::Shared, Slot(0), Time(1), direct);
    assert_eq!(fate, Ok(Fate::Queued));
    let through_one = |_: &Heading| Some(HostId(1));
    let fate = gateway.handle_fragment(IN, far, Lane::Shared, Slot(1), Time(1), through_one);
    assert_eq!(fate, Ok(Fate::TooFar));
    let further = Heading { hop: 250, ..far };
    let fate = gateway.handle_fragment(IN, further, Lane::Shared, Slot(2), Time(1), direct);
    assert_eq!(fate, Ok(Fate::TooFar));
    let fate = gateway.handle_fragment(
        IN,
        heading(0, 0, 10),
        Lane::Shared,
        Slot(3),
        Time(1),
        |_| None,
    );
    assert_eq!(fate, Ok(Fate::NoWay));
}

/// What a gateway says to another that grants, over a way of this many fragments, until it has said all; the shared bytes in the end.
fn over_a_way(length: usize, lies_there: bool) -> u64 {
    let mut reserve = Reserve::new(4 * FRAGMENT, MAX_HOPS);
    let mut credit = Credit::default();
    let mut way: std::collections::VecDeque<Option<Lane>> = vec![None; length].into();
    let mut grants: std::collections::VecDeque<Grant> = vec![*reserve.granted(); length].into();
    let mut blocked = 0;
    let mut heard: std::collections::VecDeque<u64> = vec![0; length].into();
    let mut lies = Vec::new();
    for _ in 0..length * 40 {
        // One fragment in each step, if it may.
        credit.handle_grant(&grants.pop_front().expect("one in each step"));
        let lane = match credit.has_shared(WHOLE) {
            true => credit.take(1, WHOLE),
            false => None,
        };
        if lane.is_none() {
            blocked = credit.granted();
        }
        way.push_back(lane);
        heard.push_back(blocked);
        if let Some(lane) = way.pop_front().flatten() {
            assert_eq!(reserve.handle_arrival(lane, 2, WHOLE), Ok(()));
            lies.push(lane);
        }
        if !lies_there {
            lies.drain(..).for_each(|lane| reserve.free(lane, WHOLE));
        }
        reserve.handle_blocked(heard.pop_front().expect("one in each step"), u64::MAX);
        grants.push_back(*reserve.granted());
    }
    reserve.shared()
}

#[test]
fn a_link_gets_as_much_room_as_its_way_is_long_and_no_more() {
    for length in [1, 10, 100] {
        let shared = over_a_way(length, false) / FRAGMENT;
        // A round trip is two ways.
        let needed = 2 * length as u64;
        assert!(shared >= needed, "{shared} for {needed}");
        assert!(shared <= (2 * needed).max(4), "{shared} for {needed}");
    }
    assert_eq!(over_a_way(10, true), 4 * FRAGMENT, "nobody takes it there");
}

#[test]
fn a_link_gets_no_more_room_than_there_is() {
    let mut reserve = Reserve::new(FRAGMENT, MAX_HOPS);
    let told = reserve.granted().shared;
    assert!(
        !reserve.handle_blocked(told - 1, u64::MAX),
        "it had more since"
    );
    assert!(
        !reserve.handle_blocked(told + 1, u64::MAX),
        "nobody granted that"
    );
    assert!(!reserve.handle_blocked(told, 0));
    assert!(reserve.handle_blocked(told, 100));
    assert_eq!(reserve.shared(), FRAGMENT + 100);
    assert_eq!(reserve.size(), (1 + u64::from(MAX_HOPS)) * FRAGMENT + 100);
    assert!(
        !reserve.handle_blocked(told, u64::MAX),
        "it has not used that"
    );
    while reserve.handle_blocked(reserve.granted().shared, u64::MAX) {}
    assert_eq!(reserve.shared(), MOST_SHARED);

    // Half of a gateway's memory is for links that are yet to come; processes have enough.
    let mut gateway = Gateway::new(23 * FRAGMENT, 4 * FRAGMENT);
    for (link, peer) in [(0, Peer::Gateway(HostId(1))), (1, Peer::End(process(2)))] {
        gateway
            .handle_link(LinkId(link), peer, Time(0))
            .expect("there is room");
    }
    actions(&mut gateway);
    let reserved = gateway.reserved();
    gateway.handle_blocked(LinkId(1), 4 * FRAGMENT);
    assert_eq!(gateway.reserved(), reserved);
    gateway.handle_blocked(LinkId(0), 4 * FRAGMENT);
    // 17 were reserved, and of the other 6 it gets 3.
    assert_eq!(gateway.reserved(), 20 * FRAGMENT);
    assert!(matches!(
        actions(&mut gateway)[..],
        [Action::Grant(LinkId(0), _)]
    ));
}

#[test]
fn who_waits_for_a_grant_says_so_once() {
    let mut gateway = Gateway::new(100 * FRAGMENT, 4 * FRAGMENT);
    for (link, peer) in [(1, 1), (2, 2)] {
        gateway
            .handle_link(LinkId(link), Peer::Gateway(HostId(peer)), Time(0))
            .expect("there is room");
    }
    let grant = Grant {
        shared: FRAGMENT,
        ..Grant::default()
    };
    gateway.handle_grant(LinkId(2), &grant, Time(0));
    actions(&mut gateway);
    let mut said = Vec::new();
    for slot in 0..3 {
        let through_two = |_: &Heading| Some(HostId(2));
        gateway
            .handle_fragment(
                IN,
                heading(0, 0, WHOLE),
                Lane::Shared,
                Slot(slot),
                Time(1),
                through_two,
            )
            .expect("it was granted");
        said.extend(actions(&mut gateway));
    }
    assert!(
        matches!(
            said[..],
            [Action::Send(OUT, ..), Action::Blocked(OUT, FRAGMENT)]
        ),
        "{said:?}"
    );
}

#[test]
fn short_fragments_wait_for_no_long_ones_and_long_ones_go_where_there_is_least() {
    let mut gateway = Gateway::new(400 * FRAGMENT, 16 * FRAGMENT);
    let peer = Peer::Gateway(HostId(1));
    for link in 1..=3 {
        gateway
            .handle_link(LinkId(link), peer, Time(0))
            .expect("there is room");
        let grant = *Reserve::new(16 * FRAGMENT, MAX_HOPS).granted();
        gateway.handle_grant(LinkId(link), &grant, Time(0));
    }
    gateway
        .handle_link(LinkId(9), Peer::Gateway(HostId(7)), Time(0))
        .expect("there is room");
    actions(&mut gateway);
    let mut taken = Vec::new();
    for (slot, length) in (0..).zip([WHOLE, WHOLE, 100, WHOLE, 100, WHOLE]) {
        let through_one = |_: &Heading| Some(HostId(1));
        gateway
            .handle_fragment(
                LinkId(9),
                heading(0, 0, length),
                Lane::Shared,
                Slot(slot),
                Time(1),
                through_one,
            )
            .expect("it was granted");
        taken.extend(
            actions(&mut gateway)
                .into_iter()
                .filter_map(|action| match action {
                    Action::Send(LinkId(link), ..) => Some(link),
                    _ => None,
                }),
        );
    }
    assert_eq!(taken, [2, 3, 1, 2, 1, 3]);
    // Where nothing waits they take turns.
    for slot in 0..6 {
        let link = LinkId(taken[slot as usize]);
        gateway.handle_sent(link, Slot(slot), Time(1));
    }
    actions(&mut gateway);
    let mut turns = Vec::new();
    for slot in 10..14 {
        let through_one = |_: &Heading| Some(HostId(1));
        gateway
            .handle_fragment(
                LinkId(9),
                heading(0, 0, WHOLE),
                Lane::Shared,
                Slot(slot),
                Time(1),
                through_one,
            )
            .expect("it was granted");
        for action in actions(&mut gateway) {
            if let Action::Send(LinkId(link), ..) = action {
                turns.push(link);
                gateway.handle_sent(LinkId(link), Slot(slot), Time(1));
            }
        }
    }
    assert_eq!(turns, [2, 3, 2, 3]);
    // What is lost is not chosen.
    gateway.handle_lost(LinkId(3), Time(2), |_| Some(HostId(1)));
    gateway.handle_lost(LinkId(1), Time(2), |_| Some(HostId(1)));
    assert_eq!(gateway.link_to(peer, 1), Some(LinkId(2)));
    assert_eq!(gateway.link_to(peer, WHOLE), Some(LinkId(2)));
}
