//! Processes that meet each other at the same moment.

use super::bed::{Contact, eventually, introduce, life, mailbox_at, member};
use crate::peers::Path;
use crate::testing::Deck;

/// Each of the members reaches the next one, and nobody is introduced before all have asked.
fn meet_in_a_ring(members: &[(Deck, Contact)]) {
    let next = |place: usize| (place + 1) % members.len();
    std::thread::scope(|threads| {
        let reaching: Vec<_> = (0..members.len())
            .map(|place| {
                let peer = members[next(place)].1.id;
                threads.spawn(move || members[place].0.process.reach_life(peer))
            })
            .collect();
        for (_, contact) in members {
            eventually("a request", || contact.asked());
        }
        for place in 0..members.len() {
            // Two who ask for each other are introduced once.
            if members.len() > 2 || place == 0 {
                introduce(&members[place].1, &members[next(place)].1);
            }
        }
        for (place, reached) in reaching.into_iter().enumerate() {
            let path = reached.join().unwrap().unwrap();
            assert_eq!(path.peer(), members[next(place)].1.id);
            assert!(matches!(path, Path::Memory(_)) && !path.is_ended());
        }
    });
}

#[test]
fn two_processes_that_reach_each_other_at_once_are_linked() {
    for round in 0..10 {
        let members = [0, 1].map(|rank| member(life(rank, round), 2));
        meet_in_a_ring(&members);
    }
}

#[test]
fn three_processes_that_reach_each_other_in_a_cycle_are_linked() {
    for round in 0..10 {
        let members = [0, 1, 2].map(|rank| member(life(rank, round), 3));
        meet_in_a_ring(&members);
    }
}

#[test]
fn keepers_that_answer_each_others_floods_never_wait_for_each_other() {
    const THREADS: usize = 4;
    const LANES: usize = 150;
    let members = [0, 1].map(|rank| member(life(rank, 0), 2));
    let inboxes = members.each_ref().map(|(deck, _)| deck.mailbox().unwrap());
    introduce(&members[0].1, &members[1].1);
    std::thread::scope(|threads| {
        for (place, (deck, _)) in members.iter().enumerate() {
            let other = members[1 - place].1.id;
            for _ in 0..THREADS {
                threads.spawn(move || {
                    // Each opening and each end of a lane is a packet to the other keeper; each opening has an answer.
                    for _ in 0..LANES {
                        let mut sender = mailbox_at(deck, other, 0).sender().unwrap();
                        sender.send(&1u8).unwrap();
                    }
                });
            }
        }
        for inbox in &inboxes {
            for _ in 0..THREADS * LANES {
                assert_eq!(inbox.receive::<u8>().unwrap(), 1);
            }
        }
    });
}
