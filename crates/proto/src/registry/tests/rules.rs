//! What a name does while nobody comes or goes, and when processes do.

use super::bed::{Bed, PACE, address, process};
use crate::id::{Incarnation, MailboxId, ProcessId, Rank};
use crate::membership::{Entry, HostId};
use crate::registry::{Answer, MAX_OPEN, Outcome, Question, Refusal, Said};

fn number(outcome: Outcome) -> crate::registry::FencingNumber {
    match outcome {
        Outcome::Bound(number) | Outcome::Unbound(Some(number)) => number,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_job_of_one_host_needs_no_network() {
    let mut bed = Bed::new(1);
    let waits = bed.fetch(2, "sum");
    assert!(matches!(bed.bound(1, "sum", 7), Outcome::Bound(_)));
    assert_eq!(bed.found(2, waits), Some(address(1, 7)));
    assert_eq!(bed.frames, []);
}

#[test]
fn a_bind_is_answered_when_three_have_it_and_not_before() {
    let mut bed = Bed::new(5);
    let holders = bed.holders("sum");
    let asker = (0..5).find(|host| !holders.contains(host)).unwrap();
    for silent in &holders[1..] {
        bed.cut.insert((holders[0], *silent));
        let bind = bed.bind(asker * 10, "sum", 7);
        bed.run();
        assert_eq!(bed.answer(asker * 10, bind), None);
        let fetch = bed.fetch(asker * 10 + 1, "sum");
        bed.run();
        assert_eq!(bed.answer(asker * 10 + 1, fetch), None, "nobody sees it");
        bed.cut.clear();
        bed.wait(PACE.beat);
        assert!(matches!(
            bed.outcome(asker * 10, bind),
            Some(Outcome::Bound(_))
        ));
        assert!(bed.answer(asker * 10 + 1, fetch).is_some());
        for holder in &holders {
            let kept = bed.kept(*holder, "sum").unwrap();
            assert_eq!(kept.address, address(asker * 10, 7));
        }
        bed.unbind(asker * 10, "sum", 7);
        bed.wait(PACE.beat * 2);
    }
}

#[test]
fn only_the_owner_may_change_what_a_name_means() {
    let mut bed = Bed::new(4);
    let first = number(bed.bound(1, "sum", 7));
    assert_eq!(bed.bound(31, "sum", 9), Outcome::Taken(address(1, 7)));
    let theirs = bed.unbind(31, "sum", 7);
    bed.run();
    assert_eq!(bed.outcome(31, theirs), Some(Outcome::Unbound(None)));
    let again = number(bed.bound(1, "sum", 7));
    assert_eq!(again, first, "nothing changed");
    let moved = number(bed.bound(1, "sum", 8));
    assert!(moved > first);
    let stale = bed.unbind(1, "sum", 7);
    let fetch = bed.fetch(12, "sum");
    bed.run();
    assert_eq!(bed.outcome(1, stale), Some(Outcome::Unbound(None)));
    assert_eq!(bed.found(12, fetch), Some(address(1, 8)));
    let freed = bed.unbind(1, "sum", 8);
    bed.wait(PACE.beat * 2);
    let freed = number(bed.outcome(1, freed).unwrap());
    assert!(freed > moved);
    assert!(number(bed.bound(31, "sum", 9)) > freed);
}

#[test]
fn what_a_dead_life_bound_goes_with_its_verdict() {
    let mut bed = Bed::new(4);
    let before = number(bed.bound(1, "sum", 7));
    bed.kill(process(1));
    bed.run();
    let after = number(bed.bound(31, "sum", 9));
    assert!(after > before);
    let bind = bed.bind(1, "other", 7);
    bed.run();
    let refused = Outcome::Refused(Refusal::OwnerGone);
    assert_eq!(bed.outcome(1, bind), Some(refused));
}

#[test]
fn who_dies_while_its_bind_is_under_way_owns_nothing() {
    let mut bed = Bed::new(4);
    let holders = bed.holders("sum");
    bed.cut.insert((holders[0], holders[1]));
    bed.bind(1, "sum", 7);
    bed.run();
    bed.kill(process(1));
    bed.cut.clear();
    bed.wait(PACE.beat);
    assert!(matches!(bed.bound(31, "sum", 9), Outcome::Bound(_)));
}

#[test]
fn the_next_life_takes_over_what_the_last_had() {
    let mut bed = Bed::new(4);
    bed.bound(1, "sum", 7);
    bed.kill(process(1));
    let next = ProcessId::new(Rank(1), Incarnation(1));
    let host = HostId(0);
    bed.decide(vec![Entry::Restarted {
        process: next,
        host,
    }]);
    let request = bed.ask_as(next, |request| Question::Bind {
        request,
        name: "sum".into(),
        mailbox: MailboxId(3),
    });
    bed.run();
    let answer = bed.answers.get(&(next, request));
    let done = |answer: &Answer| {
        matches!(
            answer,
            Answer::Done {
                outcome: Outcome::Bound(_),
                ..
            }
        )
    };
    assert!(answer.is_some_and(done), "{answer:?}");
}

#[test]
fn who_knows_of_a_death_is_not_told_of_the_dead() {
    let mut bed = Bed::new(4);
    let name = bed.name_held_by(2);
    bed.bound(1, &name, 7);
    let how = crate::boot::Death::Signal(9);
    bed.decide_silently(vec![Entry::Ended {
        process: process(1),
        how,
    }]);
    bed.tell(3);
    let look = bed.look(31, &name);
    bed.run();
    assert_eq!(bed.answer(31, look), None, "the holder does not know yet");
    for host in 0..3 {
        bed.tell(host);
    }
    bed.wait(PACE.beat);
    let answer = bed.answer(31, look);
    assert!(matches!(answer, Some(Answer::Free { .. })), "{answer:?}");
}

#[test]
fn a_host_asks_once_for_all_its_processes_that_wait() {
    let mut bed = Bed::new(4);
    let name = bed.name_held_by(2);
    let waits: Vec<_> = (30..40)
        .map(|rank| (rank, bed.fetch(rank, &name)))
        .collect();
    bed.run();
    let reads = |bed: &Bed| {
        let reads = bed.frames.iter();
        let reads = reads.filter(|frame| matches!(frame.said, Said::Read { .. }));
        reads.count()
    };
    assert_eq!(reads(&bed), 1);
    bed.bound(1, &name, 7);
    for (rank, request) in waits {
        assert_eq!(bed.found(rank, request), Some(address(1, 7)));
    }
    assert_eq!(reads(&bed), 1);
    let again = bed.fetch(35, &name);
    assert_eq!(bed.found(35, again), Some(address(1, 7)), "remembered");
    assert_eq!(reads(&bed), 1);
    bed.wait(PACE.beat * 2);
    let later = bed.fetch(35, &name);
    bed.run();
    assert_eq!(bed.found(35, later), Some(address(1, 7)));
    assert_eq!(reads(&bed), 2, "the lease was over");
}

#[test]
fn who_looks_is_told_that_a_name_is_free_though_another_waits() {
    let mut bed = Bed::new(4);
    let name = bed.name_held_by(2);
    let waits = bed.fetch(30, &name);
    bed.run();
    let look = bed.look(31, &name);
    bed.run();
    assert!(matches!(bed.answer(31, look), Some(Answer::Free { .. })));
    bed.bound(1, &name, 7);
    assert_eq!(bed.found(30, waits), Some(address(1, 7)));
}

#[test]
fn a_change_waits_for_who_remembers_the_name() {
    let mut bed = Bed::new(6);
    let names = (0..).map(|number| format!("n{number}"));
    let mut names = names.filter(|name| {
        let holders = bed.holders(name);
        holders[0] == 2 && !holders.contains(&3)
    });
    let name = names.next().unwrap();
    bed.bound(1, &name, 7);
    let fetch = bed.fetch(30, &name);
    bed.run();
    assert!(bed.found(30, fetch).is_some());
    bed.cut.insert((2, 3));
    let unbind = bed.unbind(1, &name, 7);
    bed.run();
    assert_eq!(bed.answer(1, unbind), None, "host 3 remembers it");
    let again = bed.fetch(31, &name);
    assert!(bed.found(31, again).is_some(), "and may");
    bed.wait(PACE.beat + PACE.beat / 10);
    assert!(bed.answer(1, unbind).is_some(), "the lease is over");
    bed.cut.clear();
    let look = bed.look(31, &name);
    bed.wait(PACE.suspect);
    assert!(matches!(bed.answer(31, look), Some(Answer::Free { .. })));
}

#[test]
fn who_is_told_forgets_at_once() {
    let mut bed = Bed::new(4);
    let name = bed.name_held_by(2);
    bed.bound(1, &name, 7);
    bed.fetch(30, &name);
    bed.run();
    let unbind = bed.unbind(1, &name, 7);
    bed.run();
    assert!(bed.answer(1, unbind).is_some(), "without waiting");
}

#[test]
fn what_is_lost_is_said_again() {
    let mut bed = Bed::new(4);
    let name = bed.name_held_by(2);
    for lost in [
        |said: &Said| matches!(said, Said::Read { .. } | Said::Change { .. }),
        |said: &Said| matches!(said, Said::Found { .. } | Said::Changed { .. }),
        |said: &Said| matches!(said, Said::Copy { .. }),
        |said: &Said| matches!(said, Said::Copied { .. }),
    ] {
        bed.loses = lost;
        let bind = bed.bind(11, &name, 7);
        let fetch = bed.fetch(31, &name);
        bed.wait(PACE.beat / 32);
        bed.loses = |_| false;
        bed.wait(PACE.suspect);
        assert!(matches!(bed.outcome(11, bind), Some(Outcome::Bound(_))));
        assert_eq!(bed.found(31, fetch), Some(address(11, 7)));
        let unbind = bed.unbind(11, &name, 7);
        bed.wait(PACE.suspect);
        assert!(bed.answer(11, unbind).is_some());
    }
}

#[test]
fn a_wish_that_is_said_twice_is_done_once() {
    let mut bed = Bed::new(4);
    let name = bed.name_held_by(2);
    bed.bound(1, &name, 7);
    bed.loses = |said| matches!(said, Said::Changed { .. });
    let bind = bed.bind(31, &name, 9);
    bed.run();
    bed.loses = |_| false;
    // Freed meanwhile: what was refused stays refused.
    bed.unbind(1, &name, 7);
    bed.run();
    bed.wait(PACE.beat);
    assert_eq!(bed.outcome(31, bind), Some(Outcome::Taken(address(1, 7))));
    assert_eq!(bed.kept(2, &name), None);
}

#[test]
fn a_fetch_that_is_cancelled_is_not_answered_and_leaves_nothing() {
    let mut bed = Bed::new(4);
    let name = bed.name_held_by(2);
    let fetch = bed.fetch(30, &name);
    bed.run();
    let cancel = |request| move |_| Question::Cancel { request };
    bed.ask(30, cancel(fetch));
    bed.run();
    bed.bound(1, &name, 7);
    assert_eq!(bed.answer(30, fetch), None);
    let sizes = |bed: &Bed, host: u32| bed.hosts[&host].registry.sizes();
    assert_eq!(sizes(&bed, 3).questions + sizes(&bed, 3).asked, 0);
    assert_eq!(sizes(&bed, 2).waiting + sizes(&bed, 2).leases, 0);
}

#[test]
fn a_process_that_goes_leaves_no_question_behind() {
    let mut bed = Bed::new(4);
    let name = bed.name_held_by(2);
    bed.cut.insert((3, 2));
    bed.fetch(30, &name);
    bed.bind(30, "other", 7);
    let one = bed.hosts.get_mut(&3).unwrap();
    let seen = crate::registry::Seen {
        members: &one.members,
        lease: one.lease,
        now: bed.now,
    };
    one.registry.handle_gone(process(30), seen);
    assert_eq!(one.registry.sizes().questions, 0);
    assert_eq!(one.registry.sizes().asked, 0);
}

#[test]
fn a_process_with_too_many_open_questions_is_refused() {
    let mut bed = Bed::new(2);
    for number in 0..MAX_OPEN {
        bed.fetch(1, &format!("never {number}"));
    }
    let beyond = bed.fetch(1, "one more");
    bed.run();
    let refused = Outcome::Refused(Refusal::QuestionsFull);
    assert_eq!(bed.outcome(1, beyond), Some(refused));
    let other = bed.look(2, "one more");
    bed.run();
    assert!(bed.answer(2, other).is_some(), "others are not concerned");
}

#[test]
fn an_idle_registry_says_nothing() {
    let mut bed = Bed::new(4);
    bed.bound(1, "sum", 7);
    bed.fetch(31, "sum");
    bed.wait(PACE.beat * 3);
    let said = bed.frames.len();
    bed.wait(PACE.lease * 10);
    assert_eq!(bed.frames.len(), said);
    assert!(
        bed.hosts
            .values()
            .all(|one| one.registry.next_wakeup().is_none())
    );
}
