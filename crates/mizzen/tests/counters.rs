//! What is counted of each kind of object.

use std::sync::Barrier;
use std::time::{Duration, Instant};

use mizzen::{Deck, MailboxRef, Message, PostError, Result};

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(30);
const COUNT: u64 = 1000;
/// The first mailbox that a program makes: those before it every process has.
const FIRST: &str = "mailbox 3";

/// A counter of all objects whose name begins so.
fn counted(deck: &Deck, object: &str, name: &str) -> u64 {
    let rows = deck.counters();
    let rows = rows.iter().filter(|row| row.object.starts_with(object));
    rows.filter(|row| row.name == name)
        .map(|row| row.value)
        .sum()
}

/// Rank 1 sends to rank 0, which counts what came; both count what is theirs before either leaves, and its links with it.
fn job(send: impl Fn(&Deck, MailboxRef) -> Result<()> + Sync, check: impl Fn(&Deck) + Sync) {
    let counted = Barrier::new(2);
    let outcome = mizzen::local(2, |deck| {
        if deck.rank() == 0 {
            let inbox = deck.mailbox()?;
            deck.bind("inbox", &inbox)?;
            for _ in 0..COUNT {
                inbox.receive::<u64>()?;
            }
            check(&deck);
        } else {
            send(&deck, deck.fetch("inbox")?)?;
        }
        counted.wait();
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn messages_of_a_link_are_counted_at_both_ends() {
    job(
        |deck, inbox| {
            for number in 0..COUNT {
                inbox.send(&number)?;
            }
            assert_eq!(counted(deck, "link to rank 0", "messages_sent"), COUNT);
            Ok(())
        },
        |deck| {
            assert_eq!(counted(deck, "link to rank 1", "messages_received"), COUNT);
            assert_eq!(counted(deck, FIRST, "messages_received"), COUNT);
        },
    );
}

#[test]
fn messages_of_a_senders_own_lane_are_counted_at_the_mailbox() {
    job(
        |_, inbox| {
            let mut sender = inbox.sender()?;
            for number in 0..COUNT {
                sender.send(&number)?;
            }
            Ok(())
        },
        |deck| assert_eq!(counted(deck, FIRST, "messages_received"), COUNT),
    );
}

#[test]
fn what_came_is_still_counted_when_its_sender_is_gone() {
    mizzen::local(2, |deck| {
        let inbox = deck.mailbox()?;
        if deck.rank() == 0 {
            deck.bind("inbox", &inbox)?;
            inbox.depend_on(1);
            for _ in 0..3 {
                inbox.receive::<u64>()?;
            }
            let gone = inbox.receive::<u64>();
            assert!(gone.is_err(), "rank 1 has left");
            assert_eq!(counted(&deck, FIRST, "messages_received"), 3);
            return Ok(());
        }
        let inbox = deck.fetch("inbox")?;
        let mut sender = inbox.sender()?;
        sender.send(&1u64)?;
        inbox.send(&2u64)?;
        inbox.send(&3u64)?;
        Ok(())
    })
    .unwrap();
}

#[test]
fn credits_that_ran_out_are_counted() {
    mizzen::local(1, |deck| {
        let inbox = deck.mailbox()?;
        let address = inbox.address();
        let mut posted = 0;
        loop {
            let mut message = Message::new();
            message.pack_safer(&7u64);
            match address.try_post(&mut message) {
                Ok(()) => posted += 1,
                Err(mizzen::Error::Post(PostError::Busy { .. })) => break,
                Err(other) => return Err(other),
            }
        }
        assert!(posted > 0);
        let exhausted = counted(&deck, "link to rank 0", "credits_exhausted");
        let full = counted(&deck, "link to rank 0", "lane_full");
        assert!(exhausted + full >= 1, "{:?}", deck.counters());
        Ok(())
    })
    .unwrap();
}

#[test]
fn long_messages_are_counted_as_copies() {
    const LEN: usize = 1 << 20;
    mizzen::local(1, |deck| {
        let inbox = deck.mailbox()?;
        inbox.address().send(&vec![1u8; LEN][..])?;
        assert_eq!(inbox.receive_vec::<u8>()?.len(), LEN);
        assert_eq!(counted(&deck, "link to rank 0", "copies"), 1);
        assert!(counted(&deck, "link to rank 0", "bytes_copied") >= LEN as u64);
        Ok(())
    })
    .unwrap();
}

#[test]
fn sleeps_and_wakes_are_counted() {
    mizzen::local(1, |deck| {
        let inbox = deck.mailbox()?;
        let address = inbox.address();
        let waker = deck.clone();
        let sends = std::thread::spawn(move || {
            let started = Instant::now();
            // Which is when the owner of the mailbox is about to sleep.
            while counted(&waker, "process", "sleeps") == 0 {
                assert!(started.elapsed() < PATIENCE, "it never sleeps");
                std::thread::yield_now();
            }
            address.send(&1u64)
        });
        inbox.receive::<u64>()?;
        sends.join().unwrap()?;
        assert!(counted(&deck, FIRST, "sleeps") >= 1);
        assert!(counted(&deck, "link to rank 0", "wakes") >= 1);
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_link_over_a_network_counts_messages_and_bytes() {
    mizzen::local_over_tcp(2, |deck| {
        let inbox = deck.mailbox()?;
        if deck.rank() == 0 {
            deck.bind("inbox", &inbox)?;
            for _ in 0..COUNT {
                inbox.receive::<u64>()?;
            }
            let long = inbox.receive_vec::<u8>()?;
            assert_eq!(long.len(), 1 << 20);
            let link = "link to rank 1";
            // The word that the other has finished may be there, too.
            assert!(counted(&deck, link, "messages_received") > COUNT);
            assert!(counted(&deck, link, "bytes_received") > 8 * COUNT + (1 << 20));
            assert_eq!(counted(&deck, FIRST, "messages_received"), COUNT + 1);
            return deck.finish();
        }
        let inbox = deck.fetch("inbox")?;
        for number in 0..COUNT {
            inbox.send(&number)?;
        }
        inbox.send(&vec![1u8; 1 << 20][..])?;
        assert_eq!(counted(&deck, "link to rank 0", "messages_sent"), COUNT + 1);
        assert!(counted(&deck, "link to rank 0", "bytes_sent") > 8 * COUNT + (1 << 20));
        deck.finish()
    })
    .unwrap();
}

#[test]
fn calls_and_clients_of_a_service_are_counted() {
    mizzen::local(1, |deck| {
        let _service = deck.serve("twice", |x: u64| 2 * x)?;
        let mut client = deck.client_at::<u64, u64>(0, "twice")?;
        for number in 0..5 {
            client.call(&number)?;
        }
        assert_eq!(counted(&deck, "service twice", "calls"), 5);
        assert_eq!(counted(&deck, "service twice", "clients"), 1);
        Ok(())
    })
    .unwrap();
}

#[test]
fn items_of_a_pool_are_counted() {
    let helped = mizzen::local(2, |deck| {
        let items = if deck.rank() == 0 { 0..100 } else { 0..0 };
        let nap = Duration::from_millis(1);
        for _ in 0..2 {
            deck.pool()
                .map(items.clone(), |_: u64| std::thread::sleep(nap))?;
        }
        assert_eq!(counted(&deck, "pool", "maps"), 2);
        let own = 2 * items.count() as u64;
        assert_eq!(counted(&deck, "pool", "items"), own);
        assert_eq!(counted(&deck, "pool", "reruns"), 0);
        Ok(counted(&deck, "pool", "items_of_others"))
    })
    .unwrap();
    assert!(helped[1] > 0 && helped[0] == 0, "{helped:?}");
}
