//! Posts that race with the end of their link.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use mizzen_proto::membership::Pace;
use mizzen_shm::Socket;

use super::bed::{eventually, introduce, life, link_to, mailbox_at, member};
use crate::address::MailboxRef;
use crate::error::{Departure, Error, PostError, RetrieveError};
use crate::host::Launched;
use crate::host::keeper::Keeper;
use crate::message::Message;
use crate::process::Neighbours;
use crate::rank::ProcessId;
use crate::testing::Deck;

const ROUNDS: u32 = 150;
const LONG: usize = 150 << 10;

/// One post of each kind; the thread that posts it does so until it is refused.
type Post = fn(&Deck, &MailboxRef) -> crate::error::Result<()>;

const POSTS: [Post; 6] = [
    |_, to| to.send(&7u64),
    |_, to| to.send(&[7u8; 2000]),
    |_, to| to.send(&vec![7u8; LONG][..]),
    |deck, to| to.post_lent(&7u8, deck.lend::<u8>(4096).unwrap()),
    |_, to| {
        let (long, mut message) = (vec![7u8; LONG], Message::new());
        message.pack_safer(&long[..]);
        to.post_timeout(&mut message, Duration::from_secs(30))
    },
    |deck, to| {
        let (long, mut message) = (vec![7u8; LONG], Message::new());
        message.pack_safer(&long[..]);
        message.pack_lent(deck.lend::<u8>(4096).unwrap());
        to.post(&mut message)
    },
];

/// Posts of all kinds at once, and the link ends after some of them.
fn post_until_the_end(deck: &Deck, to: ProcessId, after: u32, how: Departure) {
    let link = link_to(deck, to);
    let (posted, begun) = (AtomicU32::new(0), Barrier::new(POSTS.len() + 1));
    let (posted, begun) = (&posted, &begun);
    std::thread::scope(|threads| {
        let posters = POSTS.map(|post| {
            threads.spawn(move || {
                // The path is open before the link ends: who opens one later waits for the agent.
                let to = mailbox_at(deck, to, 0);
                let first = post(deck, &to);
                begun.wait();
                first.unwrap();
                loop {
                    if let Err(error) = post(deck, &to) {
                        return error;
                    }
                    posted.fetch_add(1, Ordering::Relaxed);
                }
            })
        });
        begun.wait();
        eventually("some posts", || {
            (posted.load(Ordering::Relaxed) >= after).then_some(())
        });
        deck.process.end_link(&link, how);
        for poster in posters {
            let error = poster.join().unwrap();
            assert!(
                matches!(error, crate::error::Error::Post(PostError::PeerGone(_))),
                "{error}"
            );
        }
    });
}

#[test]
fn posts_that_race_with_a_death_return_and_leave_no_block_behind() {
    let (deck, us) = member(life(0, 0), 2);
    for round in 0..ROUNDS {
        let (other, it) = member(life(1, round), 2);
        let _unread = other.mailbox().unwrap();
        introduce(&us, &it);
        post_until_the_end(&deck, it.id, round % 60, Departure::Died);
        assert_eq!(deck.process.links.arena.in_use(), 0, "round {round}");
    }
}

#[test]
fn posts_that_race_with_a_leaving_reader_return_and_leave_no_block_behind() {
    let (deck, us) = member(life(0, 0), 2);
    for round in 0..ROUNDS {
        let (other, it) = member(life(1, round), 2);
        let inbox = other.mailbox().unwrap();
        introduce(&us, &it);
        let back = link_to(&other, us.id);
        let stop = AtomicBool::new(false);
        let stop = &stop;
        let inbox = std::thread::scope(|threads| {
            let reader = threads.spawn(move || {
                while !stop.load(Ordering::Acquire) {
                    // What the writer abandoned cannot be read; what it lent goes back all the same.
                    if let Ok(Some(mut incoming)) = inbox.try_retrieve() {
                        let _ = incoming.unpack_vec::<u8>();
                    }
                }
                inbox
            });
            post_until_the_end(&deck, it.id, 4 * (round % 60), Departure::Left);
            stop.store(true, Ordering::Release);
            reader.join().unwrap()
        });
        other.process.end_link(&back, Departure::Left);
        drop(inbox);
        // A slab may still be on its way to who discards what is in it.
        eventually("all blocks are free", || {
            (deck.process.links.arena.in_use() == 0).then_some(())
        });
    }
}

#[test]
fn a_lane_that_ends_does_not_tell_of_a_death_before_what_the_dead_had_posted_elsewhere() {
    let (deck, us) = member(life(0, 0), 2);
    let (other, it) = member(life(1, 0), 2);
    let inbox = deck.mailbox().unwrap();
    introduce(&us, &it);
    let to = mailbox_at(&other, us.id, 0);
    let mut sender = to.sender().unwrap();
    sender.send(&1u64).unwrap();
    assert_eq!(inbox.receive::<u64>().unwrap(), 1);
    to.send(&2u64).unwrap();
    // The keeper is interrupted when it has begun to end the link.
    let link = link_to(&deck, it.id);
    link.end(Departure::Died);
    let mut incoming = inbox.try_retrieve().unwrap().expect("what was posted");
    assert_eq!(incoming.unpack_express::<u64>().unwrap(), 2);
    drop(incoming);
    assert!(inbox.try_retrieve().unwrap().is_none());
    deck.process.end_link(&link, Departure::Died);
    let told = inbox.try_retrieve().map(drop).unwrap_err();
    assert!(
        matches!(told, Error::Retrieve(RetrieveError::PeerGone(gone)) if gone.process() == it.id),
        "{told}"
    );
}

#[test]
fn a_process_that_leaves_is_as_patient_as_agents_are() {
    let (ours, _agent) = Socket::pair().unwrap();
    let keeper = Keeper::new(ours, false).unwrap();
    let patience = |pace| Launched::new(&keeper, pace).leave_patience().as_secs();
    let paces = [Pace::ALONE, Pace::FAST, Pace::DEFAULT, Pace::PATIENT];
    assert_eq!(paces.map(patience), [30, 30, 30, 162]);
}
