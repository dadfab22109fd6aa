//! Posted receives: memory that is given before the message comes.

use std::task::Poll;
use std::time::{Duration, Instant};

use mizzen::{
    Deck, Departure, Error, Mailbox, MailboxRef, Message, Receive, Received, Result, RetrieveError,
    UnpackError,
};
use rustix::event::{PollFd, PollFlags, poll};

use super::operations::{Runtime, is_timeout, poll_once};
use super::{Job, bytes, inbox_of, meet, pair};

/// One of each way that a message goes: none, one slot, the ring of a lane, chunks or a pushed body, an offered one.
const LENGTHS: [usize; 5] = [0, 8, 5_000, 120_000, 8 << 20];

fn is_of(received: &Received<u8>, rank: u32, expected: &[u8]) {
    assert_eq!(received.source(), rank);
    assert_eq!(received.count(), expected.len());
    assert!(received[..] == *expected, "{} bytes", expected.len());
}

/// Ranks 1 and 2 run `send`, then all that fits is here, and rank 0 runs `receive`.
fn two_senders(
    job: &Job<'_>,
    send: impl Fn(u32, &MailboxRef) -> Result<()> + Sync,
    receive: impl Fn(Mailbox) -> Result<()> + Sync,
) {
    job.run(3, |deck| {
        if deck.rank() == 0 {
            let inbox = inbox_of(&deck, "inbox")?;
            meet(&deck, "sent")?;
            receive(inbox)?;
        } else {
            send(deck.rank().0, &deck.fetch("inbox")?)?;
            meet(&deck, "sent")?;
        }
        // A rank that leaves would end what waits for it.
        meet(&deck, "received")
    });
}

pub(crate) fn messages_of_every_length_go_into_posted_memory(job: &Job<'_>) {
    let receive = |deck: &Deck, inbox: Mailbox| {
        for round in 0..4 {
            let post = |len: &usize| inbox.post_receive(vec![9u8; len + round]);
            let mut receives: Vec<_> = LENGTHS.iter().map(post).collect();
            meet(deck, &format!("posted {round}"))?;
            for (number, receive) in receives.iter_mut().enumerate() {
                let received = match round % 2 {
                    0 => receive.wait()?,
                    _ => receive.wait_timeout(Duration::MAX)?,
                };
                is_of(&received, 1, &bytes(number, LENGTHS[number]));
                let memory = received.into_memory();
                assert_eq!(memory.len(), LENGTHS[number] + round);
                assert!(memory[LENGTHS[number]..].iter().all(|byte| *byte == 9));
            }
        }
        Ok(())
    };
    let send = |deck: &Deck, address: MailboxRef| {
        let mut sender = address.sender()?;
        for round in 0..4 {
            meet(deck, &format!("posted {round}"))?;
            for (number, len) in LENGTHS.into_iter().enumerate() {
                // One way for all of a round: between two ways there is no order.
                match round {
                    0 | 1 => address.send(&bytes(number, len)[..])?,
                    _ => sender.send(&bytes(number, len)[..])?,
                }
            }
        }
        Ok(())
    };
    pair(job, receive, send);
}

/// A thread that waits for a posted receive leaves the networks to others while it sleeps until the rest has come.
pub(crate) fn long_messages_come_into_posted_memory_without_pauses(job: &Job<'_>) {
    let receive = |deck: &Deck, inbox: Mailbox| {
        let go_on = deck.fetch("go on")?;
        let mut memory = vec![0u8; LONG];
        let start = Instant::now();
        for _ in 0..LONG_ONES {
            let mut receive = inbox.post_receive(memory);
            go_on.send(&0u8)?;
            memory = receive.wait()?.into_memory();
        }
        // They take some milliseconds each; nobody looking took a second or more.
        let took = start.elapsed();
        assert!(took < Duration::from_secs(12), "{took:?}");
        Ok(())
    };
    let send = |deck: &Deck, address: MailboxRef| {
        let asked = inbox_of(deck, "go on")?;
        let body = vec![7u8; LONG];
        for _ in 0..LONG_ONES {
            asked.receive::<u8>()?;
            address.send(&body[..])?;
        }
        Ok(())
    };
    pair(job, receive, send);
}

const LONG: usize = 12 << 20;
const LONG_ONES: usize = 20;

