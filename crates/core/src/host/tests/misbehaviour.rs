//! What is left of a peer that misbehaved, or left with something that is not its own.
#![allow(unsafe_code)]

use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::bed::{eventually, introduce, life, link_to, live_on, mailbox_at, member, peer};
use crate::error::{Departure, PostError, RetrieveError};
use crate::testing::Deck;

/// Long enough to be announced and written through the arena.
const LONG: usize = 300 << 10;

#[test]
fn after_misbehaviour_the_link_is_cleaned_its_users_are_told_and_others_are_served() {
    let (deck, us) = member(life(0, 0), 3);
    let (other, third) = member(life(2, 0), 3);
    let inbox = deck.mailbox().unwrap();
    let (mut process, it) = peer("misbehaves", life(1, 0), 3);
    introduce(&us, &it);
    introduce(&us, &third);
    assert_eq!(inbox.receive::<u8>().unwrap(), 1, "the peer is ready");
    let link = link_to(&deck, it.id);
    let (served, silent) = (mailbox_at(&deck, it.id, 0), mailbox_at(&deck, it.id, 1));
    // It holds a lent buffer and a long message.
    served
        .post_lent(&0u8, deck.lend::<u8>(4096).unwrap())
        .unwrap();
    silent.send(&vec![7u8; LONG][..]).unwrap();
    std::thread::scope(|threads| {
        let until_refused = |mut post: Box<dyn FnMut() -> crate::error::Result<()> + Send>| {
            threads.spawn(move || {
                loop {
                    if let Err(error) = post() {
                        return error;
                    }
                }
            })
        };
        let mut sender = silent.sender().unwrap();
        let shared = silent.clone();
        let waiting = [
            until_refused(Box::new(move || sender.send(&0u64))),
            until_refused(Box::new(move || shared.send(&0u64))),
        ];
        served.send(&0u8).unwrap();
        let gone = eventually("the news", || match inbox.try_retrieve() {
            Err(crate::error::Error::Retrieve(RetrieveError::PeerGone(gone))) => Some(gone),
            Ok(None) => None,
            other => panic!("{other:?}"),
        });
        assert_eq!((gone.process(), gone.how()), (it.id, Departure::Misbehaved));
        for poster in waiting {
            let error = poster.join().unwrap();
            assert!(
                matches!(error, crate::error::Error::Post(PostError::PeerGone(_))),
                "{error}"
            );
        }
    });
    assert!(matches!(
        silent.send(&0u8),
        Err(crate::error::Error::Post(PostError::PeerGone(_)))
    ));
    let links = deck.process.links.all().1;
    assert!(links.iter().all(|other| !Arc::ptr_eq(other, &link)));
    assert!(link.borrower.is_idle());
    assert!(!link.has_behind());

    let theirs = other.mailbox().unwrap();
    mailbox_at(&deck, third.id, 0).send(&5u8).unwrap();
    assert_eq!(theirs.receive::<u8>().unwrap(), 5, "others are served");
    mailbox_at(&other, us.id, 0).send(&6u8).unwrap();
    assert_eq!(inbox.receive::<u8>().unwrap(), 6);

    assert_ne!(
        deck.process.links.arena.in_use(),
        0,
        "it may still read them"
    );
    process.kill();
    eventually("what it held is free when it is dead", || {
        (deck.process.links.arena.in_use() == 0).then_some(())
    });
}

/// The peer: holds what it was lent, and when it is asked to, writes nonsense where the next message of its lane would be.
pub(super) fn misbehave(deck: &Deck) {
    let inbox = deck.mailbox().unwrap();
    let _silent = deck.mailbox().unwrap();
    let to = mailbox_at(deck, life(0, 0), 0);
    to.send(&1u8).unwrap();
    let _held = inbox.receive_lent::<u8, u8>().unwrap();
    inbox.receive::<u8>().unwrap();
    let link = link_to(deck, life(0, 0));
    let slots = link.lane.ring().sender_memory();
    for position in 0..64u64 {
        // Announced, but of no kind that there is.
        let word = (position + 1) | 9 << 32;
        // SAFETY: this is just what a peer may not do. The one that reads it loads each word once, and atomically.
        unsafe { slots.copy_in(64 * position as usize + 128 + 56, &word.to_ne_bytes()) };
    }
    live_on();
}

#[test]
fn what_a_process_that_left_never_gave_back_is_free_when_it_has_ended() {
    leaves_with_a_loan(|| (), || ());
}

#[test]
fn the_same_if_no_descriptor_was_free_when_it_left() {
    if std::env::var_os("NEXTEST").is_none() {
        // Others of this process need descriptors.
        return;
    }
    let limit = getrlimit(Resource::Nofile);
    let none = Rlimit {
        current: Some(0),
        ..limit
    };
    leaves_with_a_loan(
        || setrlimit(Resource::Nofile, none).unwrap(),
        || setrlimit(Resource::Nofile, limit).unwrap(),
    );
}

/// A process leaves with a buffer of ours: what is done just before, and when its end was noticed.
fn leaves_with_a_loan(before: impl FnOnce(), after: impl FnOnce()) {
    let (deck, us) = member(life(0, 0), 2);
    let inbox = deck.mailbox().unwrap();
    let (mut process, it) = peer("leaves", life(1, 0), 2);
    introduce(&us, &it);
    assert_eq!(inbox.receive::<u8>().unwrap(), 1, "the peer is ready");
    let link = link_to(&deck, it.id);
    let lent = deck.lend::<u8>(4096).unwrap();
    let to = mailbox_at(&deck, it.id, 0);
    before();
    to.post_lent(&0u8, lent).unwrap();
    eventually("it leaves", || link.fate.is_ended().then_some(()));
    // The keeper asks for its descriptor about now; what must hold does not depend on whether it did.
    std::thread::sleep(Duration::from_millis(10));
    after();
    assert_ne!(deck.process.links.arena.in_use(), 0, "it may still read it");
    process.kill();
    eventually("what it held is free when it is dead", || {
        (deck.process.links.arena.in_use() == 0).then_some(())
    });
}

/// The peer: keeps what it was lent, and leaves the job.
pub(super) fn leave_with_a_loan(deck: Deck) {
    let inbox = deck.mailbox().unwrap();
    mailbox_at(&deck, life(0, 0), 0).send(&1u8).unwrap();
    let _held = inbox.receive_lent::<u8, u8>().unwrap();
    drop((inbox, deck));
    live_on();
}
