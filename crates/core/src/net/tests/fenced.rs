//! Processes that live although the others were told that they are dead.

use std::sync::{Barrier, Mutex};
use std::time::{Duration, Instant};

use mizzen_proto::boot::Death;
use mizzen_proto::membership::Epoch;

use super::inbox_of;
use crate::error::{Departure, Error, ReachError, RetrieveError};
use crate::lock::lock;
use crate::progress::Progress;
use crate::rank::{Incarnation, ProcessId, Rank};
use crate::testing::{Deck, local_over_tcp};

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(10)
}

/// What rank 0 does with what comes behind the verdict on rank 1, which goes on posting.
#[test]
fn nothing_of_a_lost_host_s_process_comes_behind_the_verdict() {
    let judged = Barrier::new(2);
    local_over_tcp(2, |deck| {
        let inbox = inbox_of(&deck)?;
        if deck.rank() == 1 {
            let address = deck.fetch("inbox 0")?;
            // Until it is refused.
            let refused = (0u64..).find_map(|number| address.send(&number).err());
            assert!(refused.is_some());
            judged.wait();
            return Ok(());
        }
        for number in 0..100 {
            assert_eq!(inbox.receive::<u64>()?, number);
        }
        let life = ProcessId::new(Rank(1), Incarnation(0));
        deck.process.process_failed(life, Death::HostLost);
        // What came before it is still there to be read; then the news, then nothing.
        let gone = loop {
            match inbox.retrieve() {
                Ok(_) => (),
                Err(Error::Retrieve(RetrieveError::PeerGone(gone))) => break gone,
                Err(error) => panic!("{error}"),
            }
        };
        assert_eq!(gone.to_string(), "rank 1 died: its host was lost");
        judged.wait();
        let late = inbox.retrieve_timeout(Duration::from_millis(100));
        assert!(late.is_err(), "a message came behind the verdict");
        Ok(())
    })
    .unwrap();
}

/// Rank 1 connects to rank 0 after `prepare` was done with rank 0: `expected` looks at what becomes of it there.
fn connect_after(prepare: impl Fn(&Deck) + Sync, expected: impl Fn(&Deck, &str) + Sync) {
    let [prepared, done] = [(); 2].map(|()| Barrier::new(2));
    let locator = Mutex::new(String::new());
    local_over_tcp(2, |deck| {
        let engine = deck.process.networks.get().unwrap().first();
        if deck.rank() == 0 {
            prepare(&deck);
            engine.locator().clone_into(&mut lock(&locator));
            prepared.wait();
        } else {
            prepared.wait();
            expected(&deck, &lock(&locator));
        }
        done.wait();
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_life_that_had_ended_before_we_began_is_told_so_when_it_connects() {
    let prepare = |deck: &Deck| {
        deck.process.lives_ended(Rank(1), Rank(1), Incarnation(0));
        deck.process.epoch_told(Epoch(3));
    };
    connect_after(prepare, |deck, locator| {
        let engine = deck.process.networks.get().unwrap().first();
        let peer = ProcessId::new(Rank(0), Incarnation(0));
        let deadline = soon();
        // The link is there for a moment, or never was.
        let met = engine.connect(peer, locator, deadline);
        while deck.process.peers.gone(peer).is_none() && Instant::now() < deadline {
            deck.process.poll_networks();
        }
        let gone = deck.process.peers.gone(peer).unwrap();
        assert!(
            met.is_ok() || met.as_ref().err() == Some(&ReachError::Gone(gone)),
            "{met:?}"
        );
        assert_eq!(gone.how(), Departure::Refused);
        assert_eq!(
            gone.to_string(),
            "rank 0 takes nothing of this process any more: it was told that this process is dead"
        );
    });
}

#[test]
fn who_is_not_fenced_is_taken() {
    let prepare = |deck: &Deck| {
        deck.process.epoch_told(Epoch(3));
    };
    connect_after(prepare, |deck, locator| {
        let engine = deck.process.networks.get().unwrap().first();
        let peer = ProcessId::new(Rank(0), Incarnation(0));
        let link = engine.connect(peer, locator, soon()).unwrap();
        let deadline = soon();
        while !link.session().session.is_connected() && Instant::now() < deadline {
            deck.process.poll_networks();
        }
        assert!(!link.is_ended());
    });
}
