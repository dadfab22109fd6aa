//! Waiting until what was posted is with those it was posted to.

use std::time::Duration;

use mizzen::{Error, FlushError};

use super::{Job, inbox_of};

pub(crate) fn what_was_flushed_outlives_its_sender(job: &Job<'_>) {
    job.run_losing(1, 2, |deck| {
        if deck.rank() == 0 {
            let inbox = inbox_of(&deck, "inbox")?;
            for number in 0..1000u64 {
                let got = inbox.retrieve()?.unpack_vec::<u64>()?;
                assert_eq!(got, vec![number; got.len()]);
            }
            let error = inbox.retrieve().unwrap_err();
            assert_eq!(error.lost(), Some(1.into()));
            return Ok(());
        }
        let address = deck.fetch("inbox")?;
        for number in 0..1000u64 {
            let len = if number % 100 == 99 { 40_000 } else { 64 };
            address.send(&vec![number; len][..])?;
        }
        deck.flush()?;
        job.die((deck, address))
    });
}

pub(crate) fn a_flush_waits_for_a_reader_and_no_longer_than_it_may(job: &Job<'_>) {
    const MESSAGES: u32 = 2000;
    job.run(2, |deck| {
        let go = inbox_of(&deck, &format!("go {}", deck.rank()))?;
        if deck.rank() == 0 {
            let inbox = inbox_of(&deck, "inbox")?;
            go.receive::<u8>()?;
            for number in 0..MESSAGES {
                assert_eq!(inbox.retrieve()?.unpack_vec::<u32>()?, vec![number; 1000]);
            }
            return Ok(());
        }
        let (address, start) = (deck.fetch("inbox")?, deck.fetch("go 0")?);
        for number in 0..MESSAGES {
            address.send(&[number; 1000])?;
        }
        // More than a mailbox grants, so that some of it waits here.
        let error = deck.flush_timeout(Duration::from_millis(50)).unwrap_err();
        let Error::Flush(FlushError::TimedOut { rank, messages, .. }) = error else {
            panic!("{error}")
        };
        assert_eq!(rank, 0);
        assert!((1..=MESSAGES.into()).contains(&messages), "{messages}");
        start.send(&1u8)?;
        deck.flush()
    });
}