pub(crate) fn receives_are_matched_in_the_order_in_which_they_were_posted(job: &Job<'_>) {
    pair(
        job,
        |_, inbox| {
            let post = |_| inbox.post_receive(vec![0u64]);
            let receives: Vec<_> = (0..300).map(post).collect();
            // Waited for in another order.
            for (number, mut receive) in receives.into_iter().enumerate().rev() {
                assert_eq!(receive.wait()?[..], [number as u64]);
            }
            Ok(())
        },
        |_, address| (0..300u64).try_for_each(|number| address.send(&number)),
    );
}

pub(crate) fn a_receive_of_one_rank_gets_that_ranks_messages(job: &Job<'_>) {
    const EACH: u64 = 40;
    two_senders(
        job,
        |rank, address| (0..EACH).try_for_each(|n| address.send(&(u64::from(rank) * 100 + n))),
        |inbox| {
            let mut posted = Vec::new();
            for number in 0..EACH {
                for rank in [2, 1] {
                    let receive = inbox.post_receive_from(rank, vec![0u64; 3])?;
                    posted.push((rank, number, receive));
                }
            }
            for (rank, number, mut receive) in posted {
                let received = receive.wait()?;
                assert_eq!(received.source(), rank);
                assert_eq!(received[..], [u64::from(rank) * 100 + number]);
            }
            Ok(())
        },
    );
}

pub(crate) fn the_older_of_two_receives_that_want_a_message_gets_it(job: &Job<'_>) {
    pair(
        job,
        |_, inbox| {
            let mut first = inbox.post_receive_from(1, vec![0u64])?;
            let mut second = inbox.post_receive(vec![0u64]);
            let mut third = inbox.post_receive(vec![0u64]);
            let mut fourth = inbox.post_receive_from(1, vec![0u64])?;
            let mut found = [0; 4];
            for (place, receive) in [&mut fourth, &mut third, &mut second, &mut first]
                .into_iter()
                .enumerate()
            {
                found[place] = receive.wait()?[0];
            }
            assert_eq!(found, [3, 2, 1, 0]);
            Ok(())
        },
        |_, address| (0..4u64).try_for_each(|number| address.send(&number)),
    );
}

pub(crate) fn retrieve_gets_what_no_receive_wanted(job: &Job<'_>) {
    const EACH: u64 = 30;
    two_senders(
        job,
        |rank, address| (0..EACH).try_for_each(|n| address.send(&(u64::from(rank) * 100 + n))),
        |mut inbox| {
            let post = |_| inbox.post_receive_from(2, vec![0u64]);
            let mut receives = (0..EACH).map(post).collect::<Result<Vec<_>>>()?;
            let mut next = |number: u64| -> Result<u64> {
                let mut incoming = match number % 4 {
                    0 => inbox.retrieve()?,
                    1 => inbox.retrieve_from(1)?,
                    2 => smol::block_on(inbox.retrieve_async())?,
                    _ => smol::block_on(inbox.retrieve_from_async(1))?,
                };
                assert_eq!(incoming.source(), 1);
                incoming.unpack_express()
            };
            for number in 0..EACH {
                assert_eq!(next(number)?, 100 + number);
            }
            for (number, receive) in receives.iter_mut().enumerate() {
                assert_eq!(receive.wait()?[..], [200 + number as u64]);
            }
            assert!(inbox.try_retrieve()?.is_none());
            Ok(())
        },
    );
}

pub(crate) fn a_selection_gets_what_no_receive_wanted(job: &Job<'_>) {
    job.run(3, |deck| {
        if deck.rank() != 0 {
            let (first, second) = (deck.fetch("first")?, deck.fetch("second")?);
            for number in 0..20u64 {
                first.send(&number)?;
                second.send(&number)?;
            }
            return meet(&deck, "received");
        }
        let (mut first, mut second) = (inbox_of(&deck, "first")?, inbox_of(&deck, "second")?);
        let post = |_| first.post_receive_from(1, vec![0u64]);
        let mut receives = (0..20).map(post).collect::<Result<Vec<_>>>()?;
        let mut found = [[0; 3]; 2];
        for _ in 0..60 {
            let (index, mut incoming) = mizzen::select([&mut first, &mut second]).retrieve()?;
            let seen = &mut found[index][incoming.source().0 as usize];
            assert_eq!(incoming.unpack_express::<u64>()?, *seen);
            *seen += 1;
        }
        assert_eq!(found, [[0, 0, 20], [0, 20, 20]]);
        for (number, receive) in receives.iter_mut().enumerate() {
            assert_eq!(receive.wait()?[..], [number as u64]);
        }
        meet(&deck, "received")
    });
}

