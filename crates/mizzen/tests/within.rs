//! Posts between threads of one process: they go over the lane of their mailbox.

use std::thread;
use std::time::Duration;

use mizzen::{Deck, Error, MailboxRef, PostError, Result};

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(30);
const BUFFER: usize = 4096;
const BUFFERS: usize = 16;

/// Lends and posts until the mailbox is closed.
fn lend_to(deck: &Deck, inbox: &MailboxRef) -> Result<()> {
    for number in 0..BUFFERS as u64 / 2 {
        let buffer = deck.lend_timeout::<u8>(BUFFER, PATIENCE)?;
        match inbox.post_lent(&number, buffer) {
            Err(Error::Post(PostError::Closed { .. })) => break,
            posted => posted?,
        }
    }
    Ok(())
}

#[test]
fn what_is_lent_to_a_mailbox_while_it_closes_comes_back() {
    mizzen::local(1, |deck| {
        deck.set_lending_limit(BUFFERS * BUFFER);
        for round in 0..2000 {
            let inbox = deck.mailbox()?;
            let posters: Vec<_> = (0..2)
                .map(|_| {
                    let (deck, inbox) = (deck.clone(), inbox.address());
                    thread::spawn(move || lend_to(&deck, &inbox))
                })
                .collect();
            // Closed when nothing has come yet, or after a few.
            for _ in 0..round % 5 {
                inbox.receive_lent::<u64, u8>()?;
            }
            drop(inbox);
            for poster in posters {
                poster.join().expect("it does not panic")?;
            }
        }
        let all = (0..BUFFERS).map(|_| deck.lend_timeout::<u8>(BUFFER, PATIENCE));
        all.collect::<Result<Vec<_>>>().map(drop)
    })
    .unwrap();
}

#[test]
fn what_threads_post_to_one_mailbox_comes_once_and_in_the_order_of_each() {
    const THREADS: u64 = 4;
    const EACH: u64 = 20_000;
    mizzen::local(1, |deck| {
        let inbox = deck.mailbox()?;
        let posters: Vec<_> = (0..THREADS)
            .map(|thread| {
                let inbox = inbox.address();
                thread::spawn(move || {
                    // In a slot, through the byte ring, and too long for either: more than the lane takes before it is read.
                    (0..EACH).try_for_each(|number| match number % 1000 {
                        0 => inbox.send(&[thread, number].repeat(4000)[..]),
                        1..100 => inbox.send(&[thread, number].repeat(10)[..]),
                        _ => inbox.send(&[thread, number][..]),
                    })
                })
            })
            .collect();
        let mut next = [0; THREADS as usize];
        for _ in 0..THREADS * EACH {
            let message = inbox.receive_vec::<u64>()?;
            let [thread, number] = message[..2] else {
                panic!("two numbers or more were sent")
            };
            assert_eq!(number, next[thread as usize]);
            let pairs = message.chunks(2);
            assert!(pairs.into_iter().all(|pair| pair == [thread, number]));
            next[thread as usize] += 1;
        }
        posters
            .into_iter()
            .try_for_each(|poster| poster.join().expect("it does not panic"))
    })
    .unwrap();
}

#[test]
fn another_thread_that_waits_does_not_take_what_is_not_for_it() {
    mizzen::local(1, |deck| {
        let (asked, answered) = (deck.mailbox()?, deck.mailbox()?);
        let (to, back) = (asked.address(), answered.address());
        let echo = thread::spawn(move || {
            (0..10_000).try_for_each(|_| back.send(&asked.receive::<u64>()?))
        });
        for number in 0..10_000u64 {
            to.send(&number)?;
            assert_eq!(answered.receive::<u64>()?, number);
        }
        echo.join().expect("it does not panic")?;
        let rows = deck.counters();
        let queued = rows.iter().filter(|row| row.object.starts_with("link"));
        let sent: u64 = queued
            .filter(|row| row.name == "messages_sent")
            .map(|row| row.value)
            .sum();
        assert_eq!(sent, 20_000);
        Ok(())
    })
    .unwrap();
}
