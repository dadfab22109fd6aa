//! Retrieving in all its forms: of one rank, with a deadline, awaited, given up.

use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use mizzen::{
    Deck, Departure, Error, Incoming, Mailbox, MailboxRef, Message, PostError, Result,
    RetrieveError, Sender,
};

use super::{Job, bytes, inbox_of, meet, pair};

/// Whose tasks a future may be polled by.
#[derive(Clone, Copy, Debug)]
pub(super) enum Runtime {
    Parking,
    Smol,
    TokioOfOneThread,
    TokioOfThreads,
}

impl Runtime {
    pub(super) const ALL: [Self; 4] = [
        Self::Parking,
        Self::Smol,
        Self::TokioOfOneThread,
        Self::TokioOfThreads,
    ];

    /// Runs a future of this thread to its end.
    pub(super) fn block_on<T>(self, future: impl Future<Output = T>) -> T {
        let tokio = |mut builder: tokio::runtime::Builder| builder.enable_all().build();
        match self {
            Self::Parking => super::messages::block_on(future),
            Self::Smol => smol::block_on(future),
            Self::TokioOfOneThread => tokio(tokio::runtime::Builder::new_current_thread())
                .expect("a runtime")
                .block_on(future),
            Self::TokioOfThreads => tokio(tokio::runtime::Builder::new_multi_thread())
                .expect("a runtime")
                .block_on(future),
        }
    }
}

/// Polls a future once.
pub(super) fn poll_once<T>(future: impl Future<Output = T>) -> Poll<T> {
    pin!(future).poll(&mut Context::from_waker(Waker::noop()))
}

pub(super) fn is_timeout<T>(outcome: &Result<T>) -> bool {
    matches!(
        outcome,
        Err(Error::Retrieve(RetrieveError::TimedOut { .. }))
    )
}

fn next(inbox: &Mailbox) -> Result<(u32, u64)> {
    let mut incoming = inbox.retrieve()?;
    Ok((incoming.source().0, incoming.unpack_express()?))
}

fn next_of(inbox: &Mailbox, rank: u32) -> Result<u64> {
    let mut incoming = inbox.retrieve_from(rank)?;
    assert_eq!(incoming.source(), rank);
    incoming.unpack_express()
}

/// A job of three. Ranks 1 and 2 run `send`, then rank 0 has what they sent in its mailbox, as far as it fits in their windows,
/// and runs `receive`.
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

pub(crate) fn one_ranks_messages_are_retrieved_and_others_stay_in_their_order(job: &Job<'_>) {
    const EACH: u64 = 20;
    two_senders(
        job,
        |rank, address| (0..EACH).try_for_each(|n| address.send(&(u64::from(rank) * 100 + n))),
        |inbox| {
            for number in 0..EACH {
                assert_eq!(next_of(&inbox, 2)?, 200 + number);
            }
            for number in 0..EACH {
                assert_eq!(next(&inbox)?, (1, 100 + number));
            }
            Ok(())
        },
    );
}

pub(crate) fn one_ranks_messages_of_every_kind_and_length_come_in_their_order(job: &Job<'_>) {
    const LENGTHS: [usize; 6] = [0, 40, 3_000, 70_000, 300_000, 8];
    let check = |inbox: &Mailbox, rank: u32, number: usize| -> Result<()> {
        let mut incoming = inbox.retrieve_from(rank)?;
        assert_eq!(incoming.source(), rank);
        assert_eq!(incoming.unpack_express::<u64>()?, number as u64);
        let found = incoming.unpack_vec::<u8>()?;
        assert_eq!(found, bytes(number, LENGTHS[number % LENGTHS.len()]));
        Ok(())
    };
    job.run(3, |deck| {
        if deck.rank() == 0 {
            let inbox = inbox_of(&deck, "inbox")?;
            // Those of one rank all before those of the other, which come at the same time.
            (0..60).try_for_each(|number| check(&inbox, 2, number))?;
            (0..60).try_for_each(|number| check(&inbox, 1, number))?;
            assert!(inbox.try_retrieve()?.is_none());
            return meet(&deck, "all is read");
        }
        let address = deck.fetch("inbox")?;
        let mut sender = address.sender()?;
        for number in 0..60 {
            let data = bytes(number, LENGTHS[number % LENGTHS.len()]);
            let mut message = Message::new();
            message.pack_safer(&(number as u64)).pack_cheaper(&data[..]);
            // One way for each rank: between two ways there is no order.
            if deck.rank() == 1 {
                address.post(&mut message)?;
            } else {
                sender.post(&mut message)?;
            }
        }
        meet(&deck, "all is read")
    });
}

