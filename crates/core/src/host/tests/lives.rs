//! Several lives of one rank.

use std::time::Duration;

use mizzen_proto::boot::{Death, ToProcess};

use super::bed::{eventually, introduce, life, link_to, mailbox_at, member};
use crate::error::{Error, RetrieveError};
use crate::rank::{ProcessId, Rank};

#[test]
fn a_new_life_is_reached_while_the_link_to_the_old_one_stands() {
    let (deck, us) = member(life(0, 0), 2);
    let (_old, before) = member(life(1, 0), 2);
    let (_new, after) = member(life(1, 1), 2);
    introduce(&us, &before);
    let old_link = link_to(&deck, before.id);
    std::thread::scope(|threads| {
        let reached = threads.spawn(|| deck.process.reach_life(after.id));
        us.tell(&joined(after.id), &[]);
        eventually("a request, or an answer without one", || {
            us.asked().map(drop).or(reached.is_finished().then_some(()))
        });
        introduce(&us, &after);
        let path = reached.join().unwrap().unwrap();
        assert_eq!(path.peer(), after.id);
    });
    assert!(
        !old_link.fate.is_ended(),
        "nobody said that the old life is over"
    );
}

#[test]
fn an_older_life_that_is_met_late_does_not_take_the_place_of_the_newer_one() {
    let (deck, us) = member(life(0, 0), 2);
    let (_old, before) = member(life(1, 0), 2);
    let (_new, after) = member(life(1, 1), 2);
    introduce(&us, &after);
    let newer = link_to(&deck, after.id);
    introduce(&us, &before);
    eventually("both links", || {
        (deck.process.links.all().1.len() == 2).then_some(())
    });
    let known = deck.process.reach_life(after.id).unwrap();
    assert_eq!((known.peer(), newer.peer), (after.id, after.id));
}

#[test]
fn a_life_before_the_one_that_is_linked_has_died() {
    let (deck, us) = member(life(0, 0), 2);
    let (_new, after) = member(life(1, 1), 2);
    introduce(&us, &after);
    link_to(&deck, after.id);
    let error = deck.process.reach_life(life(1, 0)).unwrap_err();
    assert!(
        matches!(&error, crate::ReachError::Gone(gone) if gone.process() == life(1, 0)),
        "{error}"
    );
}

#[test]
fn the_end_of_a_life_is_told_before_what_the_next_one_sent() {
    for posts_before in [true, false] {
        let (deck, us) = member(life(0, 0), 2);
        let inbox = deck.mailbox().unwrap();
        inbox.depend_on(1);
        let (old, before) = member(life(1, 0), 2);
        introduce(&us, &before);
        link_to(&old, us.id);
        let mut sender = mailbox_at(&old, us.id, 0).sender().unwrap();
        if posts_before {
            sender.send(&1u64).unwrap();
        }
        us.tell(&died(life(1, 0)), &[]);
        eventually("the news of its end", || {
            deck.process.peers.latest_gone(Rank(1))
        });
        let (new, after) = member(life(1, 1), 2);
        introduce(&us, &after);
        link_to(&new, us.id);
        // Over both ways, and while the lanes of the old life are full or were just looked at.
        let to_us = mailbox_at(&new, us.id, 0);
        to_us.send(&2u64).unwrap();
        to_us.sender().unwrap().send(&2u64).unwrap();
        let heard: Vec<Option<u64>> = (0..3 + usize::from(posts_before))
            .map(|_| match inbox.retrieve_timeout(Duration::from_secs(20)) {
                Ok(mut incoming) => Some(incoming.unpack_express::<u64>().unwrap()),
                Err(Error::Retrieve(RetrieveError::PeerGone(gone))) => {
                    assert_eq!(gone.process(), life(1, 0));
                    None
                }
                Err(error) => panic!("{error}"),
            })
            .collect();
        let expected = [Some(1), None, Some(2), Some(2)];
        assert_eq!(heard, expected[usize::from(!posts_before)..]);
    }
}

fn died(life: ProcessId) -> ToProcess {
    ToProcess::Died {
        rank: life.rank.0,
        incarnation: life.incarnation.0,
        how: Death::Signal(9),
    }
}

fn joined(life: ProcessId) -> ToProcess {
    ToProcess::Joined {
        rank: life.rank.0,
        incarnation: life.incarnation.0,
    }
}
