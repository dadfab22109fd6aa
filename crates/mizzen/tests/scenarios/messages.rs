//! Messages from one mailbox to another: what is packed comes out, in order, and no more than there is room for.

use std::time::{Duration, Instant};

use fastrand::Rng;
use mizzen::{Error, Message, PostError, Result, RetrieveError, UnpackError};

use super::{Job, bytes, inbox_of, pair};

pub(crate) fn every_length_arrives_through_post_and_through_a_sender(job: &Job<'_>) {
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
    job.run(2, |deck| {
        if deck.rank() == 0 {
            let inbox = inbox_of(&deck, "inbox")?;
            let received = deck.fetch("received")?;
            for (number, len) in lengths.into_iter().enumerate() {
                for _ in 0..3 {
                    assert_eq!(
                        inbox.receive_vec::<u8>()?,
                        bytes(number, len),
                        "length {len}"
                    );
                    received.send(&0u8)?;
                }
            }
        } else {
            let received = inbox_of(&deck, "received")?;
            let address = deck.fetch("inbox")?;
            let mut sender = address.sender()?;
            let mut message = Message::new();
            for (number, len) in lengths.into_iter().enumerate() {
                let data = bytes(number, len);
                address.send(&data[..])?;
                // A sender's lane and the shared lane have no common order, so wait for each.
                received.receive::<u8>()?;
                sender.send(&data[..])?;
                message.clear();
                let copy = data.clone();
                message.pack_safer(&copy[..]);
                sender.post(&mut message)?;
                received.receive::<u8>()?;
                received.receive::<u8>()?;
            }
        }
        Ok(())
    });
}

