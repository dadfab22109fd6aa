//! Ranks that leave, fail or die, and what the others hear of it.

use std::time::Duration;

use mizzen::{Departure, Error, PostError, RetrieveError};

use super::{Ended, Job, inbox_of};

pub(crate) fn a_rank_that_fails_is_named_to_those_who_heard_from_it(job: &Job<'_>) {
    let ended = job.run_losing(1, 2, |deck| {
        if deck.rank() == 1 {
            deck.fetch("inbox")?.send(&1u8)?;
            return Err(Error::Program("rank 1 gives up".into()));
        }
        let inbox = inbox_of(&deck, "inbox")?;
        assert_eq!(inbox.receive::<u8>()?, 1);
        let error = inbox.retrieve().unwrap_err();
        assert_eq!(error.lost(), Some(1.into()));
        Ok(())
    });
    assert_eq!(ended, Ended::Failed("rank 1 gives up".into()));
}

/// Stricter than among processes, because a test must not wait for ever: see docs/design/leaving-is-not-dying.md.
pub(crate) fn a_rank_that_fails_is_named_to_those_who_wait_for_it(job: &Job<'_>) {
    let ended = job.run_losing(2, 3, |deck| {
        let inbox = deck.mailbox()?;
        match deck.rank().0 {
            0 => {
                let error = inbox.retrieve().unwrap_err();
                assert_eq!(error.lost(), Some(2.into()));
                Ok(())
            }
            1 => {
                let error = deck
                    .fetch_timeout("never", Duration::from_secs(1))
                    .map(drop);
                assert!(error.is_err());
                Ok(())
            }
            _ => Err(Error::Program("rank 2 gives up".into())),
        }
    });
    assert_eq!(ended, Ended::Failed("rank 2 gives up".into()));
}

pub(crate) fn what_a_process_sent_before_it_left_is_retrieved_first(job: &Job<'_>) {
    job.run(2, |deck| {
        if deck.rank() == 0 {
            let inbox = inbox_of(&deck, "inbox")?;
            inbox.depend_on(1);
            for number in 0..100u32 {
                assert_eq!(inbox.receive::<u32>()?, number);
            }
            let Err(Error::Retrieve(RetrieveError::PeerGone(gone))) = inbox.retrieve() else {
                panic!("rank 1 left")
            };
            assert_eq!((gone.rank(), gone.how()), (1.into(), Departure::Left));
            let again = inbox.retrieve_timeout(Duration::from_millis(20));
            assert!(
                matches!(again, Err(Error::Retrieve(RetrieveError::TimedOut { .. }))),
                "it is said once"
            );
        } else {
            let address = deck.fetch("inbox")?;
            for number in 0..100u32 {
                address.send(&number)?;
            }
        }
        Ok(())
    });
}

pub(crate) fn a_rank_that_dies_fails_those_who_post_to_it_and_those_who_wait_for_it(job: &Job<'_>) {
    job.run_losing(2, 3, |deck| {
        let inbox = deck.mailbox()?;
        deck.bind(&format!("inbox {}", deck.rank()), &inbox)?;
        match deck.rank().0 {
            0 => {
                let address = deck.fetch("unread")?;
                let long = vec![1u8; 4 << 20];
                deck.fetch("inbox 2")?.send(&1u8)?;
                // Memory takes some of them before it has to wait.
                let refused = (0..1000).find_map(|_| address.send(&long[..]).err());
                assert!(
                    matches!(refused, Some(Error::Post(PostError::PeerGone(_)))),
                    "{refused:?}"
                );
                assert!(address.send(&1u8).is_err());
            }
            1 => {
                assert_eq!(inbox.receive::<u8>()?, 5);
                deck.fetch("inbox 2")?.send(&1u8)?;
                let error = inbox.retrieve().unwrap_err();
                assert_eq!(error.lost(), Some(2.into()));
            }
            _ => {
                let unread = deck.mailbox()?;
                deck.bind("unread", &unread)?;
                deck.fetch("inbox 1")?.send(&5u8)?;
                let _ = (inbox.receive::<u8>()?, inbox.receive::<u8>()?);
                return job.die((inbox, unread));
            }
        }
        Ok(())
    });
}

pub(crate) fn what_was_posted_just_before_leaving_arrives(job: &Job<'_>) {
    job.repeat(3, |deck| {
        if deck.rank() == 0 {
            let inbox = deck.mailbox()?;
            deck.bind("inbox", &inbox)?;
            let mut sums = [0u64; 2];
            for _ in 0..400 {
                let mut incoming = inbox.retrieve()?;
                let from = incoming.source().0 as usize - 1;
                sums[from] += incoming.unpack_vec::<u64>()?[0];
            }
            assert_eq!(sums, [199 * 100; 2]);
        } else {
            let address = deck.fetch("inbox")?;
            for number in 0..200u64 {
                address.send(&[number; 64])?;
            }
        }
        Ok(())
    });
}

pub(crate) fn a_peer_that_left_is_named_with_how_it_went(job: &Job<'_>) {
    job.run(2, |deck| {
        let inbox = deck.mailbox()?;
        deck.bind(&format!("inbox {}", deck.rank()), &inbox)?;
        if deck.rank() == 0 {
            let address = deck.fetch("inbox 1")?;
            inbox.depend_on(1);
            address.send(&1u8)?;
            let Err(Error::Retrieve(RetrieveError::PeerGone(gone))) = inbox.retrieve() else {
                panic!("rank 1 left")
            };
            assert_eq!((gone.rank(), gone.how()), (1.into(), Departure::Left));
            let Err(Error::Post(PostError::PeerGone(gone))) = address.send(&1u8) else {
                panic!("rank 1 left")
            };
            assert_eq!(gone.how(), Departure::Left);
        } else {
            assert_eq!(inbox.receive::<u8>()?, 1);
        }
        Ok(())
    });
}