pub(crate) fn a_descriptor_is_readable_for_what_no_receive_wanted(job: &Job<'_>) {
    job.run(3, |deck| {
        if deck.rank() != 0 {
            let inbox = deck.fetch("inbox")?;
            (0..20u64).try_for_each(|number| inbox.send(&number))?;
            return meet(&deck, "received");
        }
        let inbox = inbox_of(&deck, "inbox")?;
        let descriptor = inbox.descriptor()?;
        let post = |_| inbox.post_receive_from(1, vec![0u64]);
        let mut receives = (0..20).map(post).collect::<Result<Vec<_>>>()?;
        let mut found = 0;
        while found < 20 {
            let mut descriptors = [PollFd::new(&descriptor, PollFlags::IN)];
            poll(&mut descriptors, None).expect("it is a descriptor");
            while let Some(mut incoming) = inbox.try_retrieve()? {
                assert_eq!(incoming.source(), 2);
                assert_eq!(incoming.unpack_express::<u64>()?, found);
                found += 1;
            }
        }
        for (number, receive) in receives.iter_mut().enumerate() {
            assert_eq!(receive.wait()?[..], [number as u64]);
        }
        meet(&deck, "received")
    });
}

pub(crate) fn a_mailbox_is_as_before_when_nothing_is_posted(job: &Job<'_>) {
    const ROUNDS: u64 = 200;
    pair(
        job,
        |deck, mut inbox| {
            let answers = deck.fetch("answers")?;
            for number in (0..ROUNDS * 5).step_by(5) {
                assert_eq!(inbox.receive::<u64>()?, number);
                let mut first = inbox.post_receive(vec![0u64]);
                let second = inbox.post_receive_from(1, vec![0u64])?;
                assert_eq!(first.wait()?[..], [number + 1]);
                assert_eq!(smol::block_on(second)?[..], [number + 2]);
                assert_eq!(inbox.receive::<u64>()?, number + 3);
                let mut incoming = smol::block_on(inbox.retrieve_async())?;
                assert_eq!(incoming.unpack_express::<u64>()?, number + 4);
                answers.send(&number)?;
            }
            Ok(())
        },
        |deck, address| {
            let answers = inbox_of(deck, "answers")?;
            let mut sender = address.sender()?;
            for number in 0..ROUNDS * 5 {
                // A round comes by one way, the next by the other.
                match (number / 5) % 2 {
                    0 => address.send(&number)?,
                    _ => sender.send(&number)?,
                }
                if number % 5 == 4 {
                    assert_eq!(answers.receive::<u64>()?, number - 4);
                }
            }
            Ok(())
        },
    );
}

pub(crate) fn receives_are_awaited_under_every_runtime(job: &Job<'_>) {
    pair(
        job,
        |_, inbox| {
            for runtime in Runtime::ALL {
                let post = |len: &usize| inbox.post_receive(vec![0u8; *len]);
                let receives: Vec<_> = LENGTHS.iter().map(post).collect();
                runtime.block_on(async {
                    for (number, receive) in receives.into_iter().enumerate() {
                        is_of(&receive.await?, 1, &bytes(number, LENGTHS[number]));
                    }
                    Ok::<(), Error>(())
                })?;
            }
            Ok(())
        },
        |_, address| {
            for _ in Runtime::ALL {
                for (number, len) in LENGTHS.into_iter().enumerate() {
                    address.send(&bytes(number, len)[..])?;
                }
            }
            Ok(())
        },
    );
}

pub(crate) fn receives_are_awaited_by_tasks_of_the_process(job: &Job<'_>) {
    pair(
        job,
        |deck, inbox| {
            let start = |number: usize| {
                let receive = inbox.post_receive(vec![0u8; LENGTHS[number % 5]]);
                deck.spawn_async(receive)
            };
            let tasks: Vec<_> = (0..20).map(start).collect();
            for (number, task) in tasks.into_iter().enumerate() {
                is_of(&task.join()??, 1, &bytes(number, LENGTHS[number % 5]));
            }
            Ok(())
        },
        |_, address| {
            (0..20).try_for_each(|number| address.send(&bytes(number, LENGTHS[number % 5])[..]))
        },
    );
}