pub(crate) fn pieces_come_out_as_they_went_in(job: &Job<'_>) {
    let numbers = [1.5f64, 2.5, 3.5];
    pair(
        job,
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
            assert!(matches!(
                incoming.unpack_express::<u8>(),
                Err(mizzen::Error::Unpack(UnpackError::NoPiece))
            ));
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

pub(crate) fn a_message_is_posted_again_cleared_and_used_anew(job: &Job<'_>) {
    pair(
        job,
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

pub(crate) fn an_empty_message_has_no_pieces(job: &Job<'_>) {
    pair(
        job,
        |_, inbox| {
            assert_eq!(inbox.retrieve()?.pieces_left(), 0);
            Ok(())
        },
        |_, address| address.post(&mut Message::new()),
    );
}

pub(crate) fn a_mismatched_unpack_is_an_error_and_loses_nothing(job: &Job<'_>) {
    pair(
        job,
        |_, inbox| {
            let mut incoming = inbox.retrieve()?;
            let (expected, found) = (8, 4);
            let Err(mizzen::Error::Unpack(error)) = incoming.unpack_express::<u64>() else {
                panic!("a value of another length");
            };
            assert_eq!(error, UnpackError::Length { expected, found });
            assert!(incoming.unpack_lent::<u8>().is_err());
            assert_eq!(incoming.unpack_express::<u32>()?, 5);
            Ok(())
        },
        |_, address| address.send(&5u32),
    );
}

pub(crate) fn messages_of_one_thread_keep_their_order_whatever_their_kind(job: &Job<'_>) {
    job.run(2, |deck| {
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
    });
}

pub(crate) fn many_threads_post_to_many_mailboxes(job: &Job<'_>) {
    const THREADS: u64 = 4;
    const EACH: u64 = 5000;
    job.run(3, |deck| {
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
    });
}

pub(crate) fn try_and_deadline_forms_do_not_wait_longer(job: &Job<'_>) {
    job.run(1, |deck| {
        let inbox = deck.mailbox()?;
        assert!(inbox.try_retrieve()?.is_none());
        let started = Instant::now();
        let outcome = inbox.retrieve_timeout(Duration::from_millis(30));
        assert!(matches!(
            outcome,
            Err(mizzen::Error::Retrieve(RetrieveError::TimedOut { .. }))
        ));
        assert!(started.elapsed() >= Duration::from_millis(30));
        assert!(started.elapsed() < Duration::from_millis(400));
        inbox.address().send(&1u8)?;
        assert!(inbox.try_retrieve()?.is_some());
        Ok(())
    });
}

pub(crate) fn a_mailbox_that_nobody_reads_stops_its_senders_and_nobody_else(job: &Job<'_>) {
    /// What may wait for a mailbox, and what each message counts for in addition to its bytes.
    const ALLOWANCE: usize = 64 << 20;
    const EACH: usize = 64;
    const LEN: usize = 4096;
    job.run(2, |deck| {
        if deck.rank() == 0 {
            let full = inbox_of(&deck, "full")?;
            let read = inbox_of(&deck, "read")?;
            for number in 0..5000u64 {
                assert_eq!(read.receive::<u64>()?, number);
            }
            let posted = read.receive::<u64>()?;
            for number in 0..posted {
                let message = full.receive_vec::<u64>()?;
                assert_eq!((message.len(), message[0]), (LEN / 8, number));
            }
        } else {
            let (full, read) = (deck.fetch("full")?, deck.fetch("read")?);
            let mut numbers = vec![0u64; LEN / 8];
            let mut posted = 0;
            let (mut tried, mut refused) = (false, None);
            // The other looks for its messages, and makes room for some more in its queue.
            while refused.is_none() {
                numbers[0] = posted;
                let mut message = Message::new();
                message.pack_cheaper(&numbers[..]);
                let outcome = if tried {
                    full.post_timeout(&mut message, Duration::from_millis(20))
                } else {
                    full.try_post(&mut message)
                };
                match outcome {
                    Ok(()) => posted += 1,
                    Err(Error::Post(PostError::Busy { .. })) => tried = true,
                    Err(error) => refused = Some(error),
                }
            }
            // What waits here, and what fits lanes, credits and networks.
            let least = ALLOWANCE / (LEN + EACH);
            assert!(
                (least..least + 2048).contains(&(posted as usize)),
                "{posted} messages"
            );
            assert!(
                matches!(refused, Some(Error::Post(PostError::TimedOut { .. }))),
                "{refused:?}"
            );
            for number in 0..5000u64 {
                read.send(&number)?;
            }
            read.send(&posted)?;
        }
        Ok(())
    });
}

pub(crate) fn a_sender_waits_for_room_and_goes_on(job: &Job<'_>) {
    job.run(2, |deck| {
        if deck.rank() == 0 {
            let inbox = inbox_of(&deck, "slow")?;
            for number in 0..3000u64 {
                // Slow now and then: meanwhile the sender runs out of room.
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
    });
}

pub(crate) fn a_closed_mailbox_refuses(job: &Job<'_>) {
    job.run(2, |deck| {
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
            assert!(matches!(
                sender.send(&1u8),
                Err(mizzen::Error::Post(PostError::Closed { .. }))
            ));
            let mut refused = false;
            for _ in 0..1000 {
                refused |= matches!(
                    address.send(&1u8),
                    Err(mizzen::Error::Post(PostError::Closed { .. }))
                );
            }
            assert!(refused);
            deck.fetch("done")?.send(&0u8)?;
        }
        Ok(())
    });
}

/// Runs a future on this thread, parking between polls.
pub(super) fn block_on<T>(future: impl Future<Output = T>) -> T {
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

pub(crate) fn one_mailbox_serves_async_and_blocking_retrieval(job: &Job<'_>) {
    job.run(2, |deck| {
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
                // Late now and then: meanwhile the receiver falls asleep.
                if number % 50 == 0 {
                    std::thread::sleep(Duration::from_millis(5));
                }
                sender.send(&number)?;
            }
        }
        Ok(())
    });
}

pub(crate) fn a_process_may_have_ten_thousand_mailboxes(job: &Job<'_>) {
    job.run(1, |deck| {
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
    });
}

pub(crate) fn a_detached_message_outlives_what_it_came_through(job: &Job<'_>) {
    for len in [5000, 500_000] {
        pair(
            job,
            |_, inbox| {
                let mut kept = inbox.retrieve()?.detach()?;
                drop(inbox);
                assert_eq!(kept.unpack_vec::<u8>()?, bytes(1, len));
                Ok(())
            },
            |_, address| address.sender()?.send(&bytes(1, len)[..]),
        );
    }
}

pub(crate) fn two_busy_senders_do_not_keep_a_posted_message_from_its_turn(job: &Job<'_>) {
    job.run(1, |deck| {
        let inbox = deck.mailbox()?;
        let address = inbox.address();
        let mut busy = [address.sender()?, address.sender()?];
        for _ in 0..200 {
            for (number, sender) in busy.iter_mut().enumerate() {
                sender.send(&(number as u64))?;
            }
        }
        address.send(&7u64)?;
        // Whoever was read sends again at once: neither lane is ever empty.
        for _ in 0..2000 {
            match inbox.receive::<u64>()? {
                7 => return Ok(()),
                number => busy[number as usize].send(&number)?,
            }
        }
        panic!("the posted message starves");
    });
}

pub(crate) fn a_message_is_not_passed_over_when_another_sender_ends(job: &Job<'_>) {
    job.run(1, |deck| {
        let inbox = deck.mailbox()?;
        let (mut first, mut second) = (inbox.address().sender()?, inbox.address().sender()?);
        first.send(&1u64)?;
        assert_eq!(inbox.receive::<u64>()?, 1);
        drop(first);
        second.send(&2u64)?;
        assert!(inbox.try_retrieve()?.is_some());
        Ok(())
    });
}

pub(crate) fn a_type_of_the_programs_own_is_received_as_what_it_is_made_of(job: &Job<'_>) {
    #[derive(
        zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::Immutable, zerocopy::KnownLayout,
    )]
    #[repr(transparent)]
    struct Metres(f64);

    job.run(1, |deck| {
        let inbox = deck.mailbox()?;
        inbox.address().send(&Metres(3.5))?;
        assert_eq!(inbox.receive::<f64>()?, 3.5);
        inbox.address().send(&4.5f64)?;
        assert_eq!(inbox.receive::<Metres>()?.0, 4.5);
        Ok(())
    });
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

pub(crate) fn fifty_thousand_messages_of_mixed_lengths_arrive_intact_and_in_order(job: &Job<'_>) {
    const RANKS: u32 = 2;
    const STREAMS: u64 = 2;
    const EACH: u64 = 12_500;
    job.run(RANKS, |deck| {
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
    });
}
