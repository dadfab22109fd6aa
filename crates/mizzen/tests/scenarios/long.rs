//! Messages that are longer than a lane or a frame.

use std::time::Duration;

use mizzen::{Error, Mailbox, MailboxRef, Message, PostError, Result, RetrieveError, UnpackError};

use super::{Job, bytes, inbox_of, pair};

pub(crate) fn long_pieces_go_where_they_were_told_to(job: &Job<'_>) {
    let lengths = [10usize, 3000, 200_000, 0, 70_000, 1, 1 << 20];
    pair(
        job,
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

pub(crate) fn a_message_of_thousands_of_pieces_arrives(job: &Job<'_>) {
    const PIECES: usize = 50_000;
    pair(
        job,
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

pub(crate) fn a_long_message_that_nobody_reads_holds_nobody_up(job: &Job<'_>) {
    pair(
        job,
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
pub(crate) fn long_messages_of_a_sender_arrive_whatever_becomes_of_those_before_them(
    job: &Job<'_>,
) {
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
        job,
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

/// Enough of them that each way is tried, with the receiver already there, and with one that comes while they are sent.
pub(crate) fn long_messages_that_are_awaited_are_right_whatever_way_they_go(job: &Job<'_>) {
    const LENGTHS: [usize; 3] = [40_000, 200_001, 1 << 20];
    const COUNT: usize = 100;
    pair(
        job,
        |deck, inbox| {
            let replies = deck.fetch("replies")?;
            for len in LENGTHS {
                let mut target = vec![0u8; len];
                for number in 0..COUNT {
                    inbox.receive_into(&mut target[..])?;
                    assert!(target == bytes(number, len), "{number}, {len}");
                    if number % 5 > 0 {
                        replies.send(&0u8)?;
                    }
                }
            }
            Ok(())
        },
        |deck, address| {
            let replies = inbox_of(deck, "replies")?;
            let mut sender = address.sender()?;
            for len in LENGTHS {
                let mut data = bytes(0, len);
                for number in 0..COUNT {
                    sender.send(&data[..])?;
                    // It is the caller's again.
                    data = bytes(number + 1, len);
                    if number % 5 > 0 {
                        let _ = replies.receive::<u8>()?;
                    }
                }
            }
            Ok(())
        },
    );
}

/// With a reader that falls behind, and a sender that writes over each as soon as it has posted it.
pub(crate) fn long_messages_that_follow_one_another_are_what_was_sent(job: &Job<'_>) {
    const LENGTHS: [usize; 3] = [100_000, 150_001, 250_000];
    const COUNT: usize = 60;
    pair(
        job,
        |_, inbox| {
            for len in LENGTHS {
                let mut target = vec![0u8; len];
                for number in 0..COUNT {
                    inbox.receive_into(&mut target[..])?;
                    assert!(target == bytes(number, len), "{number}, {len}");
                    if number == COUNT / 2 {
                        // It falls behind.
                        std::thread::sleep(Duration::from_millis(30));
                    }
                }
            }
            Ok(())
        },
        |_, address| {
            let mut sender = address.sender()?;
            for len in LENGTHS {
                let mut data = Vec::new();
                for number in 0..COUNT {
                    data.clear();
                    data.extend(bytes(number, len));
                    sender.send(&data[..])?;
                    // It is the caller's again.
                    data.fill(0xee);
                }
            }
            Ok(())
        },
    );
}

pub(crate) fn long_messages_are_tried_without_waiting_for_their_receiver(job: &Job<'_>) {
    pair(
        job,
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

pub(crate) fn a_message_in_hand_does_not_disturb_the_next_sender(job: &Job<'_>) {
    pair(
        job,
        |deck, inbox| {
            let first = inbox.retrieve()?;
            let go_on = deck.fetch("go on")?;
            go_on.send(&1u8)?;
            // The lane of the first sender ends while its message is in hand; the second one may use its line.
            for number in 0..600u32 {
                // Slow for once: meanwhile the sender runs out of room.
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

pub(crate) fn ranks_that_first_post_long_messages_to_each_other_do_not_wait(job: &Job<'_>) {
    job.run(2, |deck| {
        let inbox = deck.mailbox()?;
        deck.bind(&format!("inbox {}", deck.rank()), &inbox)?;
        let other = deck.fetch(&format!("inbox {}", 1 - deck.rank().0))?;
        let mine = vec![deck.rank().0 as u8; 20 << 20];
        let mut message = mizzen::Message::new();
        message.pack_cheaper(&mine[..]);
        other.sender()?.post(&mut message)?;
        let theirs = vec![1 - deck.rank().0 as u8; 20 << 20];
        assert!(inbox.receive_vec::<u8>()? == theirs);
        Ok(())
    });
}

/// Each holds all of its message until it is whole, and together they are more than the arena holds.
pub(crate) fn long_messages_that_together_exceed_the_arena_wait_before_they_begin(job: &Job<'_>) {
    const LEN: usize = 40 << 20;
    job.run(2, |deck| {
        let me = deck.rank().0;
        if me == 0 {
            std::thread::scope(|threads| {
                for number in 0..2u8 {
                    let deck = &deck;
                    threads.spawn(move || -> Result<()> {
                        let mut sender = deck.fetch(&format!("reader {number}"))?.sender()?;
                        for _ in 0..3 {
                            sender.send(&vec![number; LEN][..])?;
                        }
                        Ok(())
                    });
                }
            });
        } else {
            std::thread::scope(|threads| -> Result<()> {
                for number in 0..2u8 {
                    let inbox = deck.mailbox()?;
                    deck.bind(&format!("reader {number}"), &inbox)?;
                    threads.spawn(move || {
                        for _ in 0..3 {
                            let came = inbox.receive_vec::<u8>().unwrap();
                            assert!(came.len() == LEN && came.iter().all(|byte| *byte == number));
                        }
                    });
                }
                Ok(())
            })?;
        }
        Ok(())
    });
}

pub(crate) fn as_much_as_may_be_unread_is_posted_to_oneself_and_no_more(job: &Job<'_>) {
    job.run(1, |deck| {
        let inbox = deck.mailbox()?;
        let mut sender = inbox.address().sender()?;
        for _ in 0..3 {
            sender.send(&vec![5u8; 64 << 20][..])?;
            assert_eq!(inbox.receive_vec::<u8>()?.len(), 64 << 20);
        }
        // Nobody can read it meanwhile.
        let long = vec![5u8; (64 << 20) + 1];
        let mut message = Message::new();
        message.pack_cheaper(&long[..]);
        let busy = sender.try_post(&mut message);
        assert!(matches!(busy, Err(Error::Post(PostError::Busy { .. }))));
        let late = sender.post_timeout(&mut message, Duration::from_millis(50));
        assert!(matches!(late, Err(Error::Post(PostError::TimedOut { .. }))));
        // It had been announced.
        let taken_back = inbox.receive_vec::<u8>();
        assert!(
            matches!(taken_back, Err(Error::Unpack(UnpackError::Retracted))),
            "{taken_back:?}"
        );
        sender.send(&vec![6u8; 1 << 20][..])?;
        assert_eq!(inbox.receive_vec::<u8>()?, vec![6; 1 << 20]);
        Ok(())
    });
}

pub(crate) fn the_memory_of_long_messages_that_nobody_reads_comes_back_with_their_mailbox(
    job: &Job<'_>,
) {
    job.run(2, |deck| {
        let turns = deck.mailbox()?;
        deck.bind(&format!("turns {}", deck.rank()), &turns)?;
        for round in 0..4 {
            if deck.rank() == 0 {
                let mut sender = deck.fetch(&format!("unread {round}"))?.sender()?;
                for _ in 0..12 {
                    sender.send(&vec![1u8; 4 << 20][..])?;
                }
                deck.fetch("turns 1")?.send(&0u8)?;
                turns.receive::<u8>()?;
            } else {
                let inbox = deck.mailbox()?;
                deck.bind(&format!("unread {round}"), &inbox)?;
                turns.receive::<u8>()?;
                // Some are opened, one is read in part.
                let _opened = inbox.retrieve()?;
                let mut part = inbox.retrieve()?;
                assert_eq!(part.next_len(), Some(4 << 20));
                part.skip()?;
                drop((part, inbox));
                deck.fetch("turns 0")?.send(&0u8)?;
            }
        }
        Ok(())
    });
}

pub(crate) fn a_long_message_whose_receiver_does_not_come_is_taken_back(job: &Job<'_>) {
    job.run(2, |deck| {
        let (inbox, done) = (deck.mailbox()?, deck.mailbox()?);
        deck.bind(&format!("inbox {}", deck.rank()), &inbox)?;
        deck.bind(&format!("done {}", deck.rank()), &done)?;
        if deck.rank() == 0 {
            assert_eq!(done.receive::<u8>()?, 0);
            let nothing = inbox.retrieve_timeout(Duration::from_millis(20));
            assert!(matches!(
                nothing,
                Err(mizzen::Error::Retrieve(RetrieveError::TimedOut { .. }))
            ));
            deck.fetch("done 1")?.send(&0u8)?;
            assert_eq!(inbox.receive_vec::<u8>()?, vec![2; 1 << 20]);
        } else {
            let address = deck.fetch("inbox 0")?;
            // More than what may wait for a mailbox that nobody reads.
            let long = vec![1u8; (64 << 20) + 1];
            let mut message = Message::new();
            message.pack_cheaper(&long[..]);
            let outcome = address.post_timeout(&mut message, Duration::from_millis(50));
            assert!(
                matches!(
                    outcome,
                    Err(mizzen::Error::Post(PostError::TimedOut { .. }))
                ),
                "{outcome:?}"
            );
            deck.fetch("done 0")?.send(&0u8)?;
            let _ = done.receive::<u8>()?;
            address.send(&vec![2u8; 1 << 20][..])?;
        }
        Ok(())
    });
}

/// Numbers that are not alike anywhere in a message.
fn numbers(bytes: usize) -> Vec<u64> {
    (0..bytes as u64 / 8).map(number).collect()
}

fn number(at: u64) -> u64 {
    at.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn assert_numbers(came: &[u64], bytes: usize) {
    assert_eq!(came.len(), bytes / 8);
    let wrong = came
        .iter()
        .zip(0..)
        .find(|(came, at)| **came != number(*at));
    assert_eq!(wrong, None);
}

fn send_between_words(address: &MailboxRef, bytes: usize) -> Result<()> {
    let long = numbers(bytes);
    let mut message = Message::new();
    message.pack_safer(&1u32).pack_cheaper(&long[..]);
    message.pack_safer(&2u32);
    address.post(&mut message)
}

/// More than may be unread: it goes while it is read, whatever the way.
fn read_in_every_way(inbox: &Mailbox, bytes: usize) -> Result<()> {
    // Into place.
    let mut incoming = inbox.retrieve()?;
    let (mut first, mut place, mut last) = (0u32, vec![0u64; bytes / 8], 0u32);
    incoming.unpack_cheaper(&mut first)?;
    incoming.unpack_cheaper(&mut place[..])?;
    incoming.unpack_cheaper(&mut last)?;
    incoming.finish()?;
    assert_numbers(&place, bytes);
    assert_eq!((first, last), (1, 2));
    // At once.
    let mut incoming = inbox.retrieve()?;
    assert_eq!(incoming.unpack_express::<u32>()?, 1);
    assert_numbers(&incoming.unpack_vec::<u64>()?, bytes);
    assert_eq!(incoming.unpack_express::<u32>()?, 2);
    // Into place, with what comes after it before.
    let mut incoming = inbox.retrieve()?;
    place.fill(0);
    assert_eq!(incoming.unpack_express::<u32>()?, 1);
    incoming.unpack_cheaper(&mut place[..])?;
    assert_eq!(incoming.unpack_express::<u32>()?, 2);
    incoming.finish()?;
    assert_numbers(&place, bytes);
    // Skipped.
    let mut incoming = inbox.retrieve()?;
    incoming.skip()?;
    incoming.skip()?;
    assert_eq!(incoming.unpack_express::<u32>()?, 2);
    Ok(())
}

pub(crate) fn a_message_longer_than_may_be_unread_is_read_in_every_way(job: &Job<'_>) {
    const BYTES: usize = 65 << 20;
    pair(
        job,
        |_, inbox| read_in_every_way(&inbox, BYTES),
        |_, address| (0..4).try_for_each(|_| send_between_words(&address, BYTES)),
    );
}

pub(crate) fn a_message_of_two_hundred_megabytes_arrives_through_little_memory(job: &Job<'_>) {
    const BYTES: usize = 200 << 20;
    pair(
        job,
        |_, inbox| {
            let mut incoming = inbox.retrieve()?;
            incoming.skip()?;
            let mut place = vec![0u64; BYTES / 8];
            incoming.unpack_cheaper(&mut place[..])?;
            incoming.finish()?;
            assert_numbers(&place, BYTES);
            Ok(())
        },
        |deck, address| {
            send_between_words(&address, BYTES)?;
            assert!(deck.arena_bytes() <= 80 << 20, "{}", deck.arena_bytes());
            Ok(())
        },
    );
}

pub(crate) fn what_was_unpacked_of_a_very_long_message_cannot_be_again(job: &Job<'_>) {
    const BYTES: usize = 65 << 20;
    pair(
        job,
        |_, inbox| {
            let mut incoming = inbox.retrieve()?;
            assert_eq!(incoming.unpack_express::<u32>()?, 1);
            incoming.reset()?;
            incoming.skip()?;
            assert_numbers(&incoming.unpack_vec::<u64>()?, BYTES);
            let again = incoming.reset();
            assert!(
                matches!(again, Err(Error::Unpack(UnpackError::Spent))),
                "{again:?}"
            );
            // What is left can be kept.
            let mut rest = incoming.detach()?;
            assert!(rest.reset().is_err());
            assert_eq!(rest.unpack_express::<u32>()?, 2);
            // And all of it, before anything was unpacked, but once.
            let mut all = inbox.retrieve()?.detach()?;
            all.skip()?;
            assert_numbers(&all.unpack_vec::<u64>()?, BYTES);
            assert_eq!(all.unpack_express::<u32>()?, 2);
            Ok(())
        },
        |_, address| (0..2).try_for_each(|_| send_between_words(&address, BYTES)),
    );
}

/// Each is longer than may be unread: both go because both are read.
pub(crate) fn very_long_messages_cross_while_both_ranks_read(job: &Job<'_>) {
    const BYTES: usize = 80 << 20;
    job.run(2, |deck| {
        let inbox = deck.mailbox()?;
        deck.bind(&format!("inbox {}", deck.rank()), &inbox)?;
        let other = deck.fetch(&format!("inbox {}", 1 - deck.rank().0))?;
        std::thread::scope(|threads| {
            let posting = threads.spawn(|| send_between_words(&other, BYTES));
            let mut incoming = inbox.retrieve()?;
            incoming.skip()?;
            assert_numbers(&incoming.unpack_vec::<u64>()?, BYTES);
            posting.join().expect("posting does not panic")
        })
    });
}

/// Two that are half-written do not wait for each other's memory: each goes on when its own reader does.
pub(crate) fn very_long_messages_to_two_mailboxes_go_on_as_each_is_read(job: &Job<'_>) {
    const BYTES: usize = 80 << 20;
    job.run(2, |deck| {
        let names = ["first", "second"];
        let all = |each: &(dyn Fn(&str) -> Result<()> + Sync)| {
            std::thread::scope(|threads| {
                let both = names.map(|name| threads.spawn(move || each(name)));
                both.into_iter()
                    .try_for_each(|one| one.join().expect("none panics"))
            })
        };
        if deck.rank() == 0 {
            return all(&|name| {
                let inbox = inbox_of(&deck, name)?;
                (0..2).try_for_each(|_| {
                    let mut incoming = inbox.retrieve()?;
                    assert_eq!(incoming.unpack_express::<u32>()?, 1);
                    assert_numbers(&incoming.unpack_vec::<u64>()?, BYTES);
                    Ok(())
                })
            });
        }
        all(&|name| {
            let address = deck.fetch(name)?;
            (0..2).try_for_each(|_| send_between_words(&address, BYTES))
        })
    });
}

/// Rank 1 reads nothing until it is told to; rank 2 gets more than twice what rank 1 may leave unread.
pub(crate) fn a_rank_that_reads_nothing_stops_long_messages_to_nobody_else(job: &Job<'_>) {
    const LEN: usize = 1 << 20;
    job.run(3, |deck| {
        let me = deck.rank().0;
        if me > 0 {
            let (inbox, told) = (deck.mailbox()?, deck.mailbox()?);
            deck.bind(&format!("told {me}"), &told)?;
            deck.bind(&format!("inbox {me}"), &inbox)?;
            if me == 1 {
                told.receive::<u8>()?;
            }
            let count = if me == 1 { 65 } else { 150 };
            for _ in 0..count {
                assert_eq!(inbox.receive_vec::<u8>()?, vec![me as u8; LEN]);
            }
            return deck.fetch("done")?.send(&me);
        }
        let done = inbox_of(&deck, "done")?;
        let silent = deck.fetch("inbox 1")?;
        let long = vec![1u8; LEN];
        let mut message = Message::new();
        message.pack_cheaper(&long[..]);
        for _ in 0..64 {
            silent.post(&mut message)?;
        }
        let busy = silent.try_post(&mut message);
        assert!(
            matches!(busy, Err(Error::Post(PostError::Busy { .. }))),
            "{busy:?}"
        );
        let late = silent.post_timeout(&mut message, Duration::from_millis(20));
        assert!(
            matches!(late, Err(Error::Post(PostError::TimedOut { .. }))),
            "{late:?}"
        );
        let reader = deck.fetch("inbox 2")?;
        for _ in 0..150 {
            reader.send(&vec![2u8; LEN][..])?;
        }
        assert_eq!(done.receive::<u32>()?, 2);
        deck.fetch("told 1")?.send(&0u8)?;
        silent.post(&mut message)?;
        assert_eq!(done.receive::<u32>()?, 1);
        Ok(())
    });
}

pub(crate) fn a_very_long_message_that_is_dropped_in_the_middle_stops_its_sender(job: &Job<'_>) {
    const BYTES: usize = 80 << 20;
    pair(
        job,
        |_, inbox| {
            let mut incoming = inbox.retrieve()?;
            assert_eq!(incoming.unpack_express::<u32>()?, 1);
            assert_eq!(incoming.unpack_vec::<u8>()?, bytes(1, 3 << 20));
            drop(incoming);
            assert_eq!(inbox.receive::<u32>()?, 2);
            Ok(())
        },
        |_, address| {
            let (part, long) = (bytes(1, 3 << 20), vec![0u8; BYTES]);
            let mut message = Message::new();
            message.pack_safer(&1u32).pack_cheaper(&part[..]);
            message.pack_cheaper(&long[..]);
            address.post(&mut message)?;
            address.send(&2u32)?;
            Ok(())
        },
    );
}
