//! Messages and mailboxes among ranks of one process.

mod scenarios;

use mizzen::{Deck, Result};

fn run<T: Send>(size: u32, body: impl Fn(Deck) -> Result<T> + Sync) -> Result<Vec<T>> {
    mizzen::local(size, body)
}

#[test]
fn a_lent_buffer_goes_only_through_the_process_that_made_it() {
    let (give, take) = std::sync::mpsc::channel();
    let (give, take) = (std::sync::Mutex::new(give), std::sync::Mutex::new(take));
    run(2, |deck| {
        let inbox = deck.mailbox()?;
        if deck.rank() == 0 {
            give.lock().unwrap().send(deck.lend::<u8>(64)?).unwrap();
        } else {
            let foreign = take.lock().unwrap().recv().unwrap();
            let refused = inbox.address().post_lent(&1u8, foreign);
            assert!(matches!(refused, Err(mizzen::PostError::LentByAnother)));
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn what_was_lent_stays_as_it_is_after_its_reader_left() {
    let kept = run(2, |deck| {
        let inbox = deck.mailbox()?;
        deck.bind(&format!("inbox {}", deck.rank()), &inbox)?;
        if deck.rank() == 1 {
            let (_, tile) = inbox.receive_lent::<u8, u64>()?;
            deck.fetch("inbox 0")?.send(&1u8)?;
            return Ok(Some(tile));
        }
        inbox.depend_on(1.into());
        let mut tile = deck.lend::<u64>(1000)?;
        tile.fill(7);
        deck.fetch("inbox 1")?.post_lent(&0u8, tile)?;
        inbox.receive::<u8>()?;
        assert!(inbox.retrieve().is_err(), "rank 1 has left");
        for _ in 0..50 {
            deck.lend::<u64>(1000)?.fill(9);
        }
        Ok(None)
    })
    .unwrap();
    let tile = kept.into_iter().flatten().next().expect("rank 1 kept it");
    assert!(tile.iter().all(|value| *value == 7));
}

#[test]
fn ranks_that_first_post_long_messages_to_each_other_do_not_wait() {
    run(2, |deck| {
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
    })
    .unwrap();
}

/// Each holds all of its message until it is whole, and together they are more than the arena holds.
#[test]
fn long_messages_that_together_exceed_the_arena_wait_before_they_begin() {
    const LEN: usize = 40 << 20;
    run(2, |deck| {
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
    })
    .unwrap();
}

#[test]
fn the_longest_message_to_oneself_arrives_and_a_longer_one_is_refused() {
    run(1, |deck| {
        let inbox = deck.mailbox()?;
        let mut sender = inbox.address().sender()?;
        for _ in 0..3 {
            sender.send(&vec![5u8; 64 << 20][..])?;
            assert_eq!(inbox.receive_vec::<u8>()?.len(), 64 << 20);
        }
        assert!(sender.send(&vec![5u8; (64 << 20) + 1][..]).is_err());
        Ok(())
    })
    .unwrap();
}

#[test]
fn the_memory_of_long_messages_that_nobody_reads_comes_back_with_their_mailbox() {
    run(2, |deck| {
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
    })
    .unwrap();
}

#[test]
fn two_busy_senders_do_not_keep_a_posted_message_from_its_turn() {
    run(1, |deck| {
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
    })
    .unwrap();
}

#[test]
fn a_message_is_not_passed_over_when_another_sender_ends() {
    run(1, |deck| {
        let inbox = deck.mailbox()?;
        let (mut first, mut second) = (inbox.address().sender()?, inbox.address().sender()?);
        first.send(&1u64)?;
        assert_eq!(inbox.receive::<u64>()?, 1);
        drop(first);
        second.send(&2u64)?;
        assert!(inbox.try_retrieve()?.is_some());
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_type_of_the_programs_own_is_received_as_what_it_is_made_of() -> Result<()> {
    #[derive(
        zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::Immutable, zerocopy::KnownLayout,
    )]
    #[repr(transparent)]
    struct Metres(f64);

    run(1, |deck| {
        let inbox = deck.mailbox()?;
        inbox.address().send(&Metres(3.5))?;
        assert_eq!(inbox.receive::<f64>()?, 3.5);
        inbox.address().send(&4.5f64)?;
        assert_eq!(inbox.receive::<Metres>()?.0, 4.5);
        Ok(())
    })
    .map(drop)
}
