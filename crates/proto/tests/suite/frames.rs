//! Frames as bytes: docs/wire.md §1 to §3, §8.2, §9 and §10.

use mizzen_proto::ProtocolError;
use mizzen_proto::credit::{Credits, WINDOW};
use mizzen_proto::id::{BodyId, MailboxId, OfferId, PingToken, ProcessId, StreamId};
use mizzen_proto::link::{CONTROL_MAX, OFFERS_MAX, PULLS_MAX};
use mizzen_proto::wire::{
    BODY_MAX, FRAME_MAX, Frame, FrameKind, HEADER_MAX, OFFER_HEADER, POST_HEADER, PULL_MAX,
    PUSH_MAX, PUSH_WINDOW, VERSION,
};
use proptest::prelude::*;

const A: u64 = 0x1112_1314_1516_1718;
const B: u64 = 0x2122_2324_2526_2728;
const STREAM: StreamId = StreamId(0x3132_3334);
/// One frame of each kind.
fn one_of_each() -> Vec<Frame<'static>> {
    let (token, offer, body, to) = (PingToken(A), OfferId(A), BodyId(B), MailboxId(A));
    let credits = Credits::new(0x3132_3334, B);
    vec![
        Frame::Hello {
            version: VERSION,
            from: ProcessId::from_u64(A),
            to: ProcessId::from_u64(B),
            window: Credits::new(0x3132_3334, 0x4142_4344_4546_4748),
        },
        Frame::Bye,
        Frame::Ping { token },
        Frame::Pong { token },
        Frame::Post {
            to,
            stream: STREAM,
            message: b"message",
        },
        Frame::Offer {
            to,
            stream: STREAM,
            offer: OfferId(B),
            body_len: 0x00ff_0102_0304,
            head: b"head",
        },
        Frame::Accept { offer, body },
        Frame::Decline { offer },
        Frame::Retract { offer },
        Frame::Credit { to, credits },
        Frame::Gone { mailbox: to },
        Frame::Push {
            to,
            stream: STREAM,
            offer: OfferId(B),
            body_len: 0x0001_0203,
            head: b"head",
        },
        Frame::Returned { bytes: A },
        Frame::Pull {
            offer,
            body,
            from: 0x00ff_0102_0304,
            len: 0x3132_3334,
        },
    ]
}

fn sample(kind: FrameKind) -> Vec<u8> {
    let mut frames = one_of_each().into_iter();
    frames.find(|frame| frame.kind() == kind).unwrap().to_vec()
}