pub(crate) fn threads_wait_for_receives_while_the_owner_retrieves(job: &Job<'_>) {
    const EACH: u64 = 60;
    job.run(3, |deck| {
        if deck.rank() != 0 {
            let inbox = deck.fetch("inbox")?;
            (0..EACH).try_for_each(|number| inbox.send(&number))?;
            return meet(&deck, "received");
        }
        let inbox = inbox_of(&deck, "inbox")?;
        let post = |_| inbox.post_receive_from(1, vec![0u64]);
        let receives = (0..EACH).map(post).collect::<Result<Vec<_>>>()?;
        std::thread::scope(|scope| {
            let wait = |(number, mut receive): (usize, Receive<u64>)| {
                scope.spawn(move || {
                    let received = receive.wait().expect("it was sent");
                    assert_eq!(received[..], [number as u64]);
                })
            };
            let mut receives = receives.into_iter().enumerate();
            // Some wait before, some after.
            let before: Vec<_> = receives.by_ref().take(3).map(wait).collect();
            for number in 0..EACH {
                let mut incoming = inbox.retrieve()?;
                assert_eq!(incoming.source(), 2);
                assert_eq!(incoming.unpack_express::<u64>()?, number);
            }
            let after: Vec<_> = receives.map(wait).collect();
            let joined = before.into_iter().chain(after).map(|one| one.join());
            assert!(joined.into_iter().all(|one| one.is_ok()));
            Ok::<(), Error>(())
        })?;
        meet(&deck, "received")
    });
}

pub(crate) fn a_receive_that_is_cancelled_leaves_its_message_to_the_next(job: &Job<'_>) {
    pair(
        job,
        |deck, inbox| {
            let first = inbox.post_receive(vec![7u64; 2]);
            let mut second = inbox.post_receive(vec![0u64; 2]);
            let third = inbox.post_receive_from(1, vec![8u64; 3])?;
            assert!(poll_once(&mut second).is_pending());
            assert_eq!(first.cancel().expect("nothing came"), [7; 2]);
            assert_eq!(third.cancel().expect("nothing came"), [8; 3]);
            meet(deck, "cancelled")?;
            assert_eq!(second.wait()?[..], [1]);
            assert_eq!(inbox.receive::<u64>()?, 2);
            Ok(())
        },
        |deck, address| {
            meet(deck, "cancelled")?;
            address.send(&1u64)?;
            address.send(&2u64)
        },
    );
}

pub(crate) fn a_receive_that_has_its_message_is_not_cancelled(job: &Job<'_>) {
    two_senders(
        job,
        |rank, address| match rank {
            1 => address.send(&bytes(3, 120_000)[..]),
            _ => Ok(()),
        },
        |inbox| {
            let mut receive = inbox.post_receive(vec![0u8; 120_000]);
            // Nobody waits for it: a worker fills it, and this only looks.
            while !receive.is_done() {
                std::thread::yield_now();
            }
            receive = receive.cancel().expect_err("it is done");
            is_of(&receive.wait()?, 1, &bytes(3, 120_000));
            Ok(())
        },
    );
}

pub(crate) fn no_message_is_lost_by_cancelling_at_any_step(job: &Job<'_>) {
    const COUNT: usize = 60;
    let len = |number: usize| [8, 5_000, 120_000, 1 << 20][number % 4];
    pair(
        job,
        |_, inbox| {
            let mut looks = 0;
            let mut memory = vec![0u8; 1 << 20];
            for number in 0..COUNT {
                let received = loop {
                    let mut receive = inbox.post_receive(memory);
                    looks += 1;
                    // Somebody looks, fills or waits meanwhile, in one of the ways that there are.
                    let found = match looks % 3 {
                        0 => receive.try_take()?,
                        1 => receive.wait_timeout(Duration::ZERO).ok(),
                        _ => match poll_once(&mut receive) {
                            Poll::Ready(received) => Some(received?),
                            Poll::Pending => None,
                        },
                    };
                    if let Some(received) = found {
                        break received;
                    }
                    match receive.cancel() {
                        Ok(back) => memory = back,
                        Err(mut receive) => break receive.wait()?,
                    }
                };
                is_of(&received, 1, &bytes(number, len(number)));
                memory = received.into_memory();
                assert_eq!(memory.len(), 1 << 20);
            }
            Ok(())
        },
        |_, address| {
            (0..COUNT).try_for_each(|number| address.send(&bytes(number, len(number))[..]))
        },
    );
}