pub(crate) fn try_retrieve_from_finds_nothing_but_that_ranks(job: &Job<'_>) {
    two_senders(
        job,
        |rank, address| match rank {
            1 => address.send(&1u64),
            _ => Ok(()),
        },
        |inbox| {
            assert!(inbox.try_retrieve_from(2)?.is_none());
            assert_eq!(next_of(&inbox, 1)?, 1);
            assert!(inbox.try_retrieve_from(1)?.is_none());
            inbox.address().send(&7u64)?;
            assert!(inbox.try_retrieve_from(1)?.is_none());
            let mine = inbox.try_retrieve_from(0)?.expect("it was sent");
            assert_eq!(mine.source(), 0);
            Ok(())
        },
    );
}

pub(crate) fn a_deadline_of_retrieve_from_passes_though_others_sent(job: &Job<'_>) {
    job.run(3, |deck| {
        if deck.rank() == 1 {
            deck.fetch("inbox")?.send(&1u64)?;
        }
        if deck.rank() == 0 {
            let inbox = inbox_of(&deck, "inbox")?;
            let late = inbox.retrieve_from_timeout(2, Duration::from_millis(20));
            assert!(is_timeout(&late), "{late:?}");
            let deadline = std::time::Instant::now() + Duration::from_millis(20);
            let late = inbox.retrieve_from_deadline(2, deadline);
            assert!(is_timeout(&late), "{late:?}");
            let mut found = inbox.retrieve_from_timeout(1, Duration::MAX)?;
            assert_eq!(found.unpack_express::<u64>()?, 1);
        }
        // Until then nobody leaves: that would end the waits, too.
        meet(&deck, "both have waited")
    });
}

pub(crate) fn retrieve_from_is_awaited_under_every_runtime(job: &Job<'_>) {
    const EACH: u64 = 50;
    job.run(3, |deck| {
        if deck.rank() != 0 {
            let address = deck.fetch("inbox")?;
            let mut sender = address.sender()?;
            for number in 0..EACH * Runtime::ALL.len() as u64 {
                match number % 2 {
                    0 => address.send(&number)?,
                    _ => sender.send(&number)?,
                }
            }
            return Ok(());
        }
        let mut inbox = inbox_of(&deck, "inbox")?;
        for rank in [2, 1] {
            let mut seen = Vec::new();
            for runtime in Runtime::ALL {
                runtime.block_on(async {
                    for _ in 0..EACH {
                        let mut incoming = inbox.retrieve_from_async(rank).await?;
                        assert_eq!(incoming.source(), rank);
                        seen.push(incoming.unpack_express::<u64>()?);
                    }
                    Ok::<(), Error>(())
                })?;
            }
            // Each way keeps its order.
            for way in 0..2 {
                let of_way = seen.iter().filter(|number| **number % 2 == way);
                assert!(of_way.is_sorted(), "{seen:?}");
            }
        }
        Ok(())
    });
}

pub(crate) fn a_rank_may_retrieve_from_itself(job: &Job<'_>) {
    two_senders(
        job,
        |_, address| address.send(&1u64),
        |inbox| {
            inbox.address().send(&10u64)?;
            inbox.address().sender()?.send(&11u64)?;
            let mut mine = [next_of(&inbox, 0)?, next_of(&inbox, 0)?];
            mine.sort_unstable();
            assert_eq!(mine, [10, 11]);
            assert_eq!(next(&inbox)?.1 + next(&inbox)?.1, 2);
            Ok(())
        },
    );
}

pub(crate) fn retrieve_from_knows_the_ranks_of_the_job(job: &Job<'_>) {
    job.run(1, |deck| {
        let mut inbox = deck.mailbox()?;
        let is_said = |outcome: Result<_>| {
            let error = outcome.map(drop).unwrap_err();
            let expected = "the job has no rank 1, only ranks 0 to 0";
            assert!(error.to_string().contains(expected), "{error}");
        };
        is_said(inbox.retrieve_from(1).map(drop));
        is_said(inbox.try_retrieve_from(1).map(drop));
        is_said(super::messages::block_on(inbox.retrieve_from_async(1)).map(drop));
        Ok(())
    });
}

pub(crate) fn the_death_of_the_awaited_rank_ends_the_wait(job: &Job<'_>) {
    job.run_losing(1, 2, |deck| {
        if deck.rank() == 1 {
            // Linked, but the mailbox never heard of it.
            meet(&deck, "linked")?;
            return job.die(deck);
        }
        let inbox = deck.mailbox()?;
        inbox.address().send(&5u64)?;
        meet(&deck, "linked")?;
        let error = inbox.retrieve_from(1).unwrap_err();
        assert_eq!(error.lost(), Some(1.into()), "{error}");
        // As often as it is asked for.
        let error = inbox.retrieve_from(1).unwrap_err();
        assert_eq!(error.lost(), Some(1.into()), "{error}");
        assert_eq!(next(&inbox)?, (0, 5));
        Ok(())
    });
}

