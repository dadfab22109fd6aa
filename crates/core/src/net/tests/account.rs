//! What a sender is told of messages that a lost peer did not take, beside what that peer got.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};

use mizzen_proto::boot::Death;

use super::inbox_of;
use crate::error::{Error, FlushError, RetrieveError};
use crate::rank::{Incarnation, ProcessId, Rank};
use crate::testing::local_over_tcp;

/// Rank 0 reads nothing before rank 1 is told that it is lost, so that of what rank 1 posts some is there, some is on its way, and
/// some waits for credits, or for its reader.
fn compare(messages: u64, words: impl Fn(u64) -> usize + Sync) {
    let [lost, counted] = [(); 2].map(|()| Barrier::new(2));
    let got = AtomicU64::new(0);
    local_over_tcp(2, |deck| {
        let inbox = inbox_of(&deck)?;
        if deck.rank() == 0 {
            lost.wait();
            let ended = loop {
                match inbox.receive_vec::<u64>() {
                    Ok(_) => drop(got.fetch_add(1, Ordering::SeqCst)),
                    Err(Error::Unpack(_)) => (),
                    Err(error) => break error,
                }
            };
            let is_news = matches!(ended, Error::Retrieve(RetrieveError::PeerGone(_)));
            assert!(is_news, "{ended}");
            counted.wait();
            return Ok(());
        }
        let address = deck.fetch("inbox 0")?;
        for number in 0..messages {
            address.send(&vec![number; words(number)][..])?;
        }
        let life = ProcessId::new(Rank(0), Incarnation(0));
        deck.process.process_failed(life, Death::HostLost);
        let told = deck.process.flush(None);
        let Err(FlushError::PeerGone {
            gone,
            messages: untaken,
            uncertain,
        }) = told
        else {
            panic!("{told:?}")
        };
        assert!(gone.is_host_lost());
        lost.wait();
        counted.wait();
        let got = got.load(Ordering::SeqCst);
        let least = messages - untaken;
        assert!(
            (least..=least + uncertain).contains(&got),
            "{untaken} of {messages} were not taken, {uncertain} of them perhaps, and {got} came"
        );
        Ok(())
    })
    .unwrap();
}

#[test]
fn messages_that_waited_for_credits_were_not_taken() {
    compare(20_000, |_| 1);
}

#[test]
fn messages_whose_bodies_did_not_come_were_not_taken() {
    compare(60, |number| match number % 3 {
        0 => 1,
        1 => 12_000,
        _ => 100_000,
    });
}
