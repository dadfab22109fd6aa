//! Buffers that go from process to process, and the bound on what is out.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;

use mizzen::{
    ArenaError, Borrowed, Deck, Error, Mailbox, MailboxRef, Message, PostError, Result,
    RetrieveError,
};

use super::scope::{fill, skip};
use super::{Job, bytes, inbox_of, meet};

/// Values of a frame: 256 KiB.
const VALUES: usize = 32 << 10;
const FRAME: usize = VALUES * 8;
/// Longer than anything here takes.
const BOUND: Duration = Duration::from_secs(60);

fn frame(deck: &Deck, number: u64) -> Result<mizzen::Lent<u64>> {
    let mut frame = deck.lend_timeout::<u64>(VALUES, BOUND)?;
    frame.fill(number);
    Ok(frame)
}

fn check(frame: &Borrowed<u64>, number: u64) {
    assert_eq!(frame.len(), VALUES);
    assert!(frame.iter().all(|value| *value == number), "frame {number}");
}

/// A mailbox of each rank, and the addresses of all, known to all.
fn inboxes(deck: &Deck) -> Result<(Mailbox, Vec<MailboxRef>)> {
    let inbox = inbox_of(deck, &format!("inbox {}", deck.rank()))?;
    let name = |rank| format!("inbox {rank}");
    let all = (0..deck.size()).map(|rank| deck.fetch(&name(rank)));
    let all = all.collect::<Result<_>>()?;
    meet(deck, "all know all")?;
    Ok((inbox, all))
}

fn receive(inbox: &Mailbox) -> Result<(u64, Borrowed<u64>)> {
    let (number, frame) = inbox.receive_lent::<u64, u64>()?;
    check(&frame, number);
    Ok((number, frame))
}

/// Waits until a rank has left or died, of which a mailbox of its own is told.
fn await_end_of(inbox: &Mailbox, rank: u32) {
    let ended = inbox.retrieve_from(rank);
    let is_gone = matches!(&ended, Err(Error::Retrieve(RetrieveError::PeerGone(_))));
    assert!(is_gone, "{ended:?}");
}

pub(crate) fn buffers_go_through_a_chain_and_come_back(job: &Job<'_>) {
    const FRAMES: u64 = 60;
    job.run(4, |deck| {
        let (inbox, all) = inboxes(&deck)?;
        let rank = deck.rank().0 as usize;
        deck.set_lending_limit(4 * FRAME);
        for number in 0..FRAMES {
            match rank {
                0 => all[1].post_lent(&number, frame(&deck, number)?)?,
                3 => assert_eq!(receive(&inbox)?.0, number),
                _ => {
                    let (number, frame) = receive(&inbox)?;
                    all[rank + 1].post_lent(&number, frame)?;
                }
            }
        }
        if rank == 0 {
            assert!(deck.arena_bytes() <= 8 << 20, "{}", deck.arena_bytes());
        }
        deck.finish()
    });
}

pub(crate) fn a_buffer_may_come_back_to_its_owner_and_go_on_again(job: &Job<'_>) {
    job.run(3, |deck| {
        let (inbox, all) = inboxes(&deck)?;
        deck.set_lending_limit(FRAME);
        for number in 0..10u64 {
            match deck.rank().0 {
                0 => {
                    // There is one only: it must have come back each time.
                    all[1].post_lent(&number, frame(&deck, number)?)?;
                    let (number, frame) = receive(&inbox)?;
                    all[1].post_lent(&number, frame)?;
                    drop(receive(&inbox)?);
                }
                1 => {
                    let (number, frame) = receive(&inbox)?;
                    all[0].post_lent(&number, frame)?;
                    let (number, frame) = receive(&inbox)?;
                    all[1].post_lent(&number, frame)?;
                    let (number, frame) = receive(&inbox)?;
                    all[2].post_lent(&number, frame)?;
                }
                _ => {
                    let (number, frame) = receive(&inbox)?;
                    all[0].post_lent(&number, frame)?;
                }
            }
        }
        deck.finish()
    });
}

