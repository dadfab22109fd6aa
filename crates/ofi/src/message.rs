//! What travels through the fabric: a header of 24 bytes, and what its kind says.
//!
//! Everything is little-endian. Nothing of a message is used before [`Header::decode`] and the functions
//! here have found it well-formed; who may say what, and when, is decided by `link` and `bodies`.
//!
//! | kind | says | after the header |
//! |---|---|---|
//! | `Frame` | a frame of `len` bytes begins | its bytes, or as many as fit |
//! | `More` | a frame continues | `len` bytes |
//! | `Credit` | messages were taken | nothing |
//! | `Port` | where bodies are written to | the name of an endpoint |
//! | `Grant` | where one body goes | id, count, places |
//! | `Offer` | a body waits for its grant | id, length |
//! | `Complete` | a body is in its place | id, length |

use mizzen_driver::BodyId;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::pool::Pool;

/// What every message begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    /// The secret that the receiver gave the sender for this link.
    pub(crate) key: u64,
    /// The receiver's number for this link.
    pub(crate) slot: u32,
    /// Counts the messages of this link and direction.
    pub(crate) serial: u32,
    pub(crate) kind: Kind,
    /// How many `Frame` and `More` the sender has taken from the receiver, in all.
    pub(crate) taken: u16,
    pub(crate) len: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Frame,
    More,
    Credit,
    Port,
    Grant,
    Offer,
    Complete,
}

impl Header {
    pub(crate) const LEN: usize = size_of::<Wire>();

    pub(crate) fn encode(self) -> [u8; Self::LEN] {
        let wire = Wire {
            key: U64::new(self.key),
            slot: U32::new(self.slot),
            serial: U32::new(self.serial),
            kind: KINDS
                .iter()
                .position(|&kind| kind == self.kind)
                .map_or(0, |at| at as u8 + 1),
            zero: 0,
            taken: U16::new(self.taken),
            len: U32::new(self.len),
        };
        zerocopy::transmute!(wire)
    }

    /// Reads the header of a message, and says what follows it.
    pub(crate) fn decode(message: &[u8]) -> Option<(Self, &[u8])> {
        let (wire, payload) = Wire::read_from_prefix(message).ok()?;
        let kind = *KINDS.get(usize::from(wire.kind.checked_sub(1)?))?;
        if wire.zero != 0 {
            return None;
        }
        let header = Self {
            key: wire.key.get(),
            slot: wire.slot.get(),
            serial: wire.serial.get(),
            kind,
            taken: wire.taken.get(),
            len: wire.len.get(),
        };
        Some((header, payload))
    }
}

/// A body and its length: what `Offer` and `Complete` say.
pub(crate) fn encode_body(body: BodyId, len: usize) -> [u8; 16] {
    let wire = BodyWire {
        body: U64::new(body.0),
        len: U64::new(len as u64),
    };
    zerocopy::transmute!(wire)
}

pub(crate) fn decode_body(payload: &[u8]) -> Option<(BodyId, usize)> {
    let wire = BodyWire::read_from_bytes(payload).ok()?;
    let len = usize::try_from(wire.len.get()).ok()?;
    (len <= MAX_BODY).then_some((BodyId(wire.body.get()), len))
}

/// A run of memory at the other end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) address: u64,
    pub(crate) len: usize,
    pub(crate) key: u64,
}

pub(crate) fn encode_grant(body: BodyId, places: &[Place]) -> Vec<u8> {
    assert!(
        places.len() <= MAX_PARTS,
        "more places than the other end would take"
    );
    let head = GrantWire {
        body: U64::new(body.0),
        count: U32::new(places.len() as u32),
        zero: U32::ZERO,
    };
    let mut payload = head.as_bytes().to_vec();
    for place in places {
        let wire = PlaceWire {
            address: U64::new(place.address),
            len: U64::new(place.len as u64),
            key: U64::new(place.key),
        };
        payload.extend_from_slice(wire.as_bytes());
    }
    payload
}

