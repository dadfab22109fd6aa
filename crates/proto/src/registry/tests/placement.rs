use std::collections::BTreeSet;

use super::bed::Bed;
use crate::membership::{AgentId, Entry, HostEnd, HostId, Members};
use crate::registry::{COPIES, Placement, View};

#[test]
fn names_spread_over_hosts() {
    let bed = Bed::new(16);
    let mut held = [0_u32; 16];
    for number in 0..1600 {
        held[bed.holders(&format!("tile{number}"))[0] as usize] += 1;
    }
    let even = held.iter().all(|names| (60..145).contains(names));
    assert!(even, "{held:?}");
}

#[test]
fn a_name_is_kept_by_three_hosts_or_by_all_if_there_are_fewer() {
    for hosts in 1..6 {
        let bed = Bed::new(hosts);
        let holders = bed.holders("sum");
        let different: BTreeSet<u32> = holders.iter().copied().collect();
        assert_eq!(different.len(), COPIES.min(hosts as usize));
    }
}

#[test]
fn when_a_host_goes_only_its_names_move_and_to_one_that_keeps_them() {
    let mut bed = Bed::new(9);
    let names: Vec<String> = (0..300).map(|number| format!("n{number}")).collect();
    let before: Vec<Vec<u32>> = names.iter().map(|name| bed.holders(name)).collect();
    bed.lose(&[4]);
    for (name, before) in names.iter().zip(before) {
        let after = bed.holders(name);
        let left: Vec<u32> = before.into_iter().filter(|host| *host != 4).collect();
        assert_eq!(after[..left.len()], left, "{name}");
    }
}

#[test]
fn each_coming_and_going_of_a_host_is_a_later_view_and_nothing_else_is() {
    let mut bed = Bed::new(3);
    let view = |bed: &Bed| View::of(&bed.log);
    let mut last = view(&bed);
    bed.kill(super::bed::process(12));
    assert_eq!(view(&bed), last);
    for life in 1..4 {
        let agent = AgentId::new(HostId(2), life);
        let how = HostEnd::Silent;
        bed.decide_silently(vec![Entry::HostEnded { agent, how }]);
        assert!(view(&bed) > last);
        last = view(&bed);
        let agent = AgentId::new(HostId(2), life + 1);
        let locator = String::new();
        bed.decide_silently(vec![Entry::HostJoined { agent, locator }]);
        assert!(view(&bed) > last);
        last = view(&bed);
    }
}

#[test]
fn nobody_keeps_a_name_of_a_job_without_hosts() {
    let placement = Placement::of(&Members::default());
    assert_eq!(placement.holder("sum"), None);
    assert_eq!(placement.coordinator(), None);
}