pub(crate) fn what_was_read_in_part_is_handed_on_whole(job: &Job<'_>) {
    job.run(3, |deck| {
        let (inbox, all) = inboxes(&deck)?;
        match deck.rank().0 {
            0 => {
                let mut lent = deck.lend::<u8>(100_000)?;
                lent.copy_from_slice(&bytes(5, 100_000));
                all[1].post_lent(&7u16, lent)?;
            }
            1 => {
                let mut incoming = inbox.retrieve()?;
                let header: u16 = incoming.unpack_express()?;
                let lent = incoming.unpack_lent::<u8>()?;
                let sum: u64 = lent[..1000].iter().map(|byte| u64::from(*byte)).sum();
                let mut message = Message::new();
                message.pack_safer(&header).pack_lent(lent).pack_safer(&sum);
                all[2].post(&mut message)?;
                let again = all[2].post(&mut message);
                let is_twice = matches!(again, Err(Error::Post(PostError::LentTwice)));
                assert!(is_twice, "{again:?}");
            }
            _ => {
                let mut incoming = inbox.retrieve()?;
                assert_eq!(incoming.unpack_express::<u16>()?, 7);
                let lent = incoming.unpack_lent::<u8>()?;
                assert!(*lent == bytes(5, 100_000)[..]);
                let sum: u64 = lent[..1000].iter().map(|byte| u64::from(*byte)).sum();
                assert_eq!(incoming.unpack_express::<u64>()?, sum);
            }
        }
        deck.finish()
    });
}

pub(crate) fn buffers_of_several_owners_go_on_in_one_message(job: &Job<'_>) {
    job.run(4, |deck| {
        let (inbox, all) = inboxes(&deck)?;
        let rank = deck.rank().0;
        deck.set_lending_limit(2 * FRAME);
        for round in 0..5u64 {
            match rank {
                0 | 1 => all[2].post_lent(&u64::from(rank), frame(&deck, u64::from(rank))?)?,
                2 => {
                    let mut message = Message::new();
                    for from in 0..2 {
                        let mut incoming = inbox.retrieve_from(from)?;
                        let number: u64 = incoming.unpack_express()?;
                        message.pack_safer(&number);
                        message.pack_lent(incoming.unpack_lent::<u64>()?);
                    }
                    // Beside one of its own, and more bytes than a lane takes.
                    message.pack_lent(frame(&deck, 2)?);
                    message.pack_safer(&vec![round; 20_000][..]);
                    all[3].post(&mut message)?;
                }
                _ => {
                    let mut incoming = inbox.retrieve()?;
                    for owner in 0..2u64 {
                        assert_eq!(incoming.unpack_express::<u64>()?, owner);
                        check(&incoming.unpack_lent()?, owner);
                    }
                    check(&incoming.unpack_lent()?, 2);
                    assert_eq!(incoming.unpack_vec::<u64>()?, vec![round; 20_000]);
                }
            }
        }
        deck.finish()
    });
}

pub(crate) fn a_sender_and_a_task_hand_on_too(job: &Job<'_>) {
    job.run(3, |deck| {
        let (mut inbox, all) = inboxes(&deck)?;
        deck.set_lending_limit(4 * FRAME);
        match deck.rank().0 {
            0 => {
                let mut sender = all[1].sender()?;
                (0..40).try_for_each(|number| sender.post_lent(&number, frame(&deck, number)?))?;
            }
            1 => {
                let mut sender = all[2].sender()?;
                for _ in 0..20 {
                    let (number, frame) = receive(&inbox)?;
                    sender.post_lent(&number, frame)?;
                }
                let next = all[2].clone();
                let task = deck.spawn_async(async move {
                    for _ in 0..20 {
                        let mut incoming = inbox.retrieve_async().await?;
                        let number: u64 = incoming.unpack_express()?;
                        let mut message = Message::new();
                        message.pack_safer(&number);
                        message.pack_lent(incoming.unpack_lent::<u64>()?);
                        next.post_async(message).await?;
                    }
                    Ok::<(), Error>(())
                });
                task.join()??;
            }
            _ => {
                let mut numbers: Vec<u64> = Vec::new();
                for _ in 0..40 {
                    numbers.push(receive(&inbox)?.0);
                }
                // There is no order between a sender and an address.
                numbers.sort_unstable();
                assert_eq!(numbers, Vec::from_iter(0..40));
            }
        }
        deck.finish()
    });
}

/// The frame that comes next, in a message of its own.
fn to_hand_on(inbox: &Mailbox) -> Result<Message<'static>> {
    let (number, frame) = receive(inbox)?;
    let mut message = Message::new();
    message.pack_safer(&number).pack_lent(frame);
    Ok(message)
}