/// A grant whose places are not more, and not longer, than a body may have.
pub(crate) fn decode_grant(payload: &[u8]) -> Option<(BodyId, Vec<Place>)> {
    let (head, rest) = GrantWire::read_from_prefix(payload).ok()?;
    let count = head.count.get() as usize;
    let is_sound = count <= MAX_PARTS && head.zero == U32::ZERO;
    let (wires, rest) =
        <[PlaceWire]>::ref_from_prefix_with_elems(rest, count.min(MAX_PARTS)).ok()?;
    if !is_sound || !rest.is_empty() {
        return None;
    }
    let mut places = Vec::with_capacity(count);
    let mut total = 0_usize;
    for wire in wires {
        let len = usize::try_from(wire.len.get()).ok()?;
        total = total.checked_add(len).filter(|&total| total <= MAX_BODY)?;
        wire.address.get().checked_add(wire.len.get())?;
        if len == 0 {
            return None;
        }
        places.push(Place {
            address: wire.address.get(),
            len,
            key: wire.key.get(),
        });
    }
    Some((BodyId(head.body.get()), places))
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Wire {
    key: U64,
    slot: U32,
    serial: U32,
    kind: u8,
    zero: u8,
    taken: U16,
    len: U32,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct BodyWire {
    body: U64,
    len: U64,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct GrantWire {
    body: U64,
    count: U32,
    zero: U32,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct PlaceWire {
    address: U64,
    len: U64,
    key: U64,
}

/// In the order of their numbers, which begin at 1.
const KINDS: [Kind; 7] = [
    Kind::Frame,
    Kind::More,
    Kind::Credit,
    Kind::Port,
    Kind::Grant,
    Kind::Offer,
    Kind::Complete,
];

/// Bytes of a frame in one message.
pub(crate) const MAX_PAYLOAD: usize = Pool::LEN - Header::LEN;
/// The longest frame: an eager message of 64 KiB and the headers of the layers above.
pub(crate) const MAX_FRAME: usize = 72 * 1024;
/// Messages of the longest frame.
pub(crate) const MAX_FRAGMENTS: usize = MAX_FRAME.div_ceil(MAX_PAYLOAD);
/// A tebibyte: no memory is longer.
pub(crate) const MAX_BODY: usize = 1 << 40;
/// So many places fit in one short message.
pub(crate) const MAX_PARTS: usize = 64;
/// Bounds the control messages that a peer which does not poll lets pile up.
pub(crate) const MAX_BODIES: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn header(kind: Kind) -> Header {
        Header {
            key: 0x0123_4567_89ab_cdef,
            slot: 7,
            serial: u32::MAX,
            kind,
            taken: 65_535,
            len: 99,
        }
    }

    #[test]
    fn a_header_comes_back_as_it_went() {
        for kind in KINDS {
            let mut message = header(kind).encode().to_vec();
            message.extend_from_slice(b"rest");
            assert_eq!(Header::decode(&message), Some((header(kind), &b"rest"[..])));
        }
    }

    #[test]
    fn a_truncated_or_unknown_header_is_refused() {
        let message = header(Kind::Frame).encode();
        (0..Header::LEN).for_each(|len| assert_eq!(Header::decode(&message[..len]), None));
        for (at, byte) in [(16, 0), (16, 8), (16, 255), (17, 1)] {
            let mut wrong = message;
            wrong[at] = byte;
            assert_eq!(Header::decode(&wrong), None);
        }
    }

    #[test]
    fn a_grant_comes_back_as_it_went() {
        let place = |number: u64| Place {
            address: number << 40,
            len: 1 + number as usize,
            key: !number,
        };
        for count in [0, 1, MAX_PARTS as u64] {
            let places: Vec<Place> = (0..count).map(place).collect();
            let payload = encode_grant(BodyId(5), &places);
            assert!(payload.len() <= MAX_PAYLOAD);
            assert_eq!(decode_grant(&payload), Some((BodyId(5), places)));
            (0..payload.len()).for_each(|len| assert_eq!(decode_grant(&payload[..len]), None));
        }
    }

    #[test]
    fn a_grant_of_too_much_is_refused() {
        let place = |address, len| Place {
            address,
            len,
            key: 1,
        };
        let long = encode_grant(BodyId(1), &[place(0, MAX_BODY), place(0, 1)]);
        assert_eq!(decode_grant(&long), None);
        assert_eq!(
            decode_grant(&encode_grant(BodyId(1), &[place(u64::MAX, 1)])),
            None
        );
        assert_eq!(decode_grant(&encode_grant(BodyId(1), &[place(0, 0)])), None);
        let mut many = encode_grant(BodyId(1), &[place(0, 1); MAX_PARTS]);
        many[8] = MAX_PARTS as u8 + 1;
        assert_eq!(decode_grant(&many), None);
        many.extend_from_slice(&[1; 24]);
        assert_eq!(decode_grant(&many), None);
    }

    #[test]
    fn a_body_longer_than_any_memory_is_refused() {
        assert_eq!(
            decode_body(&encode_body(BodyId(3), 9)),
            Some((BodyId(3), 9))
        );
        assert_eq!(decode_body(&encode_body(BodyId(3), MAX_BODY + 1)), None);
        assert_eq!(decode_body(&[0; 15]), None);
    }
}