pub(crate) fn the_death_of_the_awaited_rank_ends_the_task(job: &Job<'_>) {
    job.run_losing(1, 2, |deck| {
        if deck.rank() == 1 {
            let address = deck.fetch("inbox")?;
            address.send(&1u64)?;
            meet(&deck, "it was read")?;
            return job.die((deck, address));
        }
        let mut inbox = inbox_of(&deck, "inbox")?;
        inbox.address().send(&5u64)?;
        Runtime::TokioOfOneThread.block_on(async {
            let mut first = inbox.retrieve_from_async(1).await?;
            assert_eq!(first.unpack_express::<u64>()?, 1);
            meet(&deck, "it was read")?;
            let error = inbox.retrieve_from_async(1).await.unwrap_err();
            assert_eq!(error.lost(), Some(1.into()), "{error}");
            Ok::<(), Error>(())
        })?;
        assert_eq!(next(&inbox)?, (0, 5));
        Ok(())
    });
}

pub(crate) fn the_leave_of_the_awaited_rank_ends_the_wait_after_its_messages(job: &Job<'_>) {
    job.run(2, |deck| {
        if deck.rank() == 1 {
            let address = deck.fetch("inbox")?;
            return (0..50u64).try_for_each(|number| address.send(&number));
        }
        let inbox = inbox_of(&deck, "inbox")?;
        for number in 0..50 {
            assert_eq!(next_of(&inbox, 1)?, number);
        }
        let Err(Error::Retrieve(RetrieveError::PeerGone(gone))) = inbox.retrieve_from(1) else {
            panic!("rank 1 left")
        };
        assert_eq!((gone.rank(), gone.how()), (1.into(), Departure::Left));
        assert!(inbox.try_retrieve()?.is_none(), "it is said once");
        Ok(())
    });
}

pub(crate) fn what_others_send_meanwhile_is_bounded_by_their_windows(job: &Job<'_>) {
    /// No window is that wide.
    const MANY: u64 = 200_000;
    job.run(3, |deck| {
        if deck.rank() == 0 {
            let inbox = inbox_of(&deck, "inbox")?;
            let sent = next_of(&inbox, 2)?;
            assert!(sent < MANY, "one may send without end");
            for number in 0..sent {
                assert_eq!(next(&inbox)?, (1, number));
            }
            // What was retrieved makes room for more.
            return (sent..sent + 10)
                .try_for_each(|number| next(&inbox).map(|next| assert_eq!(next, (1, number))));
        }
        if deck.rank() == 2 {
            let told = inbox_of(&deck, "told")?;
            let sent = told.receive::<u64>()?;
            return deck.fetch("inbox")?.send(&sent);
        }
        let address = deck.fetch("inbox")?;
        let mut sent = 0;
        while sent < MANY {
            // With something behind the number, or there would be a million of them.
            let mut message = Message::new();
            message.pack_safer(&sent).pack_safer(&[0u8; 4096]);
            match address.try_post(&mut message) {
                Ok(()) => sent += 1,
                Err(Error::Post(PostError::Busy { .. })) => break,
                Err(error) => return Err(error),
            }
        }
        deck.fetch("told")?.send(&sent)?;
        (sent..sent + 10).try_for_each(|number| address.send(&number))
    });
}

pub(crate) fn a_dropped_retrieve_from_loses_nothing(job: &Job<'_>) {
    job.run(2, |deck| {
        if deck.rank() == 1 {
            let address = deck.fetch("inbox")?;
            return (0..20u64).try_for_each(|number| address.send(&number));
        }
        let mut inbox = deck.mailbox()?;
        let nothing = poll_once(inbox.retrieve_from_async(1));
        assert!(nothing.is_pending(), "nobody knows it yet");
        deck.bind("inbox", &inbox)?;
        let mut found = Vec::new();
        while found.len() < 20 {
            // Dropped whenever nothing is there, and in between the other forms.
            if let Poll::Ready(incoming) = poll_once(inbox.retrieve_from_async(1)) {
                found.push(incoming?.unpack_express::<u64>()?);
            } else {
                found.push(next(&inbox)?.1);
            }
        }
        assert!(found.into_iter().eq(0..20), "each once, in order");
        Ok(())
    });
}