pub(crate) fn a_scope_hands_on_to_a_mailbox_that_is_full(job: &Job<'_>) {
    const FRAMES: u64 = 6;
    job.run(3, |deck| {
        let (inbox, all) = inboxes(&deck)?;
        match deck.rank().0 {
            0 => {
                deck.set_lending_limit(FRAMES as usize * FRAME);
                for number in 0..FRAMES {
                    all[1].post_lent(&number, frame(&deck, number)?)?;
                }
                // All of them come back.
                let again: Result<Vec<_>> =
                    (0..FRAMES).map(|number| frame(&deck, number)).collect();
                assert_eq!(again?.len() as u64, FRAMES);
            }
            1 => {
                let told = deck.fetch("filled")?;
                let filled = fill(&all[2])?;
                deck.scope(|scope| {
                    let mut posted = Vec::new();
                    for _ in 0..FRAMES {
                        posted.push(scope.post(&all[2], to_hand_on(&inbox)?));
                    }
                    told.send(&filled)?;
                    posted.into_iter().try_for_each(|one| one.wait())
                })?;
            }
            _ => {
                let filled = inbox_of(&deck, "filled")?.receive::<u64>()?;
                skip(&inbox, filled)?;
                for number in 0..FRAMES {
                    assert_eq!(receive(&inbox)?.0, number);
                }
            }
        }
        deck.finish()
    });
}

pub(crate) fn what_a_scope_takes_back_is_its_owners_again(job: &Job<'_>) {
    job.run(3, |deck| {
        let (inbox, all) = inboxes(&deck)?;
        match deck.rank().0 {
            0 => {
                deck.set_lending_limit(FRAME);
                all[1].post_lent(&1u64, frame(&deck, 1)?)?;
                drop(frame(&deck, 2)?);
            }
            1 => {
                let filled = fill(&all[2])?;
                let message = to_hand_on(&inbox)?;
                let panicking = AssertUnwindSafe(|| {
                    deck.scope(|scope| -> Result<()> {
                        let _under_way = scope.post(&all[2], message);
                        resume_unwind(Box::new("the closure gives up"))
                    })
                });
                assert!(catch_unwind(panicking).is_err());
                deck.fetch("filled")?.send(&filled)?;
            }
            _ => {
                let filled = inbox_of(&deck, "filled")?.receive::<u64>()?;
                skip(&inbox, filled)?;
                // If there was room at the last moment, it is in here, and nobody reads it.
                drop(inbox);
            }
        }
        deck.finish()
    });
}

pub(crate) fn buffers_are_handed_on_between_long_and_short_messages(job: &Job<'_>) {
    job.run(3, |deck| {
        let (inbox, all) = inboxes(&deck)?;
        let long = |number: u64| vec![number; 100_000];
        for number in 0..12u64 {
            match deck.rank().0 {
                0 => all[1].post_lent(&number, frame(&deck, number)?)?,
                1 => {
                    let (number, frame) = receive(&inbox)?;
                    all[2].send(&number)?;
                    all[2].post_lent(&number, frame)?;
                    all[2].send(&long(number)[..])?;
                }
                _ => {
                    assert_eq!(inbox.receive::<u64>()?, number);
                    assert_eq!(receive(&inbox)?.0, number);
                    assert_eq!(inbox.receive_vec::<u64>()?, long(number));
                }
            }
        }
        deck.finish()
    });
}

pub(crate) fn what_was_handed_on_to_a_mailbox_that_closes_comes_back(job: &Job<'_>) {
    job.run(3, |deck| {
        let (inbox, all) = inboxes(&deck)?;
        deck.set_lending_limit(4 * FRAME);
        match deck.rank().0 {
            0 => {
                for number in 0..4 {
                    all[1].post_lent(&number, frame(&deck, number)?)?;
                }
                // They were thrown away.
                inbox.receive::<u8>()?;
                let again: Result<Vec<_>> = (0..4).map(|number| frame(&deck, number)).collect();
                assert_eq!(again?.len(), 4);
            }
            1 => {
                for _ in 0..4 {
                    let (number, frame) = receive(&inbox)?;
                    all[2].post_lent(&number, frame)?;
                }
                deck.fetch("all are handed on")?.send(&9u8)?;
            }
            _ => {
                let told = inbox_of(&deck, "all are handed on")?;
                told.receive::<u8>()?;
                // One is read, and three never are.
                drop(receive(&inbox)?);
                drop(inbox);
                all[0].send(&1u8)?;
            }
        }
        deck.finish()
    });
}