pub(crate) fn a_receive_that_is_dropped_leaves_the_messages_behind_it(job: &Job<'_>) {
    const COUNT: usize = 40;
    let len = |number: usize| [8, 5_000, 120_000, 3 << 20][number % 4];
    pair(
        job,
        |_, inbox| {
            // Each takes at most one message with it, whole.
            for step in 0..COUNT / 2 {
                let mut receive = inbox.post_receive(vec![0u8; 3 << 20]);
                for _ in 0..step {
                    let _ = receive.is_done();
                }
                if step % 3 == 0 {
                    let _ = poll_once(&mut receive);
                }
            }
            let mut last = None;
            while last != Some(COUNT - 1) {
                let mut incoming = inbox.retrieve()?;
                let found = incoming.unpack_vec::<u8>()?;
                let number = (last.map_or(0, |last| last + 1)..COUNT)
                    .find(|number| found == bytes(*number, len(*number)));
                last = Some(number.expect("it is a later one, and whole"));
            }
            Ok(())
        },
        |_, address| {
            (0..COUNT).try_for_each(|number| address.send(&bytes(number, len(number))[..]))
        },
    );
}

pub(crate) fn a_receive_whose_deadline_passes_is_still_posted(job: &Job<'_>) {
    pair(
        job,
        |deck, inbox| {
            let mut receive = inbox.post_receive(vec![0u8; 300_000]);
            let late = receive.wait_timeout(Duration::from_millis(10));
            assert!(is_timeout(&late), "{late:?}");
            let late = receive.wait_deadline(std::time::Instant::now());
            assert!(is_timeout(&late), "{late:?}");
            assert!(receive.try_take()?.is_none());
            meet(deck, "late")?;
            is_of(&receive.wait_timeout(Duration::MAX)?, 1, &bytes(1, 300_000));
            Ok(())
        },
        |deck, address| {
            meet(deck, "late")?;
            address.send(&bytes(1, 300_000)[..])
        },
    );
}

pub(crate) fn a_message_that_is_too_long_is_retrieved(job: &Job<'_>) {
    pair(
        job,
        |_, inbox| {
            for (number, len) in LENGTHS.into_iter().enumerate().skip(1) {
                let mut short = inbox.post_receive(vec![0u8; len - 1]);
                let mut next = inbox.post_receive(vec![0u64; 1]);
                let mut odd = inbox.post_receive(vec![0u32; 4]);
                let error = short.wait().expect_err("it is too long");
                let expected = UnpackError::TooLong {
                    room: len - 1,
                    found: len,
                };
                assert!(
                    matches!(&error, Error::Unpack(error) if *error == expected),
                    "{error}"
                );
                let said = error.to_string();
                assert!(said.contains(&len.to_string()) && said.contains(&(len - 1).to_string()));
                assert_eq!(short.cancel().expect("it has failed").len(), len - 1);
                assert_eq!(next.wait()?[..], [number as u64]);
                let error = odd.wait().expect_err("it is not whole values");
                assert!(
                    matches!(error, Error::Unpack(UnpackError::Length { found: 7, .. })),
                    "{error}"
                );
                let mut incoming = inbox.retrieve()?;
                assert!(incoming.unpack_vec::<u8>()? == bytes(number, len));
                drop(incoming);
                assert_eq!(inbox.receive_vec::<u8>()?, [1; 7]);
            }
            Ok(())
        },
        |_, address| {
            for (number, len) in LENGTHS.into_iter().enumerate().skip(1) {
                address.send(&bytes(number, len)[..])?;
                address.send(&(number as u64))?;
                address.send(&[1u8; 7])?;
            }
            Ok(())
        },
    );
}