/// A message of two pieces, the second of this length, or lent.
fn post_pieces(deck: &Deck, sender: &mut Sender, number: usize) -> Result<()> {
    let data = bytes(number, PIECES[number % PIECES.len()]);
    let mut message = Message::new();
    message.pack_safer(&(number as u64));
    if number % 5 == 4 {
        let mut lent = deck.lend::<u8>(data.len())?;
        lent.copy_from_slice(&data);
        message.pack_lent(lent);
    } else {
        message.pack_cheaper(&data[..]);
    }
    sender.post(&mut message)
}

fn check_pieces(mut incoming: Incoming<'_>, number: usize) -> Result<()> {
    assert_eq!(incoming.unpack_express::<u64>()?, number as u64);
    let data = bytes(number, PIECES[number % PIECES.len()]);
    if number % 5 == 4 {
        assert_eq!(*incoming.unpack_lent::<u8>()?, *data);
    } else {
        assert_eq!(incoming.unpack_vec::<u8>()?, data);
    }
    Ok(())
}

/// Lengths of a second piece: in a slot, in a lane, in chunks, over networks in a body of its own.
const PIECES: [usize; 4] = [8, 400_000, 3_000, 2_500_000];

pub(crate) fn long_messages_of_pieces_are_awaited_under_every_runtime(job: &Job<'_>) {
    pair(
        job,
        |_, mut inbox| {
            let mut number = 0;
            for runtime in Runtime::ALL {
                runtime.block_on(async {
                    for _ in 0..20 {
                        check_pieces(inbox.retrieve_async().await?, number)?;
                        number += 1;
                    }
                    Ok::<(), Error>(())
                })?;
            }
            Ok(())
        },
        |deck, address| {
            let mut sender = address.sender()?;
            (0..20 * Runtime::ALL.len())
                .try_for_each(|number| post_pieces(deck, &mut sender, number))
        },
    );
}

pub(crate) fn a_message_being_opened_is_not_lost_nor_overtaken(job: &Job<'_>) {
    pair(
        job,
        |_, mut inbox| {
            for number in 0..120 {
                // Given up at its first step, whatever that was; then every other form finds what comes next.
                let incoming = match poll_once(inbox.retrieve_async()) {
                    Poll::Ready(incoming) => incoming?,
                    Poll::Pending => match number % 6 {
                        0 => inbox.retrieve()?,
                        1 => inbox.retrieve_timeout(Duration::MAX)?,
                        2 => inbox.retrieve_from(1)?,
                        3 => super::messages::block_on(inbox.retrieve_from_async(1))?,
                        4 => mizzen::select([&mut inbox]).retrieve()?.1,
                        _ => loop {
                            if let Some(incoming) = inbox.try_retrieve()? {
                                break incoming;
                            }
                            std::thread::yield_now();
                        },
                    },
                };
                check_pieces(incoming, number)?;
            }
            Ok(())
        },
        |deck, address| {
            let mut sender = address.sender()?;
            (0..120).try_for_each(|number| post_pieces(deck, &mut sender, number))
        },
    );
}

pub(crate) fn a_message_being_opened_stays_while_another_rank_is_asked_for(job: &Job<'_>) {
    job.run(3, |deck| {
        if deck.rank() == 0 {
            let mut inbox = inbox_of(&deck, "inbox")?;
            let mut number = 0;
            for round in 0..20 {
                let opened = poll_once(inbox.retrieve_from_async(1));
                check_pieces(inbox.retrieve_from(2)?, round)?;
                if let Poll::Ready(incoming) = opened {
                    check_pieces(incoming?, number)?;
                    number += 1;
                }
            }
            while number < 20 {
                let incoming = super::messages::block_on(inbox.retrieve_async())?;
                assert_eq!(incoming.source(), 1);
                check_pieces(incoming, number)?;
                number += 1;
            }
            return meet(&deck, "all is read");
        }
        let mut sender = deck.fetch("inbox")?.sender()?;
        (0..20).try_for_each(|number| post_pieces(&deck, &mut sender, number))?;
        meet(&deck, "all is read")
    });
}

pub(crate) fn a_long_message_is_awaited_until_it_has_arrived(job: &Job<'_>) {
    pair(
        job,
        |_, mut inbox| {
            let mut number = 0;
            for runtime in Runtime::ALL {
                runtime.block_on(async {
                    for _ in 0..10 {
                        let incoming = inbox.retrieve_async().await?.arrived().await?;
                        check_pieces(incoming, number)?;
                        number += 1;
                    }
                    Ok::<(), Error>(())
                })?;
            }
            Ok(())
        },
        |deck, address| {
            let mut sender = address.sender()?;
            (0..10 * Runtime::ALL.len())
                .try_for_each(|number| post_pieces(deck, &mut sender, number))
        },
    );
}