pub(crate) fn a_buffer_whose_post_failed_can_go_elsewhere(job: &Job<'_>) {
    job.run(3, |deck| {
        let (inbox, all) = inboxes(&deck)?;
        match deck.rank().0 {
            0 => {
                deck.set_lending_limit(FRAME);
                all[1].post_lent(&3u64, frame(&deck, 3)?)?;
                drop(frame(&deck, 4)?);
            }
            1 => {
                let closed = deck.fetch("to be closed")?;
                let mut incoming = inbox.retrieve_from(0)?;
                let number: u64 = incoming.unpack_express()?;
                let mut message = Message::new();
                message.pack_safer(&number);
                message.pack_lent(incoming.unpack_lent::<u64>()?);
                drop(incoming);
                all[2].send(&1u8)?;
                inbox.retrieve_from(2)?;
                // Between hosts it takes a moment until it is known.
                while closed.send(&0u8).is_ok() {
                    std::thread::yield_now();
                }
                assert!(closed.post(&mut message).is_err());
                all[2].post(&mut message)?;
            }
            _ => {
                let closed = inbox_of(&deck, "to be closed")?;
                inbox.receive::<u8>()?;
                drop(closed);
                all[1].send(&1u8)?;
                assert_eq!(receive(&inbox)?.0, 3);
            }
        }
        deck.finish()
    });
}

pub(crate) fn who_handed_on_may_leave(job: &Job<'_>) {
    job.run(3, |deck| {
        let (inbox, all) = inboxes(&deck)?;
        match deck.rank().0 {
            0 => {
                deck.set_lending_limit(2 * FRAME);
                all[1].post_lent(&1u64, frame(&deck, 1)?)?;
                all[1].post_lent(&2u64, frame(&deck, 2)?)?;
                await_end_of(&inbox, 1);
                all[2].send(&0u8)?;
                let (one, two) = (frame(&deck, 3)?, frame(&deck, 4)?);
                drop((one, two));
                Ok(())
            }
            1 => {
                for _ in 0..2 {
                    let (number, frame) = receive(&inbox)?;
                    all[2].post_lent(&number, frame)?;
                }
                Ok(())
            }
            _ => {
                inbox.retrieve_from(0)?;
                for number in 1..3 {
                    assert_eq!(receive(&inbox)?.0, number);
                }
                Ok(())
            }
        }
    });
}

pub(crate) fn an_owner_may_leave_before_its_buffer_is_handed_on(job: &Job<'_>) {
    job.run(3, |deck| {
        let (inbox, all) = inboxes(&deck)?;
        match deck.rank().0 {
            0 => all[1].post_lent(&5u64, frame(&deck, 5)?),
            1 => {
                let (number, frame) = receive(&inbox)?;
                await_end_of(&inbox, 0);
                check(&frame, number);
                all[2].post_lent(&number, frame)
            }
            _ => {
                assert_eq!(receive(&inbox)?.0, 5);
                Ok(())
            }
        }
    });
}

pub(crate) fn an_owner_may_leave_before_its_buffer_is_read(job: &Job<'_>) {
    job.run(3, |deck| {
        let (inbox, all) = inboxes(&deck)?;
        match deck.rank().0 {
            0 => {
                all[1].post_lent(&5u64, frame(&deck, 5)?)?;
                // It leaves when the buffer is on its way.
                inbox.receive::<u8>().map(drop)
            }
            1 => {
                let (number, frame) = receive(&inbox)?;
                all[2].post_lent(&number, frame)?;
                all[0].send(&0u8)
            }
            _ => {
                await_end_of(&inbox, 0);
                assert_eq!(receive(&inbox)?.0, 5);
                Ok(())
            }
        }
    });
}

fn is_all_out(error: &Error) -> bool {
    matches!(error, Error::Arena(ArenaError::AllOut { .. }))
}

pub(crate) fn a_limit_is_waited_for_tried_and_timed(job: &Job<'_>) {
    job.run(2, |deck| {
        let (inbox, all) = inboxes(&deck)?;
        if deck.rank() == 1 {
            let held = (receive(&inbox)?, receive(&inbox)?);
            all[0].send(&0u8)?;
            inbox.receive::<u8>()?;
            drop(held);
            return deck.finish();
        }
        deck.set_lending_limit(2 * FRAME);
        let both = (frame(&deck, 1)?, frame(&deck, 2)?);
        assert!(deck.try_lend::<u64>(VALUES)?.is_none());
        let timed = deck.lend_timeout::<u64>(VALUES, Duration::from_millis(5));
        assert!(timed.is_err_and(|error| is_all_out(&error)));
        all[1].post_lent(&1u64, both.0)?;
        all[1].post_lent(&2u64, both.1)?;
        inbox.receive::<u8>()?;
        all[1].send(&0u8)?;
        // Waits until both are back.
        let both = (deck.lend::<u64>(VALUES)?, deck.lend::<u64>(VALUES)?);
        assert!(both.0.iter().chain(both.1.iter()).all(|value| *value == 0));
        assert!(deck.try_lend::<u64>(VALUES)?.is_none());
        drop(both);
        deck.set_lending_limit(3 * FRAME);
        let three: Option<Vec<_>> = (0..3)
            .map(|_| deck.try_lend::<u64>(VALUES))
            .collect::<Result<_>>()?;
        assert!(three.is_some());
        deck.finish()
    });
}

