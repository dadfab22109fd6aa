//! Ways through clusters of clusters, on random ones: whoever can be reached is, without a loop.

use std::collections::BTreeSet;

use mizzen_proto::membership::HostId;
use mizzen_proto::route::{Cost, Hosts, MAX_HOPS, Part, Plan, Table};
use proptest::prelude::*;
use std::time::Duration;

fn part(hosts: impl IntoIterator<Item = u32>, microseconds: u64) -> Part {
    Part {
        hosts: hosts.into_iter().map(HostId).collect(),
        cost: Cost {
            latency: Duration::from_micros(microseconds),
            ..Cost::default()
        },
    }
}

/// The hosts through which something gets from one to the other, each by its own table. None, if it was dropped.
fn walk(plan: &Plan, tables: &[Table], from: HostId, to: HostId, flow: u64) -> Option<Vec<HostId>> {
    let (mut here, mut passed) = (from, Vec::new());
    while here != to {
        if passed.len() > usize::from(MAX_HOPS) {
            return None;
        }
        here = tables[here.0 as usize].next(plan, to, flow)?.to;
        passed.push(here);
    }
    Some(passed)
}

fn tables(plan: &Plan, hosts: u32, gone: &BTreeSet<HostId>) -> Vec<Table> {
    let table = |host| Table::new(plan, HostId(host), |host| gone.contains(&host));
    (0..hosts).map(table).collect()
}

/// Gateways between two hosts, at least: by looking at all of them.
fn fewest(
    plan: &Plan,
    gone: &BTreeSet<HostId>,
    from: HostId,
    to: HostId,
    hosts: u32,
) -> Option<usize> {
    let near = |one: HostId, two: HostId| {
        plan.parts_of(one)
            .any(|part| plan.parts()[part].hosts.contains(two))
    };
    let mut reached = vec![from];
    let mut edge = vec![from];
    for steps in 0.. {
        if edge.iter().any(|host| near(*host, to)) {
            return Some(steps);
        }
        let all = (0..hosts).map(HostId);
        let next: Vec<HostId> = all
            .filter(|host| !reached.contains(host) && !gone.contains(host))
            .filter(|host| edge.iter().any(|edge| near(*edge, *host)))
            .collect();
        if next.is_empty() {
            return None;
        }
        reached.extend(&next);
        edge = next;
    }
    None
}

const HOSTS: u32 = 24;

/// Parts of random hosts, and hosts that are gone.
fn world() -> impl Strategy<Value = (Vec<Part>, BTreeSet<HostId>)> {
    let hosts = || proptest::collection::btree_set(0..HOSTS, 1..6);
    let one = (hosts(), 1..50_u64).prop_map(|(hosts, cost)| part(hosts, cost));
    let gone = proptest::collection::btree_set((0..HOSTS).prop_map(HostId), 0..4);
    (proptest::collection::vec(one, 1..14), gone)
}

proptest! {
    #[test]
    fn whoever_can_be_reached_is_reached_without_a_loop((parts, gone) in world(), flow: u64) {
        let plan = Plan::new(parts);
        let tables = tables(&plan, HOSTS, &gone);
        for from in (0..HOSTS).map(HostId).filter(|host| !gone.contains(host)) {
            for to in (0..HOSTS).map(HostId).filter(|to| *to != from) {
                let promised = tables[from.0 as usize].next(&plan, to, flow);
                let fewest = fewest(&plan, &gone, from, to, HOSTS);
                match walk(&plan, &tables, from, to, flow) {
                    Some(passed) => {
                        let set: BTreeSet<_> = passed.iter().collect();
                        prop_assert_eq!(set.len(), passed.len(), "a loop");
                        prop_assert!(passed[..passed.len() - 1].iter().all(|host| !gone.contains(host)));
                        let gateways = promised.map(|hop| usize::from(hop.gateways));
                        prop_assert_eq!(gateways, Some(passed.len() - 1));
                        prop_assert!(fewest.is_some_and(|fewest| fewest < passed.len()));
                    }
                    // The cheapest way may have more gateways than are allowed; with so few parts of like cost none has.
                    None => prop_assert_eq!(fewest, None),
                }
            }
        }
    }

    #[test]
    fn tables_that_differ_drop_and_never_go_round(
        (parts, gone) in world(),
        views in proptest::collection::vec(proptest::collection::btree_set((0..HOSTS).prop_map(HostId), 0..4), HOSTS as usize),
        flow: u64,
    ) {
        let plan = Plan::new(parts);
        let table = |(host, view): (u32, &BTreeSet<HostId>)| {
            Table::new(&plan, HostId(host), |host| gone.contains(&host) || view.contains(&host))
        };
        let tables: Vec<Table> = (0..HOSTS).zip(&views).map(table).collect();
        for to in (0..HOSTS).map(HostId) {
            // It ends: that is all that can be asked.
            let _ = walk(&plan, &tables, HostId(0), to, flow);
        }
    }

    #[test]
    fn hosts_are_those_that_were_given(ranges in proptest::collection::vec((0..60_u32, 0..9_u32), 0..9), others in proptest::collection::btree_set(0..70_u32, 0..30)) {
        let hosts: Hosts = ranges.iter().map(|(start, length)| *start..start + length).collect();
        let expected: BTreeSet<u32> = ranges.iter().flat_map(|(start, length)| *start..start + length).collect();
        prop_assert_eq!(hosts.iter().map(|host| host.0).collect::<Vec<_>>(), expected.iter().copied().collect::<Vec<_>>());
        prop_assert!((0..80).all(|host| hosts.contains(HostId(host)) == expected.contains(&host)));
        let both = hosts.intersection(&others.iter().copied().map(HostId).collect());
        prop_assert_eq!(both.iter().map(|host| host.0).collect::<BTreeSet<_>>(), expected.intersection(&others).copied().collect());
    }
}

