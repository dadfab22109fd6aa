//! Messages and mailboxes, whatever the path between the ranks: `crate::run` chooses it.

mod finish;
mod mobile;
mod names;
mod pool;
mod rpc;
mod tasks;
mod timeouts;
mod types;

use std::time::{Duration, Instant};

use crate::run;

use mizzen::{
    Deck, Departure, Error, Lent, Mailbox, MailboxRef, Message, PostError, Result, RetrieveError,
    UnpackError,
};

fn bytes(number: usize, len: usize) -> Vec<u8> {
    (0..len).map(|at| (number * 31 + at * 7) as u8).collect()
}

fn inbox_of(deck: &Deck, name: &str) -> Result<Mailbox> {
    let inbox = deck.mailbox()?;
    deck.bind(name, &inbox)?;
    Ok(inbox)
}

/// Nobody goes on before all ranks are here. Each meeting of a job has its own name.
fn meet(deck: &Deck, name: &str) -> Result<()> {
    let inbox = deck.mailbox()?;
    if deck.rank() != 0 {
        let mut message = Message::new();
        message.pack_mailbox(&inbox.address());
        deck.fetch(name)?.post(&mut message)?;
        inbox.receive::<u8>()?;
        return Ok(());
    }
    deck.bind(name, &inbox)?;
    let others: Vec<MailboxRef> = (1..deck.size())
        .map(|_| Ok(inbox.retrieve()?.unpack_mailbox()?))
        .collect::<Result<_>>()?;
    others.iter().try_for_each(|other| Ok(other.send(&0u8)?))
}

/// A job of two: rank 0 has the mailbox, rank 1 its address.
fn pair(
    receive: impl Fn(&Deck, Mailbox) -> Result<()> + Sync,
    send: impl Fn(&Deck, MailboxRef) -> Result<()> + Sync,
) {
    let outcome = run(2, |deck| {
        if deck.rank() == 0 {
            receive(&deck, inbox_of(&deck, "inbox")?)
        } else {
            send(&deck, deck.fetch("inbox")?)
        }
    });
    outcome.unwrap();
}