pub(crate) fn a_limit_counts_what_was_handed_on(job: &Job<'_>) {
    job.run(3, |deck| {
        let (inbox, all) = inboxes(&deck)?;
        match deck.rank().0 {
            0 => {
                deck.set_lending_limit(FRAME);
                for number in 0..20 {
                    // Each waits for the last reader of the one before.
                    all[1].post_lent(&number, frame(&deck, number)?)?;
                }
                drop(frame(&deck, 20)?);
                assert!(deck.arena_bytes() <= 4 << 20, "{}", deck.arena_bytes());
            }
            1 => {
                for _ in 0..20 {
                    let (number, frame) = receive(&inbox)?;
                    all[2].post_lent(&number, frame)?;
                }
            }
            _ => {
                for number in 0..20 {
                    assert_eq!(receive(&inbox)?.0, number);
                }
            }
        }
        deck.finish()
    });
}

pub(crate) fn buffers_that_came_back_are_used_first(job: &Job<'_>) {
    // Each has a slab of its own.
    const LARGE: usize = 8 << 20;
    job.run(2, |deck| {
        let (inbox, all) = inboxes(&deck)?;
        for round in 0..6u8 {
            if deck.rank() == 0 {
                let mut two = [deck.lend_unzeroed::<u8>(LARGE)?, deck.lend_unzeroed(LARGE)?];
                for lent in &mut two {
                    lent[LARGE - 1] = round;
                }
                for lent in two {
                    all[1].post_lent(&round, lent)?;
                }
                inbox.receive::<u8>()?;
            } else {
                let first = inbox.receive_lent::<u8, u8>()?;
                let second = inbox.receive_lent::<u8, u8>()?;
                // The second comes back first: that one must be found, too.
                for (number, lent) in [second, first] {
                    assert_eq!((number, lent[LARGE - 1]), (round, round));
                }
                all[0].send(&0u8)?;
            }
        }
        if deck.rank() == 0 {
            assert_eq!(deck.arena_bytes(), 2 * LARGE);
        }
        deck.finish()
    });
}

pub(crate) fn a_buffer_longer_than_the_limit_is_refused(job: &Job<'_>) {
    job.run(1, |deck| {
        deck.set_lending_limit(FRAME);
        let refused = deck.lend::<u64>(VALUES + 1);
        let is_too_long = matches!(refused, Err(Error::Arena(ArenaError::TooLong { .. })));
        assert!(is_too_long, "{refused:?}");
        Ok(())
    });
}

pub(crate) fn a_holder_that_is_killed_gives_its_buffer_back(job: &Job<'_>) {
    job.run_losing(1, 2, |deck| {
        let (inbox, all) = inboxes(&deck)?;
        if deck.rank() == 1 {
            let held = (receive(&inbox)?, receive(&inbox)?);
            return job.die((deck, inbox, all, held));
        }
        deck.set_lending_limit(2 * FRAME);
        all[1].post_lent(&1u64, frame(&deck, 1)?)?;
        all[1].post_lent(&2u64, frame(&deck, 2)?)?;
        drop((frame(&deck, 3)?, frame(&deck, 4)?));
        Ok(())
    });
}

