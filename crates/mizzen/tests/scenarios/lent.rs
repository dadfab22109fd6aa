//! Buffers that are lent to messages.

use std::sync::Mutex;

use mizzen::{Lent, Message, PostError};

use super::{Job, bytes, inbox_of, pair};

pub(crate) fn lent_buffers_move_and_come_back(job: &Job<'_>) {
    job.run(2, |deck| {
        if deck.rank() == 0 {
            let inbox = inbox_of(&deck, "tiles")?;
            for number in 0..300u32 {
                let (header, tile) = inbox.receive_lent::<u32, u64>()?;
                assert_eq!(header, number);
                assert_eq!(tile.len(), 16 << 10);
                assert!(tile.iter().all(|value| *value == u64::from(number)));
            }
        } else {
            let mut sender = deck.fetch("tiles")?.sender()?;
            for number in 0..300u32 {
                let mut tile: Lent<u64> = deck.lend(16 << 10)?;
                tile.fill(u64::from(number));
                sender.post_lent(&number, tile)?;
            }
            assert!(
                deck.arena_bytes() <= 80 << 20,
                "300 buffers of 128 KiB were used over and over"
            );
        }
        Ok(())
    });
}

pub(crate) fn a_lent_buffer_cannot_be_given_away_twice(job: &Job<'_>) {
    pair(
        job,
        |_, inbox| {
            let mut incoming = inbox.retrieve()?;
            assert_eq!(incoming.unpack_lent::<u8>()?.len(), 100);
            assert_eq!(incoming.unpack_express::<u8>()?, 1);
            Ok(())
        },
        |deck, address| {
            let mut message = Message::new();
            message.pack_lent(deck.lend::<u8>(100)?).pack_safer(&1u8);
            address.post(&mut message)?;
            let again = address.post(&mut message);
            assert!(matches!(
                again,
                Err(mizzen::Error::Post(PostError::LentTwice))
            ));
            Ok(())
        },
    );
}

pub(crate) fn lent_pieces_of_every_length_are_read_from_a_buffer(job: &Job<'_>) {
    let lengths = [0usize, 1, 1000, 8192, 100_000, 3 << 20];
    pair(
        job,
        |_, inbox| {
            for _ in 0..3 {
                let mut incoming = inbox.retrieve()?;
                let mut before = [0u8; 5000];
                incoming.unpack_cheaper(&mut before)?;
                for (number, len) in lengths.into_iter().enumerate() {
                    let lent = incoming.unpack_lent::<u8>()?;
                    assert!(*lent == bytes(number, len)[..], "length {len}");
                }
                assert_eq!(incoming.unpack_express::<u16>()?, 99);
                incoming.finish()?;
                assert_eq!(before[..], bytes(7, 5000));
            }
            Ok(())
        },
        |deck, address| {
            let mut sender = address.sender()?;
            for _ in 0..3 {
                let first = bytes(7, 5000);
                let mut message = Message::new();
                message.pack_cheaper(&first[..]);
                for (number, len) in lengths.into_iter().enumerate() {
                    let mut lent = deck.lend::<u8>(len)?;
                    lent.copy_from_slice(&bytes(number, len));
                    message.pack_lent(lent);
                }
                message.pack_safer(&99u16);
                sender.post(&mut message)?;
            }
            Ok(())
        },
    );
}

pub(crate) fn a_lent_buffer_goes_only_through_the_process_that_made_it(job: &Job<'_>) {
    let (give, take) = std::sync::mpsc::channel();
    let (give, take) = (Mutex::new(give), Mutex::new(take));
    job.run(2, |deck| {
        let inbox = deck.mailbox()?;
        if deck.rank() == 0 {
            give.lock().unwrap().send(deck.lend::<u8>(64)?).unwrap();
        } else {
            let foreign = take.lock().unwrap().recv().unwrap();
            let refused = inbox.address().post_lent(&1u8, foreign);
            assert!(matches!(
                refused,
                Err(mizzen::Error::Post(mizzen::PostError::LentByAnother))
            ));
        }
        Ok(())
    });
}

pub(crate) fn what_was_lent_stays_as_it_is_after_its_reader_left(job: &Job<'_>) {
    let kept = Mutex::new(None);
    job.run(2, |deck| {
        let inbox = deck.mailbox()?;
        deck.bind(&format!("inbox {}", deck.rank()), &inbox)?;
        if deck.rank() == 1 {
            let (_, tile) = inbox.receive_lent::<u8, u64>()?;
            deck.fetch("inbox 0")?.send(&1u8)?;
            *kept.lock().unwrap() = Some(tile);
            return Ok(());
        }
        inbox.depend_on(1);
        let mut tile = deck.lend::<u64>(1000)?;
        tile.fill(7);
        deck.fetch("inbox 1")?.post_lent(&0u8, tile)?;
        inbox.receive::<u8>()?;
        assert!(inbox.retrieve().is_err(), "rank 1 has left");
        for _ in 0..50 {
            deck.lend::<u64>(1000)?.fill(9);
        }
        Ok(())
    });
    let tile = kept.into_inner().unwrap().expect("rank 1 kept it");
    assert!(tile.iter().all(|value| *value == 7));
}
