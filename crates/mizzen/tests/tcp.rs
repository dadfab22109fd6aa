//! Messages and mailboxes among ranks that reach each other through TCP only.

mod scenarios;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fastrand::Rng;
use mizzen::{Deck, Departure, Error, Message, PostError, Result, RetrieveError};

fn run<T: Send>(size: u32, body: impl Fn(Deck) -> Result<T> + Sync) -> Result<Vec<T>> {
    mizzen::local_over_tcp(size, body)
}

/// A length: mostly short, sometimes long.
fn some_len(random: &mut Rng) -> usize {
    let range = match random.u8(..100) {
        0..=79 => 256,
        80..=94 => 8 << 10,
        95..=97 => 64 << 10,
        98 => 200 << 10,
        _ => 68 << 10,
    };
    random.usize(..range)
}

fn checksum(bytes: &[u8]) -> u64 {
    let fold = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, fold)
}

#[test]
fn fifty_thousand_messages_of_mixed_lengths_arrive_intact_and_in_order() {
    const RANKS: u32 = 2;
    const STREAMS: u64 = 2;
    const EACH: u64 = 12_500;
    run(RANKS, |deck| {
        let inbox = deck.mailbox()?;
        deck.bind(&format!("inbox {}", deck.rank()), &inbox)?;
        let to = deck.fetch(&format!("inbox {}", (deck.rank().0 + 1) % RANKS))?;
        std::thread::scope(|threads| {
            for stream in 0..STREAMS {
                let (to, deck) = (to.clone(), &deck);
                threads.spawn(move || {
                    let mut random = Rng::with_seed(u64::from(deck.rank()) << 32 | stream);
                    let mut sender = to.sender().unwrap();
                    let mut data = Vec::new();
                    for number in 0..EACH {
                        data.resize(some_len(&mut random), 0);
                        random.fill(&mut data);
                        let header = [stream, number, checksum(&data)];
                        let mut message = Message::new();
                        message.pack_cheaper(&header);
                        match number % 16 {
                            7 => {
                                let mut lent = deck.lend::<u8>(data.len()).unwrap();
                                lent.copy_from_slice(&data);
                                message.pack_lent(lent);
                            }
                            _ => {
                                message.pack_cheaper(&data[..]);
                            }
                        }
                        if stream == 0 {
                            to.post(&mut message).unwrap();
                        } else {
                            sender.post(&mut message).unwrap();
                        }
                    }
                });
            }
            let mut next = [0; STREAMS as usize];
            let mut data = Vec::new();
            for _ in 0..STREAMS * EACH {
                let mut incoming = inbox.retrieve().unwrap();
                let [stream, number, sum] = incoming.unpack_express::<[u64; 3]>().unwrap();
                assert_eq!(number, next[stream as usize]);
                next[stream as usize] += 1;
                let found = match number % 16 {
                    7 => checksum(&incoming.unpack_lent::<u8>().unwrap()),
                    2 => checksum(&incoming.unpack_vec::<u8>().unwrap()),
                    _ => {
                        data.resize(incoming.next_len().unwrap(), 0);
                        incoming.unpack_cheaper(&mut data[..]).unwrap();
                        incoming.finish().unwrap();
                        checksum(&data)
                    }
                };
                assert_eq!(found, sum, "message {number} of stream {stream}");
            }
        });
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_rank_that_dies_fails_those_who_post_to_it_and_those_who_wait_for_it() {
    let (posting, waiting) = (AtomicBool::new(false), AtomicBool::new(false));
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        run(3, |deck| {
            let inbox = deck.mailbox()?;
            deck.bind(&format!("inbox {}", deck.rank()), &inbox)?;
            match deck.rank().0 {
                0 => {
                    let address = deck.fetch("unread")?;
                    let long = vec![1u8; 4 << 20];
                    deck.fetch("inbox 2")?.send(&1u8)?;
                    let outcome = address.send(&long[..]);
                    assert!(
                        matches!(outcome, Err(PostError::PeerGone(_))),
                        "{outcome:?}"
                    );
                    assert!(address.send(&1u8).is_err());
                    posting.store(true, Ordering::Relaxed);
                }
                1 => {
                    assert_eq!(inbox.receive::<u8>()?, 5);
                    deck.fetch("inbox 2")?.send(&1u8)?;
                    let error = Error::from(inbox.retrieve().unwrap_err());
                    assert_eq!(error.lost(), Some(2.into()));
                    waiting.store(true, Ordering::Relaxed);
                }
                _ => {
                    let unread = deck.mailbox()?;
                    deck.bind("unread", &unread)?;
                    deck.fetch("inbox 1")?.send(&5u8)?;
                    let _ = (inbox.receive::<u8>()?, inbox.receive::<u8>()?);
                    // A process that dies does not close its mailboxes.
                    std::mem::forget((inbox, unread));
                    panic!("rank 2 dies");
                }
            }
            Ok(())
        })
    }));
    assert!(outcome.is_err());
    assert!(posting.into_inner() && waiting.into_inner());
}

#[test]
fn a_long_message_whose_receiver_does_not_come_is_taken_back() {
    run(2, |deck| {
        let (inbox, done) = (deck.mailbox()?, deck.mailbox()?);
        deck.bind(&format!("inbox {}", deck.rank()), &inbox)?;
        deck.bind(&format!("done {}", deck.rank()), &done)?;
        if deck.rank() == 0 {
            assert_eq!(done.receive::<u8>()?, 0);
            let nothing = inbox.retrieve_timeout(Duration::from_millis(20));
            assert!(matches!(nothing, Err(RetrieveError::TimedOut { .. })));
            deck.fetch("done 1")?.send(&0u8)?;
            assert_eq!(inbox.receive_vec::<u8>()?, vec![2; 1 << 20]);
        } else {
            let address = deck.fetch("inbox 0")?;
            let long = vec![1u8; 1 << 20];
            let mut message = Message::new();
            message.pack_cheaper(&long[..]);
            let outcome = address.post_timeout(&mut message, Duration::from_millis(50));
            assert!(
                matches!(outcome, Err(PostError::TimedOut { .. })),
                "{outcome:?}"
            );
            deck.fetch("done 0")?.send(&0u8)?;
            let _ = done.receive::<u8>()?;
            address.send(&vec![2u8; 1 << 20][..])?;
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn what_was_posted_just_before_leaving_arrives() {
    for _ in 0..20 {
        run(3, |deck| {
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
        })
        .unwrap();
    }
}

#[test]
fn a_peer_that_left_is_named_with_how_it_went() {
    run(2, |deck| {
        let inbox = deck.mailbox()?;
        deck.bind(&format!("inbox {}", deck.rank()), &inbox)?;
        if deck.rank() == 0 {
            let address = deck.fetch("inbox 1")?;
            inbox.depend_on(1.into());
            address.send(&1u8)?;
            let Err(RetrieveError::PeerGone(gone)) = inbox.retrieve() else {
                panic!("rank 1 left")
            };
            assert_eq!((gone.rank(), gone.how()), (1.into(), Departure::Left));
            let Err(PostError::PeerGone(gone)) = address.send(&1u8) else {
                panic!("rank 1 left")
            };
            assert_eq!(gone.how(), Departure::Left);
        } else {
            assert_eq!(inbox.receive::<u8>()?, 1);
        }
        Ok(())
    })
    .unwrap();
}
