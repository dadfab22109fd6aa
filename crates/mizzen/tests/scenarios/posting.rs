//! Posts that find no room: nobody waits for a reader before the allowance is used up.

use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::messages::block_on;
use super::{Job, bytes, inbox_of, meet, pair};

use mizzen::{Deck, Error, Mailbox, MailboxRef, Message, PostError, Result};

/// More than a mailbox grants, and more than a lane holds.
const MANY: u64 = 3000;
/// A message that is part of the allowance, and how many of them are more than all of it.
const LARGE: usize = 30 << 10;
const TOO_MANY: usize = (64 << 20) / LARGE + 600;

fn receive_in_order(inbox: &Mailbox) -> Result<()> {
    for number in 0..MANY {
        assert_eq!(inbox.receive::<u64>()?, number);
    }
    Ok(())
}

pub(crate) fn who_reads_late_finds_all_that_was_posted(job: &Job<'_>) {
    pair(
        job,
        |deck, inbox| {
            meet(deck, "all are posted")?;
            receive_in_order(&inbox)
        },
        |deck, inbox| {
            for number in 0..MANY {
                inbox.send(&number)?;
            }
            meet(deck, "all are posted")
        },
    );
}

pub(crate) fn who_reads_late_finds_all_that_a_sender_posted(job: &Job<'_>) {
    pair(
        job,
        |deck, inbox| {
            meet(deck, "all are posted")?;
            receive_in_order(&inbox)?;
            receive_in_order(&inbox)
        },
        |deck, inbox| {
            let mut sender = inbox.sender()?;
            for number in 0..MANY {
                sender.send(&number)?;
            }
            meet(deck, "all are posted")?;
            // The lane is its own again some time.
            for number in 0..MANY {
                sender.send(&number)?;
            }
            Ok(())
        },
    );
}

pub(crate) fn what_a_sender_left_behind_arrives_after_its_end(job: &Job<'_>) {
    pair(
        job,
        |deck, inbox| {
            meet(deck, "the sender is dropped")?;
            receive_in_order(&inbox)
        },
        |deck, inbox| {
            let mut sender = inbox.sender()?;
            for number in 0..MANY {
                sender.send(&number)?;
            }
            drop(sender);
            meet(deck, "the sender is dropped")
        },
    );
}

pub(crate) fn what_a_rank_left_behind_arrives_though_it_leaves(job: &Job<'_>) {
    job.run(2, |deck| {
        if deck.rank() == 1 {
            let inbox = deck.fetch("inbox")?;
            let mut sender = deck.fetch("other inbox")?.sender()?;
            for number in 0..MANY {
                inbox.send(&number)?;
                sender.send(&number)?;
            }
            return deck.fetch("gate")?.send(&0u8);
        }
        let (inbox, other) = (inbox_of(&deck, "inbox")?, inbox_of(&deck, "other inbox")?);
        inbox_of(&deck, "gate")?.receive::<u8>()?;
        receive_in_order(&inbox)?;
        receive_in_order(&other)
    });
}

pub(crate) fn a_rank_may_post_much_to_itself(job: &Job<'_>) {
    job.run(1, |deck| {
        let inbox = deck.mailbox()?;
        for number in 0..MANY {
            inbox.address().send(&number)?;
        }
        receive_in_order(&inbox)?;
        let mut sender = inbox.address().sender()?;
        for number in 0..MANY {
            sender.send(&number)?;
        }
        receive_in_order(&inbox)
    });
}

/// Messages of every kind, by number.
fn post_mixed(deck: &Deck, number: usize, inbox: &MailboxRef) -> Result<()> {
    match number % 5 {
        0 | 1 => inbox.send(&bytes(number, 8)[..]),
        2 => inbox.send(&bytes(number, 5000)[..]),
        3 => {
            let mut buffer = deck.lend::<u8>(100)?;
            buffer.copy_from_slice(&bytes(number, 100));
            inbox.post_lent(&(number as u64), buffer)
        }
        _ => inbox.send(&bytes(number, 60_000)[..]),
    }
}

