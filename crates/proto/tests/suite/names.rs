//! The directory of names: docs/wire.md §7.

use mizzen_proto::id::{Address, Incarnation, MailboxId, ProcessId, Rank, RequestId};
use mizzen_proto::names::{Answer, Directory, DirectoryLimits, Reply, shard_of};
use mizzen_proto::wire::{Frame, Keep, Name, NameFrame, NameRefusal};
use proptest::prelude::*;

const R1: RequestId = RequestId(1);
const R2: RequestId = RequestId(2);

fn life(rank: u32, incarnation: u32) -> ProcessId {
    ProcessId::new(Rank(rank), Incarnation(incarnation))
}

fn mailbox_of(process: ProcessId) -> Address {
    Address {
        process,
        mailbox: MailboxId(5),
    }
}

fn name(text: &str) -> Name<'_> {
    Name::new(text).unwrap()
}

fn replies(directory: &mut Directory) -> Vec<(ProcessId, Answer)> {
    std::iter::from_fn(|| directory.poll_reply())
        .map(|Reply { to, answer }| (to, answer))
        .collect()
}

fn found(request: RequestId, address: Address, keep: Keep) -> Answer {
    Answer::Found {
        request,
        address,
        keep,
    }
}

/// A directory where process 1 has bound "sum", and has been told.
fn with_sum() -> Directory {
    let mut directory = Directory::default();
    let owner = life(1, 0);
    directory.handle_bind(owner, R1, name("sum"), mailbox_of(owner));
    assert_eq!(
        replies(&mut directory),
        [(owner, Answer::Bound { request: R1 })]
    );
    directory
}

// docs/wire.md §7.2
#[test]
fn a_name_has_the_holder_that_the_table_says() {
    for (text, holders) in [
        ("sum", [0, 60, 6_033]),
        ("tile0", [1, 350, 35_029]),
        ("tile1", [0, 130, 13_028]),
        ("größe", [2, 744, 74_439]),
    ] {
        let computed = [4, 1_000, 100_000].map(|size| shard_of(name(text), size));
        assert_eq!(computed, holders.map(Rank));
    }
}

// docs/wire.md §7.3
#[test]
fn a_fetch_of_a_bound_name_is_answered_at_once() {
    let mut directory = with_sum();
    directory.handle_fetch(life(2, 0), R2, name("sum"));
    let answer = found(R2, mailbox_of(life(1, 0)), Keep::UntilForgotten);
    assert_eq!(replies(&mut directory), [(life(2, 0), answer)]);
}

// docs/wire.md §7.3
#[test]
fn a_fetch_waits_until_somebody_binds() {
    let mut directory = Directory::default();
    let owner = life(1, 0);
    directory.handle_fetch(life(2, 0), R1, name("sum"));
    directory.handle_fetch(life(3, 0), R2, name("sum"));
    assert_eq!(replies(&mut directory), []);
    assert_eq!(directory.waiters(), 2);

    directory.handle_bind(owner, R1, name("sum"), mailbox_of(owner));
    let answer = |request| found(request, mailbox_of(owner), Keep::UntilForgotten);
    assert_eq!(
        replies(&mut directory),
        [
            (life(2, 0), answer(R1)),
            (life(3, 0), answer(R2)),
            (owner, Answer::Bound { request: R1 }),
        ]
    );
    assert_eq!(directory.waiters(), 0);
}

// docs/wire.md §7.3
#[test]
fn a_cancelled_fetch_is_not_answered_and_leaves_nothing() {
    let mut directory = Directory::default();
    directory.handle_fetch(life(2, 0), R1, name("sum"));
    directory.handle_cancel(life(2, 0), R1, name("sum"));
    assert!(directory.is_empty());
    assert_eq!(directory.waiters(), 0);
}

// docs/wire.md §7.4
#[test]
fn a_name_of_another_process_is_a_conflict() {
    let mut directory = with_sum();
    let rival = life(2, 0);
    directory.handle_bind(rival, R2, name("sum"), mailbox_of(rival));
    let holder = mailbox_of(life(1, 0));
    let request = R2;
    assert_eq!(
        replies(&mut directory),
        [(rival, Answer::Conflict { request, holder })]
    );
    assert_eq!(directory.lookup(name("sum")), Some(holder));
}