#[test]
fn every_length_arrives_through_post_and_through_a_sender() {
    let lengths = [
        0,
        1,
        8,
        47,
        48,
        49,
        55,
        56,
        57,
        100,
        4096,
        32 << 10,
        (32 << 10) + 1,
        100_000,
        1 << 20,
        5 << 20,
    ];
    run(2, |deck| {
        if deck.rank() == 0 {
            let inbox = inbox_of(&deck, "inbox")?;
            for (number, len) in lengths.into_iter().enumerate() {
                for _ in 0..3 {
                    assert_eq!(
                        inbox.receive_vec::<u8>()?,
                        bytes(number, len),
                        "length {len}"
                    );
                }
            }
        } else {
            let address = deck.fetch("inbox")?;
            let mut sender = address.sender()?;
            let mut message = Message::new();
            for (number, len) in lengths.into_iter().enumerate() {
                let data = bytes(number, len);
                address.send(&data[..])?;
                // A sender's lane and the shared lane have no common order, so wait for each.
                std::thread::sleep(Duration::from_millis(2));
                sender.send(&data[..])?;
                message.clear();
                let copy = data.clone();
                message.pack_safer(&copy[..]);
                sender.post(&mut message)?;
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn pieces_come_out_as_they_went_in() {
    let numbers = [1.5f64, 2.5, 3.5];
    pair(
        |_, inbox| {
            let mut incoming = inbox.retrieve()?;
            assert_eq!(incoming.pieces_left(), 6);
            assert_eq!(incoming.unpack_express::<u8>()?, 7);
            assert_eq!(incoming.next_len(), Some(24));
            let mut copy = [0.0f64; 3];
            incoming.unpack_cheaper(&mut copy)?;
            assert_eq!(incoming.unpack_vec::<u32>()?, [0, 0, 77, 0]);
            let unpacked = incoming.unpack_mailbox()?;
            assert_eq!(unpacked.rank(), 1);
            let mut inner = incoming.unpack_message()?;
            assert_eq!(inner.unpack_express::<u16>()?, 9);
            assert_eq!(inner.unpack_vec::<u8>()?, b"inner");
            let (text, list): (String, Vec<u8>) = incoming.unpack_value()?;
            assert_eq!((text.as_str(), list), ("text", vec![1, 2, 3]));
            assert_eq!(incoming.unpack_express::<u8>(), Err(UnpackError::NoPiece));
            incoming.finish()?;
            assert_eq!(copy, numbers);
            unpacked.send(&1u8)?;
            Ok(())
        },
        |deck, address| {
            let other = deck.mailbox()?;
            let mut counts = [0u32; 4];
            let mut nested = Message::new();
            nested.pack_safer(&9u16).pack_safer(b"inner");
            let mut message = Message::new();
            message.pack_safer(&7u8).pack_cheaper(&numbers);
            let key = message.pack_later(&mut counts);
            message.pack_mailbox(&other.address());
            message.pack_message(&nested)?;
            message.pack_value(&("text", vec![1u8, 2, 3]))?;
            message.later(&key)[2] = 77;
            address.post(&mut message)?;
            assert_eq!(other.receive::<u8>()?, 1);
            Ok(())
        },
    );
}

#[test]
fn a_message_is_posted_again_cleared_and_used_anew() {
    pair(
        |_, inbox| {
            for _ in 0..2 {
                let mut incoming = inbox.retrieve()?;
                assert_eq!(incoming.unpack_express::<u32>()?, 1);
                incoming.skip()?;
                incoming.reset()?;
                assert_eq!(incoming.unpack_express::<u32>()?, 1);
                assert_eq!(incoming.unpack_express::<u32>()?, 2);
            }
            assert_eq!(inbox.receive::<u32>()?, 3);
            Ok(())
        },
        |_, address| {
            let mut message = Message::new();
            message.pack_safer(&1u32).pack_safer(&2u32);
            address.post(&mut message)?;
            address.post(&mut message)?;
            message.clear();
            assert_eq!(message.pieces(), 0);
            message.pack_safer(&3u32);
            address.post(&mut message)?;
            Ok(())
        },
    );
}

#[test]
fn an_empty_message_has_no_pieces() {
    pair(
        |_, inbox| {
            assert_eq!(inbox.retrieve()?.pieces_left(), 0);
            Ok(())
        },
        |_, address| Ok(address.post(&mut Message::new())?),
    );
}

#[test]
fn a_mismatched_unpack_is_an_error_and_loses_nothing() {
    pair(
        |_, inbox| {
            let mut incoming = inbox.retrieve()?;
            let (expected, found) = (8, 4);
            assert_eq!(
                incoming.unpack_express::<u64>(),
                Err(UnpackError::Length { expected, found })
            );
            assert!(incoming.unpack_lent::<u8>().is_err());
            assert_eq!(incoming.unpack_express::<u32>()?, 5);
            Ok(())
        },
        |_, address| Ok(address.send(&5u32)?),
    );
}

#[test]
fn lent_buffers_move_and_come_back() {
    run(2, |deck| {
        if deck.rank() == 0 {
            let inbox = inbox_of(&deck, "tiles")?;
            for number in 0..300u32 {
                let (header, tile) = inbox.receive_lent::<u32, u64>()?;
                assert_eq!(header, number);
                assert_eq!(tile.len(), 16 << 10);
                assert!(tile.iter().all(|value| *value == u64::from(number)));
            }
        } else {
            let mut sender = deck.fetch("tiles")?.sender()?;
            for number in 0..300u32 {
                let mut tile: Lent<u64> = deck.lend(16 << 10)?;
                tile.fill(u64::from(number));
                sender.post_lent(&number, tile)?;
            }
            assert!(
                deck.arena_bytes() <= 80 << 20,
                "300 buffers of 128 KiB were used over and over"
            );
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_lent_buffer_cannot_be_given_away_twice() {
    pair(
        |_, inbox| {
            let mut incoming = inbox.retrieve()?;
            assert_eq!(incoming.unpack_lent::<u8>()?.len(), 100);
            assert_eq!(incoming.unpack_express::<u8>()?, 1);
            Ok(())
        },
        |deck, address| {
            let mut message = Message::new();
            message.pack_lent(deck.lend::<u8>(100)?).pack_safer(&1u8);
            address.post(&mut message)?;
            let again = address.post(&mut message);
            assert!(matches!(again, Err(PostError::LentTwice)));
            Ok(())
        },
    );
}

#[test]
fn messages_of_one_thread_keep_their_order_whatever_their_kind() {
    run(2, |deck| {
        const COUNT: u32 = 2000;
        if deck.rank() == 0 {
            let inbox = inbox_of(&deck, "inbox")?;
            for number in 0..COUNT {
                let mut incoming = inbox.retrieve()?;
                assert_eq!(incoming.unpack_express::<u32>()?, number);
                let rest = match number % 4 {
                    3 => incoming.unpack_lent::<u8>()?.to_vec(),
                    _ => incoming.unpack_vec::<u8>()?,
                };
                assert_eq!(rest, bytes(number as usize, rest.len()));
            }
        } else {
            let address = deck.fetch("inbox")?;
            for number in 0..COUNT {
                let data = bytes(
                    number as usize,
                    [10, 1000, 100_000, 5000][number as usize % 4],
                );
                let mut message = Message::new();
                message.pack_safer(&number);
                if number % 4 == 3 {
                    let mut lent = deck.lend::<u8>(data.len())?;
                    lent.copy_from_slice(&data);
                    message.pack_lent(lent);
                } else {
                    message.pack_cheaper(&data[..]);
                }
                address.post(&mut message)?;
            }
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn many_threads_post_to_many_mailboxes() {
    const THREADS: u64 = 4;
    const EACH: u64 = 5000;
    run(3, |deck| {
        let inboxes: Vec<_> = (0..THREADS)
            .map(|number| inbox_of(&deck, &format!("inbox {} of {}", number, deck.rank())))
            .collect::<Result<_>>()?;
        std::thread::scope(|threads| {
            for (number, inbox) in inboxes.into_iter().enumerate() {
                threads.spawn(move || {
                    let mut next = vec![0u64; 3 * THREADS as usize];
                    for _ in 0..3 * THREADS * EACH {
                        let [source, thread, value] = inbox.receive::<[u64; 3]>().unwrap();
                        let index = (source * THREADS + thread) as usize;
                        assert_eq!(value, next[index], "mailbox {number}");
                        next[index] += 1;
                    }
                });
            }
            for thread in 0..THREADS {
                let deck = deck.clone();
                threads.spawn(move || {
                    let targets: Vec<_> = (0..3 * THREADS)
                        .map(|target| {
                            let name =
                                format!("inbox {} of {}", target % THREADS, target / THREADS);
                            deck.fetch(&name).unwrap()
                        })
                        .collect();
                    for value in 0..EACH {
                        for target in &targets {
                            target
                                .send(&[u64::from(deck.rank()), thread, value])
                                .unwrap();
                        }
                    }
                });
            }
        });
        Ok(())
    })
    .unwrap();
}

#[test]
fn try_and_deadline_forms_do_not_wait_longer() {
    run(1, |deck| {
        let inbox = deck.mailbox()?;
        assert!(inbox.try_retrieve()?.is_none());
        let started = Instant::now();
        let outcome = inbox.retrieve_timeout(Duration::from_millis(30));
        assert!(matches!(outcome, Err(RetrieveError::TimedOut { .. })));
        assert!(started.elapsed() >= Duration::from_millis(30));
        assert!(started.elapsed() < Duration::from_millis(400));
        inbox.address().send(&1u8)?;
        assert!(inbox.try_retrieve()?.is_some());
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_mailbox_that_nobody_reads_stops_its_senders_and_nobody_else() {
    run(2, |deck| {
        if deck.rank() == 0 {
            let full = inbox_of(&deck, "full")?;
            let read = inbox_of(&deck, "read")?;
            for number in 0..5000u64 {
                assert_eq!(read.receive::<u64>()?, number);
            }
            let mut waiting = 0;
            while full.try_retrieve()?.is_some() {
                waiting += 1;
            }
            assert!((1..=256).contains(&waiting), "{waiting} messages waited");
        } else {
            let (full, read) = (deck.fetch("full")?, deck.fetch("read")?);
            let mut posted = 0;
            let mut message = Message::new();
            message.pack_safer(&1u64);
            while full.try_post(&mut message).is_ok() {
                posted += 1;
                assert!(posted <= 256, "a mailbox has a bound");
            }
            let outcome = full.post_timeout(&mut message, Duration::from_millis(20));
            assert!(matches!(outcome, Err(PostError::TimedOut { .. })));
            for number in 0..5000u64 {
                read.send(&number)?;
            }
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_sender_waits_for_room_and_goes_on() {
    run(2, |deck| {
        if deck.rank() == 0 {
            let inbox = inbox_of(&deck, "slow")?;
            for number in 0..3000u64 {
                if number % 500 == 0 {
                    std::thread::sleep(Duration::from_millis(10));
                }
                assert_eq!(inbox.receive::<u64>()?, number);
            }
        } else {
            let mut sender = deck.fetch("slow")?.sender()?;
            for number in 0..3000u64 {
                sender.send(&number)?;
            }
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_closed_mailbox_refuses() {
    run(2, |deck| {
        if deck.rank() == 0 {
            let inbox = inbox_of(&deck, "inbox")?;
            let done = inbox_of(&deck, "done")?;
            let _sender_opened = inbox.receive::<u8>()?;
            drop(inbox);
            deck.fetch("go")?.send(&0u8)?;
            let _ = done.receive::<u8>()?;
        } else {
            let go = inbox_of(&deck, "go")?;
            let address = deck.fetch("inbox")?;
            let mut sender = address.sender()?;
            sender.send(&0u8)?;
            let _ = go.receive::<u8>()?;
            assert!(matches!(sender.send(&1u8), Err(PostError::Closed { .. })));
            let mut refused = false;
            for _ in 0..1000 {
                refused |= matches!(address.send(&1u8), Err(PostError::Closed { .. }));
            }
            assert!(refused);
            deck.fetch("done")?.send(&0u8)?;
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn fetch_waits_for_bind_and_tells_when_nobody_does() {
    run(2, |deck| {
        if deck.rank() == 0 {
            std::thread::sleep(Duration::from_millis(30));
            let inbox = inbox_of(&deck, "late")?;
            assert_eq!(inbox.receive::<u8>()?, 1);
            assert_eq!(inbox.receive::<u8>()?, 2);
        } else {
            deck.fetch("late")?.send(&1u8)?;
            let taken = deck.bind("late", &deck.mailbox()?).unwrap_err();
            assert_eq!(
                taken.to_string(),
                "the name \"late\" is taken by a mailbox of rank 0; choose another name, or unbind it there"
            );
            deck.fetch("late")?.send(&2u8)?;
            let error = deck.fetch_timeout("lait", Duration::from_millis(20)).unwrap_err();
            assert!(error.to_string().starts_with("nobody bound the name \"lait\" within"), "{error}");
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_rank_that_fails_is_named_to_those_who_wait_for_it() {
    let outcome = run(3, |deck| {
        let inbox = deck.mailbox()?;
        match deck.rank().0 {
            0 => {
                let error = Error::from(inbox.retrieve().unwrap_err());
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
    assert_eq!(outcome.unwrap_err().to_string(), "rank 2 gives up");
}

#[test]
fn what_a_process_sent_before_it_left_is_retrieved_first() {
    run(2, |deck| {
        if deck.rank() == 0 {
            let inbox = inbox_of(&deck, "inbox")?;
            inbox.depend_on(1.into());
            for number in 0..100u32 {
                assert_eq!(inbox.receive::<u32>()?, number);
            }
            let Err(RetrieveError::PeerGone(gone)) = inbox.retrieve() else {
                panic!("rank 1 left")
            };
            assert_eq!((gone.rank(), gone.how()), (1.into(), Departure::Left));
            let again = inbox.retrieve_timeout(Duration::from_millis(20));
            assert!(
                matches!(again, Err(RetrieveError::TimedOut { .. })),
                "it is said once"
            );
        } else {
            let address = deck.fetch("inbox")?;
            for number in 0..100u32 {
                address.send(&number)?;
            }
        }
        Ok(())
    })
    .unwrap();
}

/// Runs a future on this thread, parking between polls.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(std::thread::Thread);
    impl std::task::Wake for Unpark {
        fn wake(self: std::sync::Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = std::sync::Arc::new(Unpark(std::thread::current())).into();
    let mut context = std::task::Context::from_waker(&waker);
    let mut future = std::pin::pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            std::task::Poll::Ready(value) => return value,
            std::task::Poll::Pending => std::thread::park(),
        }
    }
}

#[test]
fn one_mailbox_serves_async_and_blocking_retrieval() {
    run(2, |deck| {
        if deck.rank() == 0 {
            let mut inbox = inbox_of(&deck, "inbox")?;
            for number in 0..200u32 {
                let value = if number % 2 == 0 {
                    let incoming = block_on(inbox.retrieve_async());
                    incoming?.unpack_express::<u32>()?
                } else {
                    inbox.receive::<u32>()?
                };
                assert_eq!(value, number);
            }
        } else {
            let mut sender = deck.fetch("inbox")?.sender()?;
            for number in 0..200u32 {
                if number % 50 == 0 {
                    std::thread::sleep(Duration::from_millis(5));
                }
                sender.send(&number)?;
            }
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_process_may_have_ten_thousand_mailboxes() {
    run(1, |deck| {
        let inboxes: Vec<_> = (0..10_000)
            .map(|_| deck.mailbox())
            .collect::<Result<_, _>>()?;
        for (number, inbox) in inboxes.iter().enumerate() {
            inbox.address().send(&number)?;
        }
        for (number, inbox) in inboxes.iter().enumerate() {
            assert_eq!(inbox.receive::<usize>()?, number);
        }
        drop(inboxes);
        let reused: Vec<_> = (0..16_384)
            .map(|_| deck.mailbox())
            .collect::<Result<_, _>>()?;
        assert!(deck.mailbox().is_err());
        drop(reused);
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_detached_message_outlives_what_it_came_through() {
    for len in [5000, 500_000] {
        pair(
            |_, inbox| {
                let mut kept = inbox.retrieve()?.detach()?;
                drop(inbox);
                assert_eq!(kept.unpack_vec::<u8>()?, bytes(1, len));
                Ok(())
            },
            |_, address| Ok(address.sender()?.send(&bytes(1, len)[..])?),
        );
    }
}

#[test]
fn long_pieces_go_where_they_were_told_to() {
    let lengths = [10usize, 3000, 200_000, 0, 70_000, 1, 1 << 20];
    pair(
        |_, inbox| {
            // All of them, from a new place each time; then some; then none of the long ones; then in turn.
            for round in 0..4 {
                let mut incoming = inbox.retrieve()?;
                let mut places: Vec<Vec<u8>> = lengths.iter().map(|len| vec![0; *len]).collect();
                let skips = |number: usize| match round {
                    1 => number % 2 == 1,
                    2 => number >= 2,
                    _ => false,
                };
                for (number, place) in places.iter_mut().enumerate() {
                    assert_eq!(incoming.next_len(), Some(lengths[number]));
                    if skips(number) {
                        incoming.skip()?;
                    } else if round == 3 && number % 2 == 0 {
                        *place = incoming.unpack_vec::<u8>()?;
                    } else {
                        incoming.unpack_cheaper(&mut place[..])?;
                    }
                }
                incoming.finish()?;
                for (number, place) in places.iter().enumerate().filter(|at| !skips(at.0)) {
                    assert!(
                        *place == bytes(number, lengths[number]),
                        "{round}: {number}"
                    );
                }
            }
            Ok(())
        },
        |_, address| {
            let data: Vec<_> = lengths
                .iter()
                .enumerate()
                .map(|(n, len)| bytes(n, *len))
                .collect();
            let mut message = Message::new();
            for piece in &data {
                message.pack_cheaper(&piece[..]);
            }
            for _ in 0..4 {
                address.post(&mut message)?;
            }
            Ok(())
        },
    );
}

#[test]
fn a_message_of_thousands_of_pieces_arrives() {
    const PIECES: usize = 50_000;
    pair(
        |_, inbox| {
            for _ in 0..2 {
                let mut incoming = inbox.retrieve()?;
                let mut targets = vec![0u64; PIECES];
                for target in &mut targets {
                    incoming.unpack_cheaper(target)?;
                }
                incoming.finish()?;
                assert!(
                    targets
                        .iter()
                        .enumerate()
                        .all(|(at, value)| *value == at as u64)
                );
            }
            Ok(())
        },
        |_, address| {
            let mut message = Message::new();
            for number in 0..PIECES as u64 {
                message.pack_safer(&number);
            }
            address.post(&mut message)?;
            address.post(&mut message)?;
            Ok(())
        },
    );
}

#[test]
fn a_long_message_that_nobody_reads_holds_nobody_up() {
    pair(
        |_, inbox| {
            let mut incoming = inbox.retrieve()?;
            assert_eq!(incoming.unpack_express::<u32>()?, 1);
            drop(incoming);
            assert_eq!(inbox.receive::<u32>()?, 2);
            Ok(())
        },
        |_, address| {
            let mut message = Message::new();
            let long = bytes(1, 1 << 20);
            message.pack_safer(&1u32).pack_cheaper(&long[..]);
            address.post(&mut message)?;
            address.send(&2u32)?;
            Ok(())
        },
    );
}

/// Lengths about the limits of the paths: eager messages, chunks, rounds of chunks.
#[test]
fn long_messages_of_a_sender_arrive_whatever_becomes_of_those_before_them() {
    const LENGTHS: [usize; 9] = [
        32_768,
        32_769,
        65_535,
        65_536,
        65_537,
        131_073,
        600_001,
        1 << 20,
        5_000_000,
    ];
    pair(
        |_, inbox| {
            for round in 0..4 {
                for (number, len) in LENGTHS.into_iter().enumerate() {
                    let mut incoming = inbox.retrieve()?;
                    let expected = bytes(round + number, len);
                    match (round + number) % 4 {
                        0 => assert!(incoming.unpack_vec::<u8>()? == expected),
                        1 => drop(incoming),
                        2 => {
                            let mut target = vec![0; len];
                            incoming.unpack_cheaper(&mut target[..])?;
                            incoming.finish()?;
                            assert!(target == expected, "{round}, {len}");
                        }
                        _ => {
                            // Once to be looked at, and once again.
                            let first = incoming.unpack_vec::<u8>()?;
                            incoming.reset()?;
                            let mut again = incoming.detach()?;
                            assert!(first == expected && again.unpack_vec::<u8>()? == expected);
                        }
                    }
                }
            }
            Ok(())
        },
        |_, address| {
            let mut sender = address.sender()?;
            for round in 0..4 {
                for (number, len) in LENGTHS.into_iter().enumerate() {
                    let data = bytes(round + number, len);
                    let mut message = Message::new();
                    message.pack_cheaper(&data[..]);
                    sender.post(&mut message)?;
                }
            }
            Ok(())
        },
    );
}

#[test]
fn long_messages_are_tried_without_waiting_for_their_receiver() {
    pair(
        |deck, inbox| {
            let go = inbox_of(deck, "posted")?;
            let _ = go.receive::<u8>()?;
            assert_eq!(inbox.receive_vec::<u8>()?, bytes(3, 1 << 20));
            Ok(())
        },
        |deck, address| {
            let long = bytes(3, 1 << 20);
            let mut message = Message::new();
            message.pack_cheaper(&long[..]);
            address.try_post(&mut message)?;
            deck.fetch("posted")?.send(&0u8)?;
            Ok(())
        },
    );
}

#[test]
fn lent_pieces_of_every_length_are_read_from_a_buffer() {
    let lengths = [0usize, 1, 1000, 8192, 100_000, 3 << 20];
    pair(
        |_, inbox| {
            for _ in 0..3 {
                let mut incoming = inbox.retrieve()?;
                let mut before = [0u8; 5000];
                incoming.unpack_cheaper(&mut before)?;
                for (number, len) in lengths.into_iter().enumerate() {
                    let lent = incoming.unpack_lent::<u8>()?;
                    assert!(*lent == bytes(number, len)[..], "length {len}");
                }
                assert_eq!(incoming.unpack_express::<u16>()?, 99);
                incoming.finish()?;
                assert_eq!(before[..], bytes(7, 5000));
            }
            Ok(())
        },
        |deck, address| {
            let mut sender = address.sender()?;
            for _ in 0..3 {
                let first = bytes(7, 5000);
                let mut message = Message::new();
                message.pack_cheaper(&first[..]);
                for (number, len) in lengths.into_iter().enumerate() {
                    let mut lent = deck.lend::<u8>(len)?;
                    lent.copy_from_slice(&bytes(number, len));
                    message.pack_lent(lent);
                }
                message.pack_safer(&99u16);
                sender.post(&mut message)?;
            }
            Ok(())
        },
    );
}

#[test]
fn a_message_in_hand_does_not_disturb_the_next_sender() {
    pair(
        |deck, inbox| {
            let first = inbox.retrieve()?;
            let go_on = deck.fetch("go on")?;
            go_on.send(&1u8)?;
            // The lane of the first sender ends while its message is in hand; the second one may use its line.
            for number in 0..600u32 {
                if number == 300 {
                    std::thread::sleep(Duration::from_millis(5));
                }
                assert_eq!(inbox.receive::<u32>()?, number);
            }
            let mut first = first;
            assert_eq!(first.unpack_vec::<u8>()?, bytes(3, 1000));
            drop(first);
            for number in 600..1200u32 {
                assert_eq!(inbox.receive::<u32>()?, number);
            }
            Ok(())
        },
        |deck, address| {
            let told = inbox_of(deck, "go on")?;
            let mut first = address.sender()?;
            first.send(&bytes(3, 1000)[..])?;
            told.receive::<u8>()?;
            drop(first);
            let mut second = address.sender()?;
            for number in 0..1200u32 {
                second.send(&number)?;
            }
            Ok(())
        },
    );
}