/// Two clusters as in the paper, with two gateways: 2 and 3 are on both networks.
fn two_gateways() -> Plan {
    Plan::new(vec![part(0..4, 20), part(2..8, 20)])
}

#[test]
fn gateways_share_flows_and_only_those_of_a_lost_one_move() {
    let plan = two_gateways();
    let whole = Table::new(&plan, HostId(0), |_| false);
    let without = Table::new(&plan, HostId(0), |host| host == HostId(3));
    let through = |table: &Table, flow| table.next(&plan, HostId(7), flow).map(|hop| hop.to);
    let mut count = [0; 2];
    for flow in 0..10_000 {
        let before = through(&whole, flow).expect("there is a way");
        count[(before.0 - 2) as usize] += 1;
        assert_eq!(through(&without, flow), Some(HostId(2)));
        if before == HostId(2) {
            assert_eq!(through(&without, flow), Some(before));
        }
    }
    assert!(
        count.iter().all(|count| (4_500..5_500).contains(count)),
        "{count:?}"
    );
}

#[test]
fn without_gateways_there_is_no_way() {
    let plan = two_gateways();
    let cut = Table::new(&plan, HostId(0), |host| (2..4).contains(&host.0));
    assert_eq!(cut.next(&plan, HostId(7), 1), None);
    assert!(cut.next(&plan, HostId(1), 1).is_some());
    assert_eq!(cut.next(&plan, HostId(0), 1), None);
}

#[test]
fn the_cheaper_way_is_taken_also_when_it_is_measured_anew() {
    // From 0 to 3: directly over a slow network, or through 1 over two fast ones.
    let mut plan = Plan::new(vec![part([0, 3], 500), part([0, 1], 20), part([1, 3], 20)]);
    let next = |plan: &Plan| {
        Table::new(plan, HostId(0), |_| false)
            .next(plan, HostId(3), 1)
            .map(|hop| hop.to)
    };
    assert_eq!(next(&plan), Some(HostId(1)));
    plan.set_cost(
        1,
        Cost {
            latency: Duration::from_millis(1),
            ..Cost::default()
        },
    );
    assert_eq!(next(&plan), Some(HostId(3)));
    // Of equal networks the one without a gateway.
    plan.set_cost(
        1,
        Cost {
            latency: Duration::from_micros(500),
            ..Cost::default()
        },
    );
    assert_eq!(next(&plan), Some(HostId(3)));
}

#[test]
fn a_chain_of_more_gateways_than_are_allowed_is_no_way() {
    let chain = |parts: u32| Plan::new((0..parts).map(|at| part([at, at + 1], 20)).collect());
    let last = u32::from(MAX_HOPS) + 1;
    let far = |plan: &Plan, to| Table::new(plan, HostId(0), |_| false).next(plan, HostId(to), 1);
    assert_eq!(
        far(&chain(last), last).map(|hop| hop.gateways),
        Some(MAX_HOPS)
    );
    assert_eq!(far(&chain(last + 1), last + 1), None);
}

#[test]
fn a_table_has_an_entry_for_a_cluster_and_none_for_its_hosts() {
    // A thousand clusters of a hundred hosts around one backbone, with a gateway each.
    let cluster = |index: u32| Part {
        hosts: Hosts::from(index * 100..index * 100 + 100),
        cost: Cost::default(),
    };
    let mut parts: Vec<Part> = (0..1000).map(cluster).collect();
    parts.push(part((0..1000).map(|index| index * 100), 50));
    let plan = Plan::new(parts);
    let table = Table::new(&plan, HostId(42), |_| false);
    let hop = table
        .next(&plan, HostId(99_999), 3)
        .expect("there is a way");
    assert_eq!((hop.to, hop.gateways), (HostId(0), 2));
    let ways = (0..=1000)
        .filter_map(|part| table.entry(part))
        .map(|entry| entry.ways.len())
        .sum::<usize>();
    assert_eq!(ways, 1000);
}