// docs/wire.md §7.4
#[test]
fn binding_the_same_again_is_harmless() {
    let mut directory = with_sum();
    directory.handle_fetch(life(2, 0), R1, name("sum"));
    replies(&mut directory);
    directory.handle_bind(life(1, 0), R2, name("sum"), mailbox_of(life(1, 0)));
    let request = R2;
    assert_eq!(
        replies(&mut directory),
        [(life(1, 0), Answer::Bound { request })]
    );
}

// docs/wire.md §7.4
#[test]
fn another_mailbox_of_the_same_process_is_a_conflict() {
    let mut directory = with_sum();
    let owner = life(1, 0);
    let (request, holder) = (R2, mailbox_of(owner));
    let second = Address {
        mailbox: MailboxId(6),
        ..holder
    };
    directory.handle_bind(owner, R2, name("sum"), second);
    assert_eq!(
        replies(&mut directory),
        [(owner, Answer::Conflict { request, holder })]
    );
    assert_eq!(directory.lookup(name("sum")), Some(holder));

    directory.handle_unbind(name("sum"), holder);
    directory.handle_bind(owner, R2, name("sum"), second);
    assert_eq!(directory.lookup(name("sum")), Some(second));
}

// docs/wire.md §7.4
#[test]
fn a_later_life_replaces_an_earlier_one_and_never_the_reverse() {
    let mut directory = with_sum();
    let later = mailbox_of(life(1, 1));
    directory.handle_bind(life(1, 1), R1, name("sum"), later);
    directory.handle_bind(life(1, 0), R2, name("sum"), mailbox_of(life(1, 0)));
    let reason = NameRefusal::OwnerGone;
    assert_eq!(
        replies(&mut directory),
        [
            (life(1, 1), Answer::Bound { request: R1 }),
            (
                life(1, 0),
                Answer::Refused {
                    request: R2,
                    reason
                }
            ),
        ]
    );
    assert_eq!(directory.lookup(name("sum")), Some(later));
}

// docs/wire.md §7.5
#[test]
fn only_what_a_name_means_can_be_unbound() {
    let mut directory = with_sum();
    directory.handle_unbind(name("sum"), mailbox_of(life(2, 0)));
    assert_eq!(directory.len(), 1);
    directory.handle_unbind(name("sum"), mailbox_of(life(1, 0)));
    assert!(directory.is_empty());
    assert_eq!(replies(&mut directory), []);
}

// docs/wire.md §7.9
#[test]
fn who_leaves_hands_on_what_is_bound_and_binds_no_more() {
    let (owner, late) = (life(1, 0), life(2, 0));
    let mut directory = with_sum();
    let handed_on: Vec<_> = directory.leave().collect();
    assert_eq!(handed_on, [("sum", mailbox_of(owner))]);
    directory.handle_bind(late, R2, name("late"), mailbox_of(late));
    assert_eq!(replies(&mut directory), [], "it would be lost with us");
    // What is known is still told.
    directory.handle_fetch(late, R2, name("sum"));
    let answer = found(R2, mailbox_of(owner), Keep::UntilForgotten);
    assert_eq!(replies(&mut directory), [(late, answer)]);
}

// docs/wire.md §7.6
#[test]
fn the_names_of_a_dead_process_can_be_bound_by_another() {
    let mut directory = with_sum();
    directory.handle_process_gone(life(1, 0));
    let heir = life(2, 0);
    directory.handle_bind(heir, R2, name("sum"), mailbox_of(heir));
    let request = R2;
    assert_eq!(replies(&mut directory), [(heir, Answer::Bound { request })]);
}

