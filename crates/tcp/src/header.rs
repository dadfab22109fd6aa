//! What goes before each frame and each piece of a body.
//!
//! Sixteen bytes, little-endian: kind, three of zero, length, body. Nothing of it is used before
//! [`Header::decode`] has found it well-formed.

use mizzen_driver::BodyId;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// What follows a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Header {
    /// A frame of this length.
    Frame { len: usize },
    /// A piece of a body.
    Piece {
        body: BodyId,
        len: usize,
        last: Last,
        asked: Asked,
    },
}

/// Whether the receiver asked for a body before it was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// It did: the body has a place.
    For,
    /// It may not have: the body waits for its place.
    Perhaps,
}

/// Whether a piece is the last of its body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Last {
    Yes,
    No,
}

impl Header {
    pub(crate) const LEN: usize = size_of::<Wire>();

    pub(crate) fn encode(self) -> [u8; Self::LEN] {
        let (kind, len, body) = match self {
            Self::Frame { len } => (FRAME, len, 0),
            Self::Piece {
                body,
                len,
                last,
                asked,
            } => {
                let kind = match (asked, last) {
                    (Asked::For, Last::No) => PIECE,
                    (Asked::For, Last::Yes) => LAST_PIECE,
                    (Asked::Perhaps, Last::No) => PUSHED_PIECE,
                    (Asked::Perhaps, Last::Yes) => LAST_PUSHED_PIECE,
                };
                (kind, len, body.0)
            }
        };
        assert!(
            len <= Self::max_len(kind),
            "a length that the other end would refuse"
        );
        let wire = Wire {
            kind,
            zero: [0; 3],
            len: U32::new(len as u32),
            body: U64::new(body),
        };
        zerocopy::transmute!(wire)
    }

    /// Reads a header that a peer sent.
    pub(crate) fn decode(bytes: &[u8; Self::LEN]) -> Result<Self, &'static str> {
        let wire: &Wire = zerocopy::transmute_ref!(bytes);
        let (len, body) = (wire.len.get() as usize, wire.body.get());
        if wire.zero != [0; 3] {
            return Err("bytes of a header that must be zero are not");
        }
        if len > Self::max_len(wire.kind) {
            return Err("a length beyond its bound");
        }
        let (asked, last) = match wire.kind {
            FRAME if body != 0 => return Err("a frame that claims to be of a body"),
            FRAME => return Ok(Self::Frame { len }),
            PIECE => (Asked::For, Last::No),
            LAST_PIECE => (Asked::For, Last::Yes),
            PUSHED_PIECE => (Asked::Perhaps, Last::No),
            LAST_PUSHED_PIECE => (Asked::Perhaps, Last::Yes),
            _ => return Err("a header of unknown kind"),
        };
        Ok(Self::Piece {
            body: BodyId(body),
            len,
            last,
            asked,
        })
    }

    fn max_len(kind: u8) -> usize {
        if kind == FRAME { MAX_FRAME } else { MAX_PIECE }
    }
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Wire {
    kind: u8,
    zero: [u8; 3],
    len: U32,
    body: U64,
}

/// The longest frame: as long as a copy is cheaper than asking first.
pub(crate) const MAX_FRAME: usize = 128 * 1024;
/// The longest piece of a body: a frame behind one waits 0.2 ms at 10 Gb/s, and the header costs nothing.
pub(crate) const MAX_PIECE: usize = 256 * 1024;

const FRAME: u8 = 1;
const PIECE: u8 = 2;
const LAST_PIECE: u8 = 3;
const PUSHED_PIECE: u8 = 4;
const LAST_PUSHED_PIECE: u8 = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_as_it_was_written() {
        let body = BodyId(0x0102_0304_0506_0708);
        for header in [
            Header::Frame { len: 0 },
            Header::Frame { len: MAX_FRAME },
            Header::Piece {
                body,
                len: 1,
                last: Last::No,
                asked: Asked::For,
            },
            Header::Piece {
                body,
                len: 2,
                last: Last::No,
                asked: Asked::Perhaps,
            },
            Header::Piece {
                body,
                len: MAX_PIECE,
                last: Last::Yes,
                asked: Asked::Perhaps,
            },
        ] {
            assert_eq!(Header::decode(&header.encode()), Ok(header));
        }
    }

    #[test]
    fn the_layout_is_little_endian() {
        let header = Header::Piece {
            body: BodyId(0x0102),
            len: 0x0304,
            last: Last::Yes,
            asked: Asked::For,
        };
        assert_eq!(
            header.encode(),
            [3, 0, 0, 0, 4, 3, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0]
        );
    }

    #[test]
    fn malformed_headers_are_refused() {
        let good = Header::Frame { len: 5 }.encode();
        for (index, value) in [
            (0, 0),
            (0, 6),
            (0, 255),
            (1, 1),
            (3, 1),
            (6, 3),
            (7, 255),
            (8, 1),
            (15, 1),
        ] {
            let mut bytes = good;
            bytes[index] = value;
            assert!(Header::decode(&bytes).is_err(), "byte {index} = {value}");
        }
    }
}
