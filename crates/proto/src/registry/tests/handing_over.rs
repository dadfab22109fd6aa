//! Hosts that come and go.

use super::bed::{Bed, PACE, address};
use crate::membership::{AgentId, Entry, HostEnd, HostId};
use crate::registry::{Answer, Outcome, Said};
use crate::time::Time;

#[test]
fn a_binding_outlives_its_holder() {
    let mut bed = Bed::new(6);
    let name = bed.name_held_by(2);
    bed.bound(1, &name, 7);
    bed.lose(&[2]);
    let fetch = bed.fetch(31, &name);
    bed.run();
    assert_eq!(bed.found(31, fetch), Some(address(1, 7)));
    for holder in bed.holders(&name) {
        assert!(bed.kept(holder, &name).is_some(), "three have it again");
    }
}

#[test]
fn a_binding_outlives_all_who_keep_it_if_its_owner_lives() {
    let mut bed = Bed::new(8);
    let name = bed.name_held_by(2);
    let holders = bed.holders(&name);
    let owner = (0..8).find(|host| !holders.contains(host)).unwrap();
    bed.bound(owner * 10, &name, 7);
    bed.lose(&holders);
    let left = *bed.hosts.keys().last().unwrap();
    let fetch = bed.fetch(left * 10, &name);
    bed.run();
    assert_eq!(bed.found(left * 10, fetch), Some(address(owner * 10, 7)));
}

#[test]
fn a_binding_goes_with_the_host_of_its_owner() {
    let mut bed = Bed::new(6);
    let name = bed.name_held_by(2);
    bed.bound(51, &name, 7);
    bed.lose(&[5]);
    let look = bed.look(31, &name);
    bed.run();
    assert!(matches!(bed.answer(31, look), Some(Answer::Free { .. })));
}

#[test]
fn what_was_handed_over_is_answered_when_the_others_have_it_and_not_before() {
    let mut bed = Bed::new(8);
    let name = bed.name_held_by(2);
    bed.bound(1, &name, 7);
    bed.loses = |said| matches!(said, Said::Copy { .. });
    bed.lose(&[2]);
    let fetch = bed.fetch(31, &name);
    bed.wait(PACE.beat);
    assert_eq!(bed.answer(31, fetch), None, "the third keeper has nothing");
    bed.loses = |_| false;
    bed.wait(PACE.suspect);
    assert_eq!(bed.found(31, fetch), Some(address(1, 7)));
}

#[test]
fn a_fetch_that_waits_outlives_the_holder() {
    let mut bed = Bed::new(6);
    let name = bed.name_held_by(2);
    let fetch = bed.fetch(31, &name);
    bed.run();
    bed.lose(&[2]);
    bed.run();
    assert!(matches!(bed.bound(1, &name, 7), Outcome::Bound(_)));
    assert_eq!(bed.found(31, fetch), Some(address(1, 7)));
}

#[test]
fn a_bind_that_is_under_way_outlives_the_holder() {
    let mut bed = Bed::new(6);
    let name = bed.name_held_by(2);
    let second = bed.holders(&name)[1];
    bed.cut.insert((2, second));
    let bind = bed.bind(1, &name, 7);
    bed.run();
    assert_eq!(bed.answer(1, bind), None);
    bed.lose(&[2]);
    bed.run();
    assert!(matches!(bed.outcome(1, bind), Some(Outcome::Bound(_))));
}

#[test]
fn a_name_that_is_moved_when_all_who_keep_it_are_lost_stays_its_owners() {
    let mut bed = Bed::new(8);
    let name = bed.name_held_by(2);
    let holders = bed.holders(&name);
    let mut others = (0..8).filter(|host| !holders.contains(host));
    let (owner, other) = (others.next().unwrap() * 10, others.next().unwrap() * 10);
    bed.bound(owner, &name, 7);
    for host in [owner / 10, other / 10] {
        bed.cut.insert((holders[0], host));
    }
    let theirs = bed.bind(other, &name, 9);
    let moved = bed.bind(owner, &name, 8);
    bed.run();
    bed.lose(&holders);
    bed.run();
    let taken = Outcome::Taken(address(owner, 8));
    assert_eq!(bed.outcome(other, theirs), Some(taken));
    assert!(matches!(bed.outcome(owner, moved), Some(Outcome::Bound(_))));
}

#[test]
fn a_host_that_comes_takes_over_its_share() {
    let mut bed = Bed::new(3);
    let names: Vec<String> = (0..100).map(|number| format!("n{number}")).collect();
    for name in &names {
        bed.bound(1, name, 7);
    }
    for host in 3..6 {
        bed.join(host, 1);
    }
    bed.run();
    for name in &names {
        let holders = bed.holders(name);
        for host in 0..6 {
            let kept = bed.kept(host, name).is_some();
            assert_eq!(kept, holders.contains(&host), "{name} at {host}");
        }
        let fetch = bed.fetch(21, name);
        bed.run();
        assert_eq!(bed.found(21, fetch), Some(address(1, 7)));
    }
}