// docs/wire.md §7.6
#[test]
fn what_comes_late_from_a_dead_process_is_ignored() {
    let mut directory = Directory::default();
    let dead = life(1, 3);
    directory.handle_process_gone(dead);
    directory.handle_process_gone(life(1, 1));
    directory.handle_bind(dead, R1, name("sum"), mailbox_of(dead));
    directory.handle_fetch(dead, R1, name("max"));
    assert_eq!(replies(&mut directory), []);
    assert!(directory.is_empty());

    let (request, reason) = (R2, NameRefusal::OwnerGone);
    directory.handle_bind(life(2, 0), R2, name("sum"), mailbox_of(dead));
    assert_eq!(
        replies(&mut directory),
        [(life(2, 0), Answer::Refused { request, reason })]
    );

    let reborn = life(1, 4);
    directory.handle_bind(reborn, R2, name("sum"), mailbox_of(reborn));
    assert_eq!(
        replies(&mut directory),
        [(reborn, Answer::Bound { request })]
    );
}

// docs/wire.md §7.6
#[test]
fn a_dead_process_waits_for_nothing() {
    let mut directory = Directory::default();
    directory.handle_fetch(life(2, 0), R1, name("sum"));
    directory.handle_fetch(life(3, 0), R2, name("sum"));
    directory.handle_process_gone(life(2, 0));
    assert_eq!(directory.waiters(), 1);
    directory.handle_process_gone(life(3, 0));
    assert!(directory.is_empty());
}

// docs/wire.md §7.7
#[test]
fn who_remembers_a_name_is_told_when_it_changes() {
    let forget = || Answer::Forget { name: "sum".into() };
    let remembered = || {
        let mut directory = with_sum();
        directory.handle_fetch(life(2, 0), R1, name("sum"));
        directory.handle_fetch(life(2, 0), R2, name("sum"));
        replies(&mut directory);
        directory
    };
    let mut unbound = remembered();
    unbound.handle_unbind(name("sum"), mailbox_of(life(1, 0)));
    assert_eq!(replies(&mut unbound), [(life(2, 0), forget())]);

    let mut orphaned = remembered();
    orphaned.handle_process_gone(life(1, 0));
    assert_eq!(replies(&mut orphaned), [(life(2, 0), forget())]);

    let mut replaced = remembered();
    replaced.handle_bind(life(1, 1), R1, name("sum"), mailbox_of(life(1, 1)));
    let bound = Answer::Bound { request: R1 };
    assert_eq!(
        replies(&mut replaced),
        [(life(2, 0), forget()), (life(1, 1), bound)]
    );
}

// docs/wire.md §7.8
#[test]
fn a_full_directory_refuses_and_says_why() {
    let mut directory = Directory::new(DirectoryLimits {
        names: 2,
        waiters: 1,
        keepers: 1,
    });
    let owner = life(1, 0);
    let refused = |request, reason| (owner, Answer::Refused { request, reason });
    directory.handle_bind(owner, R1, name("a"), mailbox_of(owner));
    directory.handle_fetch(owner, R1, name("b"));
    replies(&mut directory);

    directory.handle_fetch(owner, R2, name("b"));
    directory.handle_bind(owner, R2, name("c"), mailbox_of(owner));
    assert_eq!(
        replies(&mut directory),
        [
            refused(R2, NameRefusal::WaitersFull),
            refused(R2, NameRefusal::NamesFull),
        ]
    );

    directory.handle_fetch(life(2, 0), R1, name("a"));
    directory.handle_fetch(life(3, 0), R1, name("a"));
    directory.handle_fetch(life(2, 0), R2, name("a"));
    let answer = |request, keep| found(request, mailbox_of(owner), keep);
    assert_eq!(
        replies(&mut directory),
        [
            (life(2, 0), answer(R1, Keep::UntilForgotten)),
            (life(3, 0), answer(R1, Keep::Once)),
            (life(2, 0), answer(R2, Keep::UntilForgotten)),
        ]
    );
}

#[test]
fn an_answer_is_handed_back_by_a_directory() {
    let mut directory = Directory::default();
    let bound = NameFrame::Bound { request: R1 };
    assert_eq!(directory.handle_frame(life(1, 0), bound), Some(bound));
    let (request, name) = (R1, name("sum"));
    let fetch = NameFrame::Fetch { request, name };
    assert_eq!(directory.handle_frame(life(1, 0), fetch), None);
    assert_eq!(directory.waiters(), 1);
}