fn receive_mixed(number: usize, inbox: &Mailbox) -> Result<()> {
    let expected = |len| bytes(number, len);
    match number % 5 {
        0 | 1 => assert_eq!(inbox.receive_vec::<u8>()?, expected(8)),
        2 => assert_eq!(inbox.receive_vec::<u8>()?, expected(5000)),
        3 => {
            let (header, buffer) = inbox.receive_lent::<u64, u8>()?;
            assert_eq!((header, &buffer[..]), (number as u64, &expected(100)[..]));
        }
        _ => assert_eq!(inbox.receive_vec::<u8>()?, expected(60_000)),
    }
    Ok(())
}

pub(crate) fn messages_of_every_kind_keep_their_order_behind_others(job: &Job<'_>) {
    const COUNT: usize = 700;
    pair(
        job,
        |deck, inbox| {
            meet(deck, "all are posted")?;
            (0..COUNT).try_for_each(|number| receive_mixed(number, &inbox))
        },
        |deck, inbox| {
            (0..COUNT).try_for_each(|number| post_mixed(deck, number, &inbox))?;
            meet(deck, "all are posted")
        },
    );
}

pub(crate) fn what_was_left_behind_for_a_closed_mailbox_is_given_back(job: &Job<'_>) {
    const COUNT: usize = 700;
    job.run(2, |deck| {
        if deck.rank() == 0 {
            let inbox = inbox_of(&deck, "inbox")?;
            meet(&deck, "all are posted")?;
            drop(inbox);
            meet(&deck, "the mailbox is closed")?;
            return meet(&deck, "all is back");
        }
        let inbox = deck.fetch("inbox")?;
        (0..COUNT).try_for_each(|number| post_mixed(&deck, number, &inbox))?;
        meet(&deck, "all are posted")?;
        meet(&deck, "the mailbox is closed")?;
        // As much as may be lent at all: nothing is out.
        let all: Vec<_> = (0..16)
            .map(|_| deck.lend::<u8>(60 << 20))
            .collect::<Result<_>>()?;
        drop(all);
        meet(&deck, "all is back")
    });
}

pub(crate) fn ranks_that_all_post_to_all_first_do_not_wait(job: &Job<'_>) {
    const LEN: usize = 1 << 20;
    job.run(4, |deck| {
        let inbox = inbox_of(&deck, &format!("inbox {}", deck.rank()))?;
        let message = bytes(deck.rank().0 as usize, LEN);
        for rank in deck.others() {
            deck.fetch(&format!("inbox {rank}"))?.send(&message[..])?;
        }
        meet(&deck, "all have posted")?;
        for _ in deck.others() {
            let mut incoming = inbox.retrieve()?;
            let from = incoming.source().0 as usize;
            assert_eq!(incoming.unpack_vec::<u8>()?, bytes(from, LEN));
        }
        Ok(())
    });
}

pub(crate) fn a_silent_reader_stops_nobody_else(job: &Job<'_>) {
    job.run(3, |deck| {
        let inbox = inbox_of(&deck, &format!("inbox {}", deck.rank()))?;
        match deck.rank().0 {
            0 => {
                let (silent, other) = (deck.fetch("inbox 1")?, deck.fetch("inbox 2")?);
                let large = bytes(0, LARGE);
                for _ in 0..TOO_MANY {
                    let mut message = Message::new();
                    match silent.try_post(message.pack_cheaper(&large[..])) {
                        Ok(()) => (),
                        Err(Error::Post(PostError::Busy { .. })) => break,
                        Err(error) => return Err(error),
                    }
                }
                let mut message = Message::new();
                let refused = silent.try_post(message.pack_cheaper(&large[..]));
                assert!(
                    matches!(refused, Err(Error::Post(PostError::Busy { .. }))),
                    "{refused:?}"
                );
                for number in 0..MANY {
                    other.send(&number)?;
                }
            }
            1 => (),
            _ => receive_in_order(&inbox)?,
        }
        meet(&deck, "the other has all")
    });
}

fn large() -> Message<'static> {
    let mut message = Message::new();
    message.pack_safer(&bytes(7, LARGE)[..]);
    message
}