pub(crate) fn a_holder_that_is_killed_after_handing_on_loses_nothing_of_its_owner(job: &Job<'_>) {
    job.run_losing(1, 3, |deck| {
        let (inbox, all) = inboxes(&deck)?;
        match deck.rank().0 {
            0 => {
                deck.set_lending_limit(2 * FRAME);
                all[1].post_lent(&1u64, frame(&deck, 1)?)?;
                all[1].post_lent(&2u64, frame(&deck, 2)?)?;
                await_end_of(&inbox, 1);
                // The first is with rank 2, which has not been told yet to give it back. The second may be anywhere.
                all[2].send(&0u8)?;
                drop((frame(&deck, 3)?, frame(&deck, 4)?));
                all[2].send(&0u8)
            }
            1 => {
                let (number, frame) = receive(&inbox)?;
                all[2].post_lent(&number, frame)?;
                inbox.retrieve_from(2)?;
                let (number, frame) = receive(&inbox)?;
                all[2].post_lent(&number, frame)?;
                job.die((deck, inbox, all))
            }
            _ => {
                let mut incoming = inbox.retrieve_from(1)?;
                let number: u64 = incoming.unpack_express()?;
                let lent = incoming.unpack_lent::<u64>()?;
                all[1].send(&0u8)?;
                inbox.retrieve_from(0)?;
                // Rank 1 is dead, and what it handed on before is ours.
                check(&lent, number);
                // What nobody had taken over when it died is its owner's again; or it is here, and right.
                if let Ok(mut incoming) = inbox.retrieve_from(1) {
                    let number: u64 = incoming.unpack_express()?;
                    if let Ok(lent) = incoming.unpack_lent::<u64>() {
                        check(&lent, number);
                    }
                }
                drop(lent);
                inbox.retrieve_from(0).map(drop)?;
                Ok(())
            }
        }
    });
}

pub(crate) fn a_last_reader_that_is_killed_gives_its_buffer_back(job: &Job<'_>) {
    job.run_losing(2, 3, |deck| {
        let (inbox, all) = inboxes(&deck)?;
        match deck.rank().0 {
            0 => {
                deck.set_lending_limit(2 * FRAME);
                all[1].post_lent(&1u64, frame(&deck, 1)?)?;
                all[1].post_lent(&2u64, frame(&deck, 2)?)?;
                drop((frame(&deck, 3)?, frame(&deck, 4)?));
                all[1].send(&0u8)
            }
            1 => {
                for _ in 0..2 {
                    let (number, frame) = receive(&inbox)?;
                    all[2].post_lent(&number, frame)?;
                }
                deck.fetch("both are handed on")?.send(&0u8)?;
                // It lives on while they come back.
                inbox.retrieve_from(0).map(drop)?;
                Ok(())
            }
            _ => {
                let told = inbox_of(&deck, "both are handed on")?;
                // One in its hands, and one that it never looked at.
                let held = receive(&inbox)?;
                // Rank 1 must not find it dead between the two.
                told.receive::<u8>()?;
                job.die((deck, inbox, all, held))
            }
        }
    });
}

pub(crate) fn who_waits_for_the_limit_goes_on_when_a_holder_is_killed(job: &Job<'_>) {
    job.run_losing(1, 2, |deck| {
        let (inbox, all) = inboxes(&deck)?;
        if deck.rank() == 1 {
            let held = receive(&inbox)?;
            // Its owner says that it is about to wait.
            inbox.receive::<u8>()?;
            return job.die((deck, inbox, all, held));
        }
        deck.set_lending_limit(FRAME);
        all[1].post_lent(&1u64, frame(&deck, 1)?)?;
        all[1].send(&0u8)?;
        drop(frame(&deck, 2)?);
        Ok(())
    });
}

pub(crate) fn what_a_killed_owner_lent_is_read_and_handed_on(job: &Job<'_>) {
    job.run_losing(0, 3, |deck| {
        let (inbox, all) = inboxes(&deck)?;
        match deck.rank().0 {
            0 => {
                all[1].post_lent(&1u64, frame(&deck, 1)?)?;
                all[1].post_lent(&2u64, frame(&deck, 2)?)?;
                inbox.receive::<u8>()?;
                job.die((deck, inbox, all))
            }
            1 => {
                let (first, one) = receive(&inbox)?;
                let (second, two) = receive(&inbox)?;
                all[2].post_lent(&first, one)?;
                all[0].send(&0u8)?;
                await_end_of(&inbox, 0);
                all[2].send(&0u8)?;
                all[2].post_lent(&second, two)
            }
            _ => {
                await_end_of(&inbox, 0);
                let mut incoming = inbox.retrieve_from(1)?;
                assert_eq!(incoming.unpack_express::<u64>()?, 1);
                check(&incoming.unpack_lent()?, 1);
                inbox.retrieve_from(1)?;
                let mut incoming = inbox.retrieve_from(1)?;
                assert_eq!(incoming.unpack_express::<u64>()?, 2);
                check(&incoming.unpack_lent()?, 2);
                Ok(())
            }
        }
    });
}