#[derive(Debug, Clone)]
enum Op {
    Bind(u32, u8),
    Unbind(u32, u8),
    Fetch(u32, u8),
    Restart(u32),
}

fn op() -> impl Strategy<Value = Op> {
    let (rank, key) = (0..4_u32, 0..3_u8);
    prop_oneof![
        (rank.clone(), key.clone()).prop_map(|(rank, key)| Op::Bind(rank, key)),
        (rank.clone(), key.clone()).prop_map(|(rank, key)| Op::Unbind(rank, key)),
        (rank.clone(), key).prop_map(|(rank, key)| Op::Fetch(rank, key)),
        rank.prop_map(Op::Restart),
    ]
}

proptest! {
    /// Against a model: at most one owner, always alive; every fetch by a live process is answered once
    /// the name is bound; what a live process remembers is true once the replies have arrived.
    #[test]
    fn every_name_has_one_living_owner_and_every_memory_of_it_is_true(
        ops in prop::collection::vec(op(), 0..200)
    ) {
        let keys = ["x", "y", "z"];
        let mut directory = Directory::default();
        let mut lives = [0_u32; 4];
        let mut model: [Option<Address>; 3] = [None; 3];
        let mut memory = std::collections::HashMap::new();
        let mut asked = std::collections::HashMap::new();
        for (number, op) in ops.into_iter().enumerate() {
            let request = RequestId(number as u64);
            match op {
                Op::Bind(rank, key) => {
                    let owner = life(rank, lives[rank as usize]);
                    let slot = &mut model[usize::from(key)];
                    slot.get_or_insert(mailbox_of(owner));
                    directory.handle_bind(owner, request, name(keys[usize::from(key)]), mailbox_of(owner));
                }
                Op::Unbind(rank, key) => {
                    let address = mailbox_of(life(rank, lives[rank as usize]));
                    let slot = &mut model[usize::from(key)];
                    *slot = slot.filter(|&now| now != address);
                    directory.handle_unbind(name(keys[usize::from(key)]), address);
                }
                Op::Fetch(rank, key) => {
                    let process = life(rank, lives[rank as usize]);
                    asked.insert((process, request), key);
                    directory.handle_fetch(process, request, name(keys[usize::from(key)]));
                }
                Op::Restart(rank) => {
                    let dead = life(rank, lives[rank as usize]);
                    lives[rank as usize] += 1;
                    for slot in &mut model {
                        *slot = slot.filter(|now| now.process != dead);
                    }
                    asked.retain(|(process, _), _| *process != dead);
                    memory.retain(|(process, _), _| *process != dead);
                    directory.handle_process_gone(dead);
                }
            }
            while let Some(reply) = directory.poll_reply() {
                let bytes = reply.frame().to_vec();
                prop_assert_eq!(Frame::decode(&bytes), Ok(reply.frame()));
                match reply.answer {
                    Answer::Found { request, address, .. } => {
                        let key = asked.remove(&(reply.to, request));
                        prop_assert!(key.is_some(), "answered twice, or after death");
                        memory.insert((reply.to, key.unwrap()), address);
                    }
                    Answer::Forget { name } => {
                        let key = keys.iter().position(|&key| *key == *name).unwrap();
                        memory.remove(&(reply.to, key as u8));
                    }
                    _ => {}
                }
            }
            for (key, address) in model.iter().enumerate() {
                prop_assert_eq!(directory.lookup(name(keys[key])), *address);
            }
            for ((_, key), address) in &memory {
                prop_assert_eq!(model[usize::from(*key)], Some(*address));
            }
            let waiting = asked.values().all(|&key| model[usize::from(key)].is_none());
            prop_assert!(waiting, "a bound name has nobody waiting for it");
            prop_assert_eq!(directory.waiters(), asked.len());
        }
    }
}
