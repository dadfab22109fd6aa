//! Messages of medium length, whose bodies come before anybody asked for them where a network is between the ranks.

use std::time::Duration;

use mizzen::{Deck, Mailbox, MailboxRef, Result};

use super::Job;

const LONG: usize = 100 << 10;

fn long(number: u8) -> Vec<u8> {
    (0..LONG)
        .map(|index| (index as u8).wrapping_mul(31) ^ number)
        .collect()
}

/// Two mailboxes of rank 0, as rank 0 and rank 1 see them.
fn two(deck: &Deck) -> Result<(Option<[Mailbox; 2]>, [MailboxRef; 2])> {
    let mut own = None;
    if deck.rank() == 0 {
        let inboxes = [deck.mailbox()?, deck.mailbox()?];
        deck.bind("first", &inboxes[0])?;
        deck.bind("second", &inboxes[1])?;
        own = Some(inboxes);
    }
    Ok((own, [deck.fetch("first")?, deck.fetch("second")?]))
}

pub(crate) fn one_that_nobody_reads_does_not_hold_up_what_is_behind_it(job: &Job<'_>) {
    job.run(2, |deck| {
        let (own, [first, second]) = two(&deck)?;
        let Some([unread, read]) = own else {
            for number in 0..10 {
                first.send(&long(number)[..])?;
                second.send(&u64::from(number))?;
            }
            return Ok(());
        };
        for number in 0..10 {
            assert_eq!(read.receive::<u64>()?, number);
        }
        for number in 0..10 {
            assert!(unread.receive_vec::<u8>()? == long(number));
        }
        Ok(())
    });
}

pub(crate) fn those_that_are_thrown_away_make_room_for_others(job: &Job<'_>) {
    job.run(2, |deck| {
        let (own, [first, second]) = two(&deck)?;
        let Some([inbox, end]) = own else {
            // Several times what may be on its way.
            for number in 0..150 {
                first.send(&long(number)[..])?;
            }
            return second.send(&7_u64);
        };
        for number in 0..150 {
            let incoming = inbox.retrieve()?;
            // Slow now and then: meanwhile bodies are put aside, if they come before somebody asked for them.
            if number % 10 == 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
            drop(incoming);
        }
        assert_eq!(end.receive::<u64>()?, 7);
        Ok(())
    });
}

pub(crate) fn one_that_is_whole_is_read_after_its_sender_has_left(job: &Job<'_>) {
    job.run(2, |deck| {
        let (own, [first, second]) = two(&deck)?;
        let Some([inbox, other]) = own else {
            first.send(&long(1)[..])?;
            second.send(&1_u64)?;
            return Ok(());
        };
        assert_eq!(other.receive::<u64>()?, 1);
        other.depend_on(1);
        assert!(other.retrieve().is_err(), "rank 1 has left");
        assert!(inbox.receive_vec::<u8>()? == long(1));
        Ok(())
    });
}

pub(crate) fn threads_that_post_at_once_share_the_way_and_keep_their_order(job: &Job<'_>) {
    const THREADS: u64 = 4;
    const EACH: u64 = 3000;
    job.run(2, |deck| {
        let (own, [first, _]) = two(&deck)?;
        let Some([inbox, _]) = own else {
            return std::thread::scope(|threads| {
                let posting: Vec<_> = (0..THREADS)
                    .map(|thread| {
                        let first = first.clone();
                        threads.spawn(move || -> Result<()> {
                            let mut sender = first.sender()?;
                            for number in 0..EACH {
                                sender.send(&(thread << 32 | number))?;
                            }
                            Ok(())
                        })
                    })
                    .collect();
                posting
                    .into_iter()
                    .try_for_each(|thread| thread.join().expect("it does not panic"))
            });
        };
        let mut next = [0; THREADS as usize];
        for _ in 0..THREADS * EACH {
            let word = inbox.receive::<u64>()?;
            let thread = (word >> 32) as usize;
            assert_eq!(word & 0xffff_ffff, next[thread]);
            next[thread] += 1;
        }
        Ok(())
    });
}
