//! Posted receives into memory that a scope borrows.

use std::panic::{AssertUnwindSafe, catch_unwind};

use mizzen::{Deck, Error, Mailbox, MailboxRef, Result, RetrieveError, UnpackError};

use super::{Job, bytes, meet, pair};

/// One of each way that a message goes: one slot, the ring of a lane, chunks or a pushed body, an offered one, one in parts.
const LENGTHS: [usize; 5] = [8, 5_000, 120_000, 6 << 20, 10 << 20];

pub(crate) fn memory_of_a_scope_is_filled_by_the_messages_that_come(job: &Job<'_>) {
    let receive = |deck: &Deck, inbox: Mailbox| {
        let mut memory = LENGTHS.map(|len| vec![9u8; len + 1]);
        deck.scope(|scope| {
            let post = |memory| scope.post_receive(&inbox, memory);
            let posted: Vec<_> = memory.each_mut().map(|memory| post(&mut memory[..])).into();
            assert!(!posted[0].is_done());
            meet(deck, "posted")?;
            for (posted, len) in posted.into_iter().zip(LENGTHS) {
                let filled = posted.wait()?;
                assert_eq!((filled.count(), filled.source().0), (len, 1));
            }
            Ok::<_, Error>(())
        })?;
        for (number, memory) in memory.iter().enumerate() {
            let len = LENGTHS[number];
            assert!(memory[..len] == bytes(number, len)[..] && memory[len] == 9);
        }
        meet(deck, "received")
    };
    pair(job, receive, |deck, address| {
        meet(deck, "posted")?;
        send_all(&address)?;
        meet(deck, "received")
    });
}

fn send_all(address: &MailboxRef) -> Result<()> {
    let lengths = LENGTHS.into_iter().enumerate();
    lengths
        .into_iter()
        .try_for_each(|(number, len)| address.send(&bytes(number, len)[..]))
}

pub(crate) fn the_end_of_a_scope_waits_for_its_receives(job: &Job<'_>) {
    let receive = |deck: &Deck, inbox: Mailbox| {
        let mut memory = LENGTHS.map(|len| vec![0u8; len]);
        deck.scope(|scope| {
            for memory in &mut memory {
                scope.post_receive_from(&inbox, 1, memory)?;
            }
            let nobody = scope.post_receive_from(&inbox, 2, &mut [0u8; 0]);
            let expected = RetrieveError::NoSuchRank {
                rank: 2.into(),
                size: 2,
            };
            assert_eq!(nobody.unwrap_err().to_string(), expected.to_string());
            meet(deck, "posted")
        })?;
        for (number, memory) in memory.iter().enumerate() {
            assert!(*memory == bytes(number, LENGTHS[number]));
        }
        meet(deck, "received")
    };
    pair(job, receive, |deck, address| {
        meet(deck, "posted")?;
        send_all(&address)?;
        meet(deck, "received")
    });
}

pub(crate) fn a_receive_of_a_scope_that_is_cancelled_leaves_its_message_to_the_next(job: &Job<'_>) {
    let receive = |deck: &Deck, inbox: Mailbox| {
        let (mut first, mut second) = ([0u32; 2], [0u32; 2]);
        deck.scope(|scope| {
            let withdrawn = scope.post_receive(&inbox, &mut first);
            let posted = scope.post_receive(&inbox, &mut second);
            withdrawn.cancel().expect("no message is for it");
            meet(deck, "posted")?;
            let posted = match posted.is_done() {
                true => posted.cancel().expect_err("it has a message"),
                false => posted,
            };
            assert_eq!(posted.wait()?.count(), 1);
            Ok::<_, Error>(())
        })?;
        assert_eq!((first, second), ([0; 2], [7, 0]));
        assert_eq!(inbox.receive::<u32>()?, 8);
        meet(deck, "received")
    };
    pair(job, receive, |deck, address| {
        meet(deck, "posted")?;
        address.send(&7u32)?;
        address.send(&8u32)?;
        meet(deck, "received")
    });
}

pub(crate) fn a_panic_in_a_scope_withdraws_its_receives(job: &Job<'_>) {
    let receive = |deck: &Deck, inbox: Mailbox| {
        let mut memory = vec![5u8; 10 << 20];
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            deck.scope(|scope| {
                scope.post_receive(&inbox, &mut memory[..]);
                std::panic::panic_any(7u8);
            })
        }));
        assert!(outcome.is_err_and(|panic| panic.is::<u8>()));
        // Nobody has the memory, and the message is nobody's.
        memory.fill(6);
        meet(deck, "withdrawn")?;
        assert!(inbox.receive_vec::<u8>()? == bytes(1, 10 << 20));
        assert!(memory.iter().all(|byte| *byte == 6));
        // One that a message is on its way to.
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            deck.scope(|scope| {
                let posted = scope.post_receive(&inbox, &mut memory[..]);
                meet(deck, "posted").expect("both are here");
                let _ = posted.is_done();
                std::panic::panic_any(7u8);
            })
        }));
        assert!(outcome.is_err_and(|panic| panic.is::<u8>()));
        memory.fill(8);
        // It is lost if it was for that receive, and otherwise the next one.
        let mut next = inbox.retrieve()?;
        if next.next_len() != Some(3) {
            assert!(next.unpack_vec::<u8>()? == bytes(2, 10 << 20));
            next = inbox.retrieve()?;
        }
        assert_eq!(next.unpack_express::<[u8; 3]>()?, [1, 2, 3]);
        assert!(memory.iter().all(|byte| *byte == 8));
        meet(deck, "received")
    };
    pair(job, receive, |deck, address| {
        meet(deck, "withdrawn")?;
        address.send(&bytes(1, 10 << 20)[..])?;
        meet(deck, "posted")?;
        address.send(&bytes(2, 10 << 20)[..])?;
        address.send(&[1u8, 2, 3])?;
        meet(deck, "received")
    });
}

pub(crate) fn what_does_not_fit_memory_of_a_scope_is_retrieved(job: &Job<'_>) {
    let receive = |deck: &Deck, inbox: Mailbox| {
        let mut memory = [0u8; 10];
        let outcome = deck.scope(|scope| scope.post_receive(&inbox, &mut memory).wait());
        assert!(
            matches!(
                outcome,
                Err(Error::Unpack(UnpackError::TooLong {
                    room: 10,
                    found: 1000
                }))
            ),
            "{outcome:?}"
        );
        assert_eq!(inbox.receive_vec::<u8>()?, bytes(1, 1000));
        meet(deck, "received")
    };
    pair(job, receive, |deck, address| {
        address.send(&bytes(1, 1000)[..])?;
        meet(deck, "received")
    });
}
