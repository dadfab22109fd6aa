//! What an agent that lies about names gets: nothing. That it is who it says it is, its connection has proved.

use super::bed::{Bed, PACE, address};
use crate::membership::{AgentId, HostId};
use crate::registry::{
    Bound, FencingNumber, Frame, Outcome, Patience, Record, Refusal, Said, View, Wish,
};
use crate::time::Time;

fn agent(host: u32) -> AgentId {
    AgentId::new(HostId(host), 1)
}

/// What the agent of a host could say if it wanted to, in the present view, and later than all that it said.
fn lie(bed: &Bed, from: u32, to: u32, said: Said) -> Frame {
    let placement = bed.hosts[&to].registry.placement().unwrap();
    Frame {
        from: agent(from),
        to: agent(to),
        epoch: placement.epoch,
        view: placement.view,
        sequence: 1 << 40,
        said,
    }
}

/// A binding that nobody made, with a number higher than all.
fn invented(rank: u32) -> Bound {
    let epoch = crate::membership::Epoch(u64::MAX >> 1);
    Bound {
        number: FencingNumber { epoch, counter: 7 },
        address: address(rank, 66),
    }
}

/// Five hosts; a name that host 1 holds and rank 21 has bound; and a host that does not keep it.
fn bound() -> (Bed, String, u32) {
    let mut bed = Bed::new(5);
    let name = bed.name_held_by(1);
    assert!(matches!(bed.bound(21, &name, 7), Outcome::Bound(_)));
    let holders = bed.holders(&name);
    let outside = (0..5).find(|host| !holders.contains(host)).unwrap();
    (bed, name, outside)
}

fn means(bed: &mut Bed, name: &str) -> Option<crate::id::Address> {
    let look = bed.look(11, name);
    bed.wait(PACE.beat * 2);
    bed.found(11, look)
}

#[test]
fn a_bind_for_a_process_of_another_host_is_refused() {
    let mut bed = Bed::new(4);
    let name = bed.name_held_by(1);
    let said = Said::Change {
        name: name.as_str().into(),
        request: 1,
        oldest: 1,
        wish: Wish::Bind,
        address: address(1, 66),
    };
    let frame = lie(&bed, 3, 1, said);
    bed.deliver(frame);
    bed.run();
    let answer = bed.frames.iter().rev().find_map(|frame| match &frame.said {
        Said::Changed { outcome, .. } => Some(*outcome),
        _ => None,
    });
    assert_eq!(answer, Some(Outcome::Refused(Refusal::OwnerGone)));
    assert_eq!(bed.kept(1, &name), None);
}

#[test]
fn an_unbind_in_the_name_of_the_owner_is_refused() {
    let (mut bed, name, _) = bound();
    let said = Said::Change {
        name: name.as_str().into(),
        request: 1 << 30,
        oldest: 1,
        wish: Wish::Unbind,
        address: address(21, 7),
    };
    // The agent of host 2, where the owner runs, may say so.
    let frame = lie(&bed, 3, 1, said);
    bed.deliver(frame);
    bed.run();
    assert_eq!(means(&mut bed, &name), Some(address(21, 7)));
}

#[test]
fn a_handover_of_who_is_no_member_is_not_taken() {
    let mut bed = Bed::new(4);
    let name = bed.name_held_by(1);
    bed.lose(&[3]);
    let records = vec![Record {
        name: name.as_str().into(),
        bound: invented(1),
    }];
    let frame = lie(&bed, 3, 1, Said::Hand { number: 1, records });
    bed.deliver(frame);
    bed.run();
    assert_eq!(bed.kept(1, &name), None);
}

#[test]
fn a_handover_in_a_view_that_is_established_is_not_taken() {
    let (mut bed, name, outside) = bound();
    let records = vec![Record {
        name: name.as_str().into(),
        bound: invented(outside * 10),
    }];
    let frame = lie(&bed, outside, 1, Said::Hand { number: 1, records });
    bed.deliver(frame);
    assert_eq!(means(&mut bed, &name), Some(address(21, 7)));
}

#[test]
fn a_frame_of_another_view_is_not_heard() {
    let (mut bed, name, _) = bound();
    let keeper = bed.holders(&name)[1];
    for view in [0, u64::MAX] {
        let copy = Said::Copy {
            name: name.as_str().into(),
            round: 1,
            bound: None,
        };
        let mut frame = lie(&bed, 1, keeper, copy);
        frame.view = View(view);
        bed.deliver(frame);
    }
    assert!(bed.kept(keeper, &name).is_some());
}

#[test]
fn a_frame_that_was_heard_is_not_heard_again() {
    let (mut bed, name, _) = bound();
    let keeper = bed.holders(&name)[1];
    let is_copy =
        |frame: &&Frame| frame.to == agent(keeper) && matches!(frame.said, Said::Copy { .. });
    let replayed = bed.frames.iter().find(is_copy).unwrap().clone();
    let unbind = bed.unbind(21, &name, 7);
    bed.wait(PACE.beat * 2);
    assert!(matches!(
        bed.outcome(21, unbind),
        Some(Outcome::Unbound(Some(_)))
    ));
    bed.deliver(replayed);
    assert_eq!(bed.kept(keeper, &name), None);
}

#[test]
fn a_copy_of_who_does_not_hold_the_name_is_not_kept() {
    let (mut bed, name, outside) = bound();
    let keeper = bed.holders(&name)[1];
    let before = bed.kept(keeper, &name);
    let copy = Said::Copy {
        name: name.as_str().into(),
        round: 1,
        bound: Some(invented(outside * 10)),
    };
    let frame = lie(&bed, outside, keeper, copy);
    bed.deliver(frame);
    assert_eq!(bed.kept(keeper, &name), before);
}

#[test]
fn an_answer_of_who_does_not_hold_the_name_is_none() {
    let mut bed = Bed::new(5);
    let name = bed.name_held_by(1);
    let fetch = bed.fetch(21, &name);
    bed.run();
    let liar = (0..5).find(|host| ![1, 2].contains(host)).unwrap();
    let found = Said::Found {
        name: name.as_str().into(),
        bound: invented(liar * 10),
        stamp: u64::MAX,
        leased: true,
    };
    let frame = lie(&bed, liar, 2, found);
    bed.deliver(frame);
    assert_eq!(bed.answer(21, fetch), None);
    assert!(matches!(bed.bound(11, &name, 7), Outcome::Bound(_)));
    bed.wait(PACE.beat);
    assert_eq!(bed.found(21, fetch), Some(address(11, 7)));
}

#[test]
fn who_is_not_the_coordinator_establishes_no_view() {
    let mut bed = Bed::new(4);
    bed.cut.extend((0..4).map(|host| (0, host)));
    bed.lose(&[3]);
    bed.run();
    assert!(!bed.hosts[&1].registry.is_established());
    let frame = lie(&bed, 2, 1, Said::Established);
    bed.deliver(frame);
    assert!(!bed.hosts[&1].registry.is_established());
    bed.cut.clear();
    bed.wait(PACE.beat * 2);
    assert!(bed.hosts[&1].registry.is_established());
}

#[test]
fn an_agent_without_a_lease_answers_nobody() {
    let (mut bed, name, outside) = bound();
    bed.hosts.get_mut(&1).unwrap().lease = Time(0);
    let sent = bed.frames.len();
    let read = Said::Read {
        name: name.as_str().into(),
        patience: Patience::Look,
        stamp: 1,
    };
    let frame = lie(&bed, outside, 1, read);
    bed.deliver(frame);
    assert_eq!(bed.frames.len(), sent);
}