pub(crate) fn what_is_not_one_plain_piece_is_retrieved(job: &Job<'_>) {
    pair(
        job,
        |_, inbox| {
            let several = inbox.post_receive(vec![0u64; 100]);
            let mut value = inbox.post_receive(vec![0u64; 100]);
            let mut lent = inbox.post_receive(vec![0u8; 100]);
            let mut plain = inbox.post_receive(vec![0u64; 100]);
            assert_eq!(plain.wait()?[..], [3]);
            let why = |outcome: Result<()>| match outcome {
                Err(Error::Unpack(error)) => error,
                other => panic!("{other:?}"),
            };
            // It has failed, and nobody knows yet that a message is left because of it.
            let Err(mut several) = several.cancel() else {
                panic!("a message was for it");
            };
            assert_eq!(why(several.wait().map(drop)), UnpackError::Several);
            assert!(several.cancel().is_ok_and(|memory| memory.len() == 100));
            assert_eq!(why(value.wait().map(drop)), UnpackError::NotPlain);
            assert_eq!(why(lent.wait().map(drop)), UnpackError::Lent);
            let mut incoming = inbox.retrieve()?;
            assert_eq!(incoming.unpack_express::<u64>()?, 1);
            assert_eq!(incoming.unpack_express::<u64>()?, 2);
            assert_eq!(inbox.receive_value::<String>()?, "text");
            let (header, buffer) = inbox.receive_lent::<u32, u8>()?;
            assert_eq!((header, &buffer[..]), (5, &[6; 50][..]));
            Ok(())
        },
        |deck, address| {
            let mut message = Message::new();
            message.pack_safer(&1u64).pack_safer(&2u64);
            address.post(&mut message)?;
            address.send_value("text")?;
            let mut buffer = deck.lend::<u8>(50)?;
            buffer.fill(6);
            address.post_lent(&5u32, buffer)?;
            address.send(&3u64)
        },
    );
}

fn gone_of<T: std::fmt::Debug>(outcome: Result<T>) -> (u32, Departure) {
    match outcome {
        Err(Error::Retrieve(RetrieveError::PeerGone(gone))) => (gone.rank().0, gone.how()),
        other => panic!("{other:?}"),
    }
}

pub(crate) fn a_receive_from_a_rank_that_dies_ends_after_its_messages(job: &Job<'_>) {
    job.run_losing(1, 2, |deck| {
        if deck.rank() == 1 {
            let orders = inbox_of(&deck, "orders")?;
            let inbox = deck.fetch("inbox")?;
            inbox.send(&bytes(1, 8)[..])?;
            inbox.send(&bytes(2, 120_000)[..])?;
            orders.receive::<u8>()?;
            return job.die((deck, inbox, orders));
        }
        let inbox = inbox_of(&deck, "inbox")?;
        let post = |rank| inbox.post_receive_from(rank, vec![0u8; 200_000]);
        let (mut first, mut second) = (post(1)?, post(1)?);
        let (mut third, fourth) = (post(1)?, post(1)?);
        is_of(&first.wait()?, 1, &bytes(1, 8));
        is_of(&second.wait()?, 1, &bytes(2, 120_000));
        deck.fetch("orders")?.send(&0u8)?;
        assert_eq!(gone_of(third.wait()).0, 1);
        assert_eq!(third.cancel().expect("it has failed").len(), 200_000);
        assert_eq!(gone_of(smol::block_on(fourth)).0, 1);
        // One that comes too late.
        assert_eq!(gone_of(post(1)?.wait()).0, 1);
        Ok(())
    });
}

pub(crate) fn a_receive_from_a_rank_that_leaves_ends_after_its_messages(job: &Job<'_>) {
    pair(
        job,
        |_, inbox| {
            let mut first = inbox.post_receive_from(1, vec![0u8; 200_000])?;
            let mut second = inbox.post_receive_from(1, vec![0u8; 200_000])?;
            let mut third = inbox.post_receive_from(1, vec![0u8; 200_000])?;
            is_of(&first.wait()?, 1, &bytes(1, 120_000));
            is_of(&second.wait_timeout(Duration::MAX)?, 1, &bytes(2, 8));
            assert_eq!(gone_of(third.wait()), (1, Departure::Left));
            Ok(())
        },
        |_, address| {
            address.send(&bytes(1, 120_000)[..])?;
            address.send(&bytes(2, 8)[..])
        },
    );
}

