//! What both sides know of each message before it is sent.

use fastrand::Rng;

/// Sending threads of each sending rank.
pub(super) const THREADS: u64 = 2;
/// Random bytes that payloads are cut from.
const POOL: usize = 4 << 20;
/// The longest message.
pub(super) const LONGEST: usize = 1 << 20;
/// Bytes of the number and the checksum in front of each payload.
pub(super) const HEADER: usize = 16;

/// How a sender and the receiver both know what the next message of a sender is.
pub(super) struct Plan {
    pub(super) len: usize,
    pub(super) start: usize,
    pub(super) kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Whole,
    Pieces,
    Lent,
}

impl Plan {
    pub(super) fn new(random: &mut Rng) -> Self {
        let (len, kind) = if random.bool() {
            (random.usize(..=56 - HEADER), Kind::Whole)
        } else {
            // From 57 bytes to 1 MiB, so that the mean over all messages is about 4 KiB.
            let len =
                (57.0 * ((LONGEST as f64 / 57.0).ln() * random.f64().powi(15)).exp()) as usize;
            let kind = match random.u8(..8) {
                0 => Kind::Lent,
                1..4 => Kind::Pieces,
                _ => Kind::Whole,
            };
            (len.min(LONGEST) - HEADER, kind)
        };
        Self {
            len,
            start: random.usize(..POOL - LONGEST),
            kind,
        }
    }
}

pub(super) fn pool() -> Vec<u8> {
    let mut bytes = vec![0; POOL];
    Rng::with_seed(42).fill(&mut bytes);
    bytes
}