#[test]
fn numbers_grow_from_holder_to_holder() {
    let mut bed = Bed::new(8);
    let name = bed.name_held_by(2);
    let mut last = None;
    for (mailbox, lost) in (0..5).zip([2, 3, 4, 5, 6]) {
        if bed.hosts.len() > 4 {
            bed.lose(&[lost]);
            bed.run();
        }
        let Outcome::Bound(number) = bed.bound(1, &name, mailbox) else {
            panic!("it is ours");
        };
        assert!(Some(number) > last);
        last = Some(number);
    }
}

#[test]
fn a_view_waits_for_all_so_that_nobody_answers_by_an_earlier_one() {
    let mut bed = Bed::new(6);
    let names: Vec<String> = (0..60).map(|number| format!("n{number}")).collect();
    // Host 1 does not hear that host 5 is gone.
    bed.hosts.remove(&5);
    let agent = AgentId::new(HostId(5), 1);
    let how = HostEnd::Silent;
    bed.decide_silently(vec![Entry::HostEnded { agent, how }]);
    for host in [0, 2, 3, 4] {
        bed.tell(host);
    }
    bed.wait(PACE.suspect);
    let binds: Vec<_> = names.iter().map(|name| bed.bind(31, name, 7)).collect();
    bed.wait(PACE.suspect);
    for bind in &binds {
        assert_eq!(bed.answer(31, *bind), None, "host 1 might answer otherwise");
    }
    bed.tell(1);
    bed.wait(PACE.suspect * 2);
    for bind in binds {
        assert!(matches!(bed.outcome(31, bind), Some(Outcome::Bound(_))));
    }
}

#[test]
fn who_has_no_lease_answers_nothing() {
    let mut bed = Bed::new(6);
    let name = bed.name_held_by(2);
    bed.bound(21, &name, 7);
    let fetch = bed.fetch(31, &name);
    bed.run();
    assert!(bed.found(31, fetch).is_some());
    for host in [2, 3] {
        bed.hosts.get_mut(&host).unwrap().lease = Time(0);
    }
    let remembered = bed.fetch(32, &name);
    let own = bed.fetch(22, &name);
    let other = bed.fetch(11, &name);
    bed.wait(PACE.suspect * 3);
    for (rank, request) in [(32, remembered), (22, own), (11, other)] {
        assert_eq!(bed.answer(rank, request), None);
    }
}

#[test]
fn what_comes_late_is_ignored() {
    let mut bed = Bed::new(6);
    let name = bed.name_held_by(2);
    bed.bound(1, &name, 7);
    let late: Vec<_> = std::mem::take(&mut bed.frames);
    bed.unbind(1, &name, 7);
    bed.run();
    for frame in &late {
        bed.deliver(frame.clone());
    }
    bed.run();
    for host in 0..6 {
        assert_eq!(bed.kept(host, &name), None);
    }
    bed.lose(&[5]);
    bed.run();
    for frame in late {
        bed.deliver(frame);
    }
    bed.run();
    for host in 0..5 {
        assert_eq!(bed.kept(host, &name), None);
    }
}

#[test]
fn a_handover_that_is_lost_is_repeated() {
    let lost: [fn(&Said) -> bool; 4] = [
        |said| matches!(said, Said::Hand { .. }),
        |said| matches!(said, Said::Handed { .. }),
        |said| matches!(said, Said::Ready),
        |said| matches!(said, Said::Established),
    ];
    for loses in lost {
        let mut bed = Bed::new(4);
        for number in 0..40 {
            bed.bound(1, &format!("n{number}"), 7);
        }
        bed.loses = loses;
        bed.join(4, 1);
        bed.wait(PACE.beat);
        bed.loses = |_| false;
        bed.wait(PACE.suspect * 2);
        for number in 0..40 {
            let fetch = bed.fetch(31, &format!("n{number}"));
            bed.run();
            assert_eq!(bed.found(31, fetch), Some(address(1, 7)));
        }
    }
}

#[test]
fn a_frame_of_who_is_not_here_is_not_heard() {
    let mut bed = Bed::new(4);
    let name = bed.name_held_by(2);
    bed.bound(1, &name, 7);
    let copy = bed
        .frames
        .iter()
        .find(|frame| matches!(frame.said, Said::Copy { .. }));
    let mut forged = copy.unwrap().clone();
    forged.from = AgentId::new(HostId(2), 9);
    forged.sequence += 1000;
    let Said::Copy { bound, .. } = &mut forged.said else {
        panic!("it is a copy");
    };
    *bound = None;
    let host = forged.to.host.0;
    bed.deliver(forged.clone());
    assert!(bed.kept(host, &name).is_some(), "another life");
    // Nor is the word of one that is here, but does not hold the name.
    let other = (0..4).find(|one| *one != 2 && *one != host).unwrap();
    forged.from = AgentId::new(HostId(other), 1);
    bed.deliver(forged);
    assert!(bed.kept(host, &name).is_some(), "not the holder");
}