pub(crate) fn a_loss_is_told_to_the_oldest_receive_of_anybody(job: &Job<'_>) {
    pair(
        job,
        |deck, inbox| {
            inbox.depend_on(1);
            let mut first = inbox.post_receive(vec![0u64]);
            let mut second = inbox.post_receive(vec![0u64]);
            let mut third = inbox.post_receive(vec![0u64]);
            meet(deck, "posted")?;
            assert_eq!(first.wait()?[..], [5]);
            assert_eq!(gone_of(second.wait()), (1, Departure::Left));
            inbox.address().send(&6u64)?;
            assert_eq!(third.wait()?[..], [6]);
            Ok(())
        },
        |deck, address| {
            meet(deck, "posted")?;
            address.send(&5u64)
        },
    );
}

pub(crate) fn a_receive_from_a_rank_that_does_not_exist_is_refused(job: &Job<'_>) {
    job.run(1, |deck| {
        let inbox = deck.mailbox()?;
        let refused = inbox.post_receive_from(1, vec![0u8]).map(drop);
        assert!(
            matches!(
                refused,
                Err(Error::Retrieve(RetrieveError::NoSuchRank { size: 1, .. }))
            ),
            "{refused:?}"
        );
        inbox.address().send(&1u8)?;
        assert_eq!(inbox.post_receive_from(0, vec![0u8])?.wait()?[..], [1]);
        Ok(())
    });
}

pub(crate) fn a_thousand_receives_are_done_whatever_the_order_of_the_messages(job: &Job<'_>) {
    const EACH: u64 = 500;
    job.run(3, |deck| {
        if deck.rank() != 0 {
            meet(&deck, "posted")?;
            let inbox = deck.fetch("inbox")?;
            let mut sender = inbox.sender()?;
            for number in 0..EACH {
                match deck.rank().0 {
                    1 => inbox.send(&[number, 1])?,
                    _ => sender.send(&[number, 2])?,
                }
            }
            return meet(&deck, "received");
        }
        let inbox = inbox_of(&deck, "inbox")?;
        // First all of one rank, then all of the other; waited for from the last on.
        let post = |number: u64| inbox.post_receive_from(1 + (number / EACH) as u32, vec![0u64; 4]);
        let receives = (0..2 * EACH).map(post).collect::<Result<Vec<_>>>()?;
        meet(&deck, "posted")?;
        for (number, receive) in receives.into_iter().enumerate().rev() {
            let (number, rank) = (number as u64 % EACH, 1 + number as u64 / EACH);
            let mut receive = receive;
            let received = match number % 3 {
                0 => receive.wait()?,
                1 => smol::block_on(receive)?,
                _ => receive.wait_timeout(Duration::MAX)?,
            };
            assert_eq!(received[..], [number, rank]);
        }
        meet(&deck, "received")
    });
}

pub(crate) fn receives_of_a_mailbox_that_is_dropped_end(job: &Job<'_>) {
    job.run(1, |deck| {
        let inbox = deck.mailbox()?;
        inbox.address().send(&1u64)?;
        let mut first = inbox.post_receive(vec![0u64]);
        let mut second = inbox.post_receive_from(0, vec![0u64])?;
        let mut third = inbox.post_receive(vec![0u64]);
        assert!(poll_once(&mut second).is_pending());
        assert!(first.is_done());
        let waits = std::thread::spawn(move || third.wait().map(drop));
        drop(inbox);
        let is_closed =
            |outcome: Result<()>| matches!(outcome, Err(Error::Retrieve(RetrieveError::Closed)));
        assert!(is_closed(second.wait().map(drop)));
        assert!(is_closed(waits.join().expect("it does not panic")));
        assert_eq!(first.wait()?[..], [1]);
        assert_eq!(second.cancel().expect("it has failed"), [0]);
        Ok(())
    });
}

/// More than may wait for a reader: its sender goes on only if it is read.
pub(crate) fn a_receive_goes_on_while_its_thread_waits_for_something_else(job: &Job<'_>) {
    const LEN: usize = 80 << 20;
    job.run(2, |deck| {
        if deck.rank() == 1 {
            deck.fetch("inbox")?.send(&vec![5u8; LEN][..])?;
            return deck.fetch("notes")?.send(&1u64);
        }
        let notes = inbox_of(&deck, "notes")?;
        let inbox = deck.mailbox()?;
        let mut receive = inbox.post_receive(vec![0u8; LEN]);
        deck.bind("inbox", &inbox)?;
        assert_eq!(notes.receive::<u64>()?, 1);
        let received = receive.wait()?;
        assert_eq!(received.count(), LEN);
        assert!(received.iter().all(|byte| *byte == 5));
        Ok(())
    });
}