pub(crate) fn an_async_post_beyond_the_allowance_waits_for_the_reader(job: &Job<'_>) {
    pair(
        job,
        |deck, inbox| {
            meet(deck, "one waits")?;
            let (all, rest) = (deck.mailbox()?, bytes(7, LARGE));
            deck.bind("all", &all)?;
            for _ in 0..TOO_MANY {
                assert_eq!(inbox.receive_vec::<u8>()?, rest);
            }
            let nothing = inbox.retrieve_timeout(Duration::from_millis(10));
            assert!(nothing.is_err(), "one was not posted");
            Ok(())
        },
        |deck, inbox| {
            let mut posted = 0;
            let mut context = Context::from_waker(Waker::noop());
            loop {
                let mut post = pin!(inbox.post_async(large()));
                match post.as_mut().poll(&mut context) {
                    Poll::Ready(outcome) => outcome?,
                    // Dropped: it was never posted.
                    Poll::Pending => break,
                }
                posted += 1;
            }
            assert!(posted < TOO_MANY, "it waits some time");
            meet(deck, "one waits")?;
            for _ in posted..TOO_MANY {
                block_on(inbox.post_async(large()))?;
            }
            Ok(())
        },
    );
}

pub(crate) fn one_thread_posts_and_reads_in_turns(job: &Job<'_>) {
    job.run(1, |deck| {
        let mut inbox = deck.mailbox()?;
        let address = inbox.address();
        let post = async {
            for _ in 0..TOO_MANY {
                address.post_async(large()).await?;
            }
            Ok::<(), Error>(())
        };
        let read = async {
            for _ in 0..TOO_MANY {
                let len = inbox.retrieve_async().await?.unpack_vec::<u8>()?.len();
                assert_eq!(len, LARGE);
            }
            Ok::<(), Error>(())
        };
        block_on(both(post, read))
    });
}

/// Polls two futures in one task until both are done.
async fn both(
    one: impl Future<Output = Result<()>>,
    other: impl Future<Output = Result<()>>,
) -> Result<()> {
    let (mut one, mut other) = (pin!(one), pin!(other));
    let (mut first, mut second) = (None, None);
    std::future::poll_fn(|context| {
        if first.is_none() {
            if let Poll::Ready(outcome) = one.as_mut().poll(context) {
                first = Some(outcome);
            }
        }
        if second.is_none() {
            if let Poll::Ready(outcome) = other.as_mut().poll(context) {
                second = Some(outcome);
            }
        }
        match (first.take(), second.take()) {
            (Some(one), Some(other)) => Poll::Ready(one.and(other)),
            (one, other) => {
                (first, second) = (one, other);
                Poll::Pending
            }
        }
    })
    .await
}

pub(crate) fn an_async_sender_posts_in_order(job: &Job<'_>) {
    pair(
        job,
        |deck, inbox| {
            meet(deck, "all are posted")?;
            receive_in_order(&inbox)
        },
        |deck, inbox| {
            block_on(async {
                let mut sender = inbox.sender_async().await?;
                for number in 0..MANY {
                    let mut message = Message::new();
                    message.pack_safer(&number);
                    sender.post_async(message).await?;
                }
                Ok::<(), Error>(())
            })?;
            meet(deck, "all are posted")
        },
    );
}

pub(crate) fn an_async_post_to_a_mailbox_that_closes_ends(job: &Job<'_>) {
    job.run(2, |deck| {
        if deck.rank() == 0 {
            let inbox = inbox_of(&deck, "inbox")?;
            meet(&deck, "it is full")?;
            drop(inbox);
            return meet(&deck, "it is closed");
        }
        let inbox = deck.fetch("inbox")?;
        loop {
            let mut message = Message::new();
            match inbox.try_post(message.pack_safer(&bytes(7, LARGE)[..])) {
                Ok(()) => (),
                Err(Error::Post(PostError::Busy { .. })) => break,
                Err(error) => return Err(error),
            }
        }
        let waiting = deck.spawn_async(async move { inbox.post_async(large()).await });
        meet(&deck, "it is full")?;
        // Posted to nobody, or refused.
        let outcome = waiting.join()?;
        let is_closed = matches!(outcome, Err(Error::Post(PostError::Closed { .. })));
        assert!(is_closed || outcome.is_ok(), "{outcome:?}");
        meet(&deck, "it is closed")
    });
}