/// Bytes from hexadecimal, spaces ignored; `A`, `B` and `C` stand for the numbers above, little-endian.
fn hex(text: &str) -> Vec<u8> {
    let text = text
        .replace('A', "1817161514131211")
        .replace('B', "2827262524232221")
        .replace('C', "34333231")
        .replace(' ', "");
    let pairs = text.as_bytes().chunks(2);
    pairs
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

// docs/wire.md §1.2 and §1.3
#[test]
fn a_process_travels_little_endian_with_its_rank_first() {
    let hello = sample(FrameKind::Hello);
    let from = ProcessId::from_u64(A);
    assert_eq!(hello[16..20], from.rank.0.to_le_bytes());
    assert_eq!(hello[20..24], from.incarnation.0.to_le_bytes());
}

// docs/wire.md §1.4
#[test]
fn a_mailbox_is_any_word_of_64_bits() {
    for word in [0, 1, u64::MAX] {
        let mailbox = MailboxId(word);
        let bytes = Frame::Gone { mailbox }.to_vec();
        assert_eq!(Frame::decode(&bytes), Ok(Frame::Gone { mailbox }));
    }
}

// docs/wire.md §2.1
#[test]
fn the_longest_frame_is_taken_and_a_longer_one_is_not() {
    let mut bytes = sample(FrameKind::Post);
    bytes.resize(FRAME_MAX, 0);
    assert!(Frame::decode(&bytes).is_ok());
    bytes.push(0);
    let (len, limit) = (FRAME_MAX + 1, FRAME_MAX);
    let error = ProtocolError::FrameTooLong { len, limit };
    assert_eq!(Frame::decode(&bytes), Err(error));
}

// docs/wire.md §2.2
#[test]
fn headers_have_the_lengths_of_the_table() {
    let lengths: Vec<_> = one_of_each()
        .iter()
        .map(|frame| (frame.kind() as u8, frame.header().len()))
        .collect();
    let table = [
        (0x01, 32),
        (0x02, 8),
        (0x03, 16),
        (0x04, 16),
        (0x10, POST_HEADER),
        (0x11, OFFER_HEADER),
        (0x12, 24),
        (0x13, 16),
        (0x14, 16),
        (0x15, 24),
        (0x16, 16),
        (0x17, OFFER_HEADER),
        (0x18, 16),
        (0x19, 32),
    ];
    assert_eq!(lengths, table);
    assert_eq!((POST_HEADER, OFFER_HEADER), (16, 32));
}

// docs/wire.md §2.2
#[test]
fn an_unknown_kind_is_an_error() {
    assert_eq!(Frame::decode(&[]), Err(ProtocolError::Empty));
    for kind in 0..=u8::MAX {
        let unknown = Err(ProtocolError::UnknownKind { kind });
        let is_unknown = Frame::decode(&[kind; 64]) == unknown;
        assert_eq!(is_unknown, FrameKind::from_u8(kind).is_none());
    }
}

// docs/wire.md §2.3
#[test]
fn a_reserved_byte_that_is_not_zero_is_an_error() {
    for frame in one_of_each() {
        let kind = frame.kind();
        let reserved = match kind {
            FrameKind::Hello => 1..2,
            FrameKind::Post
            | FrameKind::Offer
            | FrameKind::Push
            | FrameKind::Pull
            | FrameKind::Credit => 1..4,
            _ => 1..8,
        };
        for byte in reserved {
            let mut bytes = frame.to_vec();
            assert_eq!(bytes[byte], 0);
            bytes[byte] = 1;
            assert_eq!(
                Frame::decode(&bytes),
                Err(ProtocolError::Reserved { kind }),
                "byte {byte}"
            );
        }
    }
}

// docs/wire.md §2.4
#[test]
fn a_frame_cut_in_its_header_is_an_error() {
    for frame in one_of_each() {
        let (kind, bytes) = (frame.kind(), frame.to_vec());
        let need = frame.header().len();
        for have in 1..need {
            let error = ProtocolError::Truncated { kind, need, have };
            assert_eq!(Frame::decode(&bytes[..have]), Err(error));
        }
    }
}

// docs/wire.md §2.4
#[test]
fn a_byte_after_a_frame_without_payload_is_an_error() {
    for frame in one_of_each() {
        if !frame.payload().is_empty() {
            continue;
        }
        let (kind, mut bytes) = (frame.kind(), frame.to_vec());
        let end = bytes.len();
        bytes.push(0);
        let error = ProtocolError::Trailing {
            kind,
            end,
            extra: 1,
        };
        assert_eq!(Frame::decode(&bytes), Err(error));
    }
}

// docs/wire.md §2.4
#[test]
fn a_header_does_not_depend_on_its_payload() {
    let post = |message| Frame::Post {
        to: MailboxId(A),
        stream: STREAM,
        message,
    };
    assert_eq!(post(b"abc").header()[..], post(b"").header()[..]);
}

// docs/wire.md §3.1
#[test]
fn hello_has_its_layout() {
    let expected = hex("01 00 0700 C 4847464544434241 A B");
    assert_eq!(sample(FrameKind::Hello), expected);
}

// docs/wire.md §3.2
#[test]
fn bye_ping_and_pong_have_their_layouts() {
    assert_eq!(sample(FrameKind::Bye), hex("02 00000000000000"));
    assert_eq!(sample(FrameKind::Ping), hex("03 00000000000000 A"));
    assert_eq!(sample(FrameKind::Pong), hex("04 00000000000000 A"));
}

// docs/wire.md §3.3
#[test]
fn post_has_its_layout() {
    let expected = [&hex("10 000000 C A")[..], b"message"].concat();
    assert_eq!(sample(FrameKind::Post), expected);
}

// docs/wire.md §3.4
#[test]
fn offer_has_its_layout() {
    let header = hex("11 000000 C A B 04030201ff000000");
    assert_eq!(sample(FrameKind::Offer), [&header[..], b"head"].concat());
}

// docs/wire.md §3.5
#[test]
fn accept_pull_decline_and_retract_have_their_layouts() {
    let pull = hex("19 000000 C A B 04030201ff000000");
    assert_eq!(sample(FrameKind::Pull), pull);
    assert_eq!(sample(FrameKind::Accept), hex("12 00000000000000 A B"));
    assert_eq!(sample(FrameKind::Decline), hex("13 00000000000000 A"));
    assert_eq!(sample(FrameKind::Retract), hex("14 00000000000000 A"));
}

// docs/wire.md §5.10
#[test]
fn a_pull_of_nothing_or_from_beyond_any_body_is_an_error() {
    let pull = |from: u64, len: u32| {
        let mut bytes = sample(FrameKind::Pull);
        bytes[4..8].copy_from_slice(&len.to_le_bytes());
        bytes[24..].copy_from_slice(&from.to_le_bytes());
        bytes
    };
    let offer = OfferId(A);
    for (from, len) in [
        (0, 0),
        (0, PULL_MAX + 1),
        (BODY_MAX, 1),
        (u64::MAX, u32::MAX),
    ] {
        assert_eq!(
            Frame::decode(&pull(from, len)),
            Err(ProtocolError::PullRange { offer, from, len })
        );
    }
    assert!(Frame::decode(&pull(BODY_MAX - 1, PULL_MAX)).is_ok());
}

// docs/wire.md §3.6
#[test]
fn credit_and_gone_have_their_layouts() {
    assert_eq!(sample(FrameKind::Credit), hex("15 000000 C A B"));
    assert_eq!(sample(FrameKind::Gone), hex("16 00000000000000 A"));
}

// docs/wire.md §5.2
#[test]
fn an_offer_of_no_body_or_too_long_a_one_is_an_error() {
    let mut bytes = sample(FrameKind::Offer);
    for len in [0, BODY_MAX + 1, u64::MAX] {
        bytes[24..32].copy_from_slice(&len.to_le_bytes());
        let limit = BODY_MAX;
        let error = ProtocolError::BodyLength { len, limit };
        assert_eq!(Frame::decode(&bytes), Err(error));
    }
}

// docs/wire.md §9.1
#[test]
fn a_hello_of_another_version_is_an_error_whatever_its_length() {
    let theirs = 4;
    let error = ProtocolError::Version {
        ours: VERSION,
        theirs,
    };
    for len in [4, 32, 100] {
        let mut bytes = vec![0xee; len];
        bytes[..4].copy_from_slice(&hex("01 00 0400"));
        assert_eq!(Frame::decode(&bytes), Err(error.clone()));
    }
}

// docs/wire.md §9.2
#[test]
fn this_is_version_7_with_14_kinds() {
    assert_eq!(VERSION, 7);
    assert_eq!(one_of_each().len(), FrameKind::ALL.len());
    assert_eq!(FrameKind::ALL.len(), 14);
}

// docs/wire.md §10.1
#[test]
fn the_limits_are_those_of_the_table() {
    assert_eq!((FRAME_MAX, HEADER_MAX), (131_072, 32));
    assert_eq!((OFFERS_MAX, CONTROL_MAX), (1_024, 65_536));
    assert_eq!((PULL_MAX, PULLS_MAX), (4_194_304, 65_536));
    assert_eq!(BODY_MAX, 1 << 40);
    assert_eq!((PUSH_MAX, PUSH_WINDOW), (2_097_152, 4_194_304));
    assert_eq!(WINDOW, Credits::new(256, 1_048_576));
}

/// Bytes that look like frames: a known kind, often zeros where zeros must be.
fn likely() -> impl Strategy<Value = Vec<u8>> {
    let kind = prop::sample::select(FrameKind::ALL.to_vec());
    let rest = prop::collection::vec(prop_oneof![3 => Just(0), 1 => any::<u8>()], 0..80);
    (kind, rest).prop_map(|(kind, rest)| [&[kind as u8][..], &rest].concat())
}

proptest! {
    // docs/wire.md §8.2
    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = Frame::decode(&bytes);
    }

    // docs/wire.md §8.2
    #[test]
    fn what_is_decoded_encodes_to_the_same_bytes(bytes in likely()) {
        if let Ok(frame) = Frame::decode(&bytes) {
            prop_assert_eq!(frame.to_vec(), bytes);
        }
    }

    #[test]
    fn what_is_encoded_decodes_to_the_same_frame(
        words in any::<[u64; 3]>(),
        small in any::<u32>(),
        payload in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let [a, b, c] = words;
        let (stream, to) = (StreamId(small), MailboxId(a));
        let frames = [
            Frame::Hello {
                version: VERSION,
                from: ProcessId::from_u64(a),
                to: ProcessId::from_u64(b),
                window: Credits::new(small, c),
            },
            Frame::Post { to, stream, message: &payload },
            Frame::Offer {
                to,
                stream,
                offer: OfferId(b),
                body_len: c % BODY_MAX + 1,
                head: &payload,
            },
            Frame::Push {
                to,
                stream,
                offer: OfferId(b),
                body_len: c % PUSH_MAX + 1,
                head: &payload,
            },
            Frame::Returned { bytes: c },
            Frame::Accept { offer: OfferId(a), body: BodyId(b) },
            Frame::Pull {
                offer: OfferId(a),
                body: BodyId(b),
                from: c % BODY_MAX,
                len: small % PULL_MAX + 1,
            },
            Frame::Credit { to, credits: Credits::new(small, b) },
        ];
        for frame in frames {
            let bytes = frame.to_vec();
            prop_assert_eq!(Frame::decode(&bytes), Ok(frame));
        }
    }
}
