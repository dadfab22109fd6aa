//! A message is asked for as what it was sent as: plain data or a serde value, and, in debug builds, which number.

use mizzen::{Error, Mailbox, MailboxRef, Message, Result, UnpackError};

use super::{Job, meet, pair};

/// Posts what `send` packs through the address and through a `Sender`.
fn send_both(inbox: &MailboxRef, send: impl Fn(&mut Message<'_>) -> Result<()>) -> Result<()> {
    let mut message = Message::new();
    send(&mut message)?;
    inbox.post(&mut message)?;
    inbox.sender()?.post(&mut message)
}

fn refused<T: core::fmt::Debug>(outcome: Result<T>) -> UnpackError {
    match outcome {
        Err(Error::Unpack(error)) => error,
        other => panic!("{other:?}"),
    }
}

fn next<T>(
    inbox: &Mailbox,
    unpack: impl FnOnce(&mut mizzen::Incoming<'_>) -> mizzen::Result<T>,
) -> Result<T> {
    unpack(&mut inbox.retrieve()?)
}

pub(crate) fn plain_data_is_not_received_as_a_serde_value_nor_the_reverse(job: &Job<'_>) {
    pair(
        job,
        |deck, inbox| {
            for turn in 0..2 {
                if turn == 1 {
                    meet(deck, "turn")?;
                }
                let error = refused(inbox.receive_value::<String>());
                assert_eq!(error, UnpackError::NotAValue);
                assert!(error.to_string().contains("`receive::<T>`"), "{error}");
                let error = refused(inbox.receive::<u8>());
                assert_eq!(error, UnpackError::NotPlain);
                assert!(error.to_string().contains("`receive_value`"), "{error}");
                assert_eq!(
                    inbox.receive::<u64>()?,
                    7,
                    "what comes next is not affected"
                );
                assert_eq!(inbox.receive_value::<u64>()?, 7);
            }
            for _ in 0..2 {
                let error = refused(inbox.receive_vec::<u8>());
                assert_eq!(error, UnpackError::NotPlain);
            }
            Ok(())
        },
        |deck, inbox| {
            let mut sender = inbox.sender()?;
            for through_sender in [false, true] {
                // The two ways have no common order: each has a rank's turn of its own.
                if through_sender {
                    meet(deck, "turn")?;
                    sender.send(&7u64)?;
                    sender.send_value(&7u64)?;
                    sender.send(&7u64)?;
                    sender.send_value(&7u64)?;
                } else {
                    inbox.send(&7u64)?;
                    inbox.send_value(&7u64)?;
                    inbox.send(&7u64)?;
                    inbox.send_value(&7u64)?;
                }
            }
            let long = vec![7u8; 200_000];
            sender.send_value(&long)?;
            sender.send_value(&long)?;
            Ok(())
        },
    );
}

pub(crate) fn each_piece_knows_whether_it_is_a_serde_value(job: &Job<'_>) {
    pair(
        job,
        |_, inbox| {
            for _ in 0..2 {
                let mut message = inbox.retrieve()?;
                assert!(matches!(
                    message.unpack_value::<u64>(),
                    Err(mizzen::Error::Unpack(UnpackError::NotAValue))
                ));
                assert_eq!(message.unpack_express::<u64>()?, 7, "it is still there");
                assert!(matches!(
                    message.unpack_vec::<u8>(),
                    Err(mizzen::Error::Unpack(UnpackError::NotPlain))
                ));
                assert_eq!(message.unpack_value::<Vec<String>>()?, ["seven"]);
                let mut inner = message.unpack_message()?;
                assert!(matches!(
                    inner.unpack_express::<u8>(),
                    Err(mizzen::Error::Unpack(UnpackError::NotPlain))
                ));
                assert_eq!(inner.unpack_value::<u8>()?, 7);
            }
            Ok(())
        },
        |_, inbox| {
            send_both(&inbox, |message| {
                let mut inner = Message::new();
                inner.pack_value(&7u8)?;
                message.pack_safer(&7u64).pack_value(&vec!["seven"])?;
                message.pack_message(&inner)?;
                Ok(())
            })
        },
    );
}

/// Debug builds only: a release build neither marks nor looks.
pub(crate) fn in_debug_builds_a_number_is_not_received_as_another(job: &Job<'_>) {
    if !cfg!(debug_assertions) {
        return;
    }
    pair(
        job,
        |_, inbox| {
            let error = refused(inbox.receive::<f64>());
            assert_eq!(error.to_string().matches("u64").count(), 1, "{error}");
            assert_eq!(error.to_string().matches("f64").count(), 1, "{error}");
            assert!(inbox.receive_vec::<f32>().is_err());
            let mut place = [0u32; 3];
            assert!(next(&inbox, |message| message.unpack_express_into(&mut place)).is_err());
            assert!(inbox.receive_vec::<f64>().is_err(), "also a long one");
            Ok(())
        },
        |_, inbox| {
            let mut sender = inbox.sender()?;
            sender.send(&7u64)?;
            sender.send(&[7u32; 2])?;
            sender.send(&[7.0f32; 3][..])?;
            sender.send(&vec![7u64; 100_000][..])?;
            Ok(())
        },
    );
}

pub(crate) fn what_has_the_same_elements_or_is_only_bytes_is_received_as_before(job: &Job<'_>) {
    pair(
        job,
        |_, inbox| {
            assert_eq!(inbox.receive_vec::<f64>()?, [1.0, 2.0]);
            assert_eq!(inbox.receive::<[f64; 2]>()?, [1.0, 2.0]);
            assert_eq!(inbox.receive::<[[f64; 2]; 1]>()?, [[1.0, 2.0]]);
            assert_eq!(inbox.receive_vec::<u8>()?.len(), 16, "bytes of anything");
            assert_eq!(inbox.receive::<[u64; 1]>()?, [0x0101_0101_0101_0101]);
            assert_eq!(inbox.receive::<u64>()?, 9, "as wide as usize here");
            assert_eq!(inbox.receive::<i32>()?, 8, "another sign");
            assert_eq!(inbox.receive_vec::<u8>()?, b"text");
            assert_eq!(inbox.receive::<u8>()?, 1, "a bool");
            assert_eq!(inbox.receive::<u32>()?, u32::from('x'));
            assert_eq!(inbox.receive::<u64>()?, 5, "packed, not sent");
            Ok(())
        },
        |_, inbox| {
            let mut sender = inbox.sender()?;
            for _ in 0..4 {
                sender.send(&[1.0f64, 2.0])?;
            }
            sender.send(&[1u8; 8][..])?;
            sender.send(&9usize)?;
            sender.send(&8u32)?;
            sender.send("text")?;
            sender.send(&true)?;
            sender.send(&'x')?;
            let mut message = Message::new();
            message.pack_safer(&5u64);
            sender.post(&mut message)?;
            Ok(())
        },
    );
}
