//! Memory that comes back at every moment: also before its sender has noted that it went.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use super::{life, link, place};
use crate::error::PostError;
use crate::link::MemoryLink;
use crate::memory::{Arena, LoanTicket, Purpose};
use crate::message::{Mark, Single};
use crate::peers::Path;
use crate::process::Process;
use crate::rank::Rank;
use crate::wait::Until;

/// Long enough to be announced and written through the arena.
const LONG: usize = 150 << 10;

/// A place that posts, one that never looks, and the link between them.
fn linked() -> (Arc<Process>, Arc<Process>, Arc<MemoryLink>) {
    let (process, other) = (place(life(0, 0)), place(life(1, 0)));
    let (back, _) = link(process.id, Weak::new());
    other.peers.add(Path::Memory(back));
    let (to, _) = link(other.id, Arc::downgrade(&other));
    (process, other, to)
}

/// Receives a message, reads it, and gives its memory back.
fn give_back(link: &MemoryLink, ticket: &[u8]) {
    let ticket = LoanTicket::from_bytes(ticket.try_into().unwrap());
    link.borrower
        .returns()
        .give_back(ticket.number, ticket.loan);
}

#[test]
fn a_block_that_comes_back_before_its_sender_noted_the_post_is_freed_once() {
    let (process, _other, link) = linked();
    let bytes = vec![7u8; LONG];
    let message = Single(&bytes, Mark::of::<u8>());
    let soon = || Until::Deadline(Instant::now() + Duration::from_secs(30));
    // More often than there are blocks: none is lost. The arena is asked after each: none is freed twice.
    for _ in 0..2 * Arena::MAX_BLOCKS {
        for until in [soon(), Until::Forever] {
            let posted = link.post_long(&*process, &message, until, |ticket, _| {
                give_back(&link, ticket);
                Ok(())
            });
            posted.unwrap();
        }
        let lent = process
            .links
            .take_block(&*process, 4096, Purpose::Lend, soon())
            .unwrap();
        let ticket = link.show(&process.links.arena, &lent).unwrap();
        link.borrower
            .returns()
            .give_back(ticket.number, ticket.loan);
        link.give(&process.links.arena, lent);
    }
    link.borrower.trim();
    assert_eq!(process.links.arena.in_use(), 0);
}

#[test]
fn a_post_that_is_refused_frees_its_block() {
    let (process, _other, link) = linked();
    let bytes = vec![7u8; LONG];
    let message = Single(&bytes, Mark::of::<u8>());
    let soon = Until::Deadline(Instant::now() + Duration::from_secs(30));
    for until in [soon, Until::Forever] {
        let busy = || PostError::Busy { rank: Rank(1) };
        let posted = link.post_long(&*process, &message, until, |_, _| Err(busy()));
        assert!(matches!(posted, Err(PostError::Busy { .. })), "{posted:?}");
    }
    link.borrower.trim();
    assert_eq!(process.links.arena.in_use(), 0);
}

#[test]
fn blocks_that_a_fast_reader_gives_back_are_neither_lost_nor_used_twice() {
    const MESSAGES: u64 = 3000;
    crate::testing::local(2, |deck| {
        let inbox = deck.mailbox()?;
        deck.bind(&format!("inbox {}", deck.rank()), &inbox)?;
        let to = deck.fetch(&format!("inbox {}", 1 - deck.rank().0))?;
        if deck.rank() == 0 {
            let mut sender = to.sender()?;
            for number in 0..MESSAGES {
                let mut lent = deck.lend_unzeroed::<u64>(512)?;
                lent.fill(number);
                if number % 2 == 0 {
                    to.post_lent(&number, lent)?;
                    to.send(&vec![number; LONG / 8][..])?;
                } else {
                    sender.post_lent(&number, lent)?;
                    sender.send(&vec![number; LONG / 8][..])?;
                }
                // Two ways to one mailbox: the next goes the other way when this one has come.
                assert_eq!(inbox.receive::<u64>()?, number);
            }
            for link in deck.process.links.all().1 {
                link.borrower.trim();
            }
            assert_eq!(deck.process.links.arena.in_use(), 0);
        } else {
            for number in 0..MESSAGES {
                let (header, lent) = inbox.receive_lent::<u64, u64>()?;
                assert_eq!((header, &lent[..]), (number, &[number; 512][..]));
                drop(lent);
                assert_eq!(inbox.receive_vec::<u64>()?, vec![number; LONG / 8]);
                to.send(&number)?;
            }
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn what_a_leaving_rank_left_in_its_lanes_comes_back() {
    let (posted, is_posted) = std::sync::mpsc::channel();
    let is_posted = std::sync::Mutex::new(is_posted);
    crate::testing::local(2, |deck| {
        let inbox = deck.mailbox()?;
        deck.bind(&format!("inbox {}", deck.rank()), &inbox)?;
        let to = deck.fetch(&format!("inbox {}", 1 - deck.rank().0))?;
        if deck.rank() == 1 {
            // It does not look at its lanes from here on.
            inbox.receive::<u8>()?;
            crate::lock::lock(&is_posted).recv().unwrap();
            return Ok(());
        }
        to.send(&0u8)?;
        for number in 0..8u64 {
            to.post_lent(&number, deck.lend_unzeroed::<u64>(512)?)?;
        }
        posted.send(()).unwrap();
        let gone = inbox.retrieve_from(1);
        assert!(gone.is_err(), "{gone:?}");
        // It tells of its end before it looks at its lanes for the last time.
        let begun = Instant::now();
        while deck.process.links.arena.in_use() > 0 {
            assert!(begun.elapsed() < Duration::from_secs(30));
            std::thread::yield_now();
        }
        Ok(())
    })
    .unwrap();
}
