//! The byte layout of every header (docs/wire.md §3): little-endian, unaligned, without padding.

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct Hello {
    pub(super) kind: u8,
    pub(super) zero: [u8; 1],
    pub(super) version: U16,
    pub(super) window_messages: U32,
    pub(super) window_bytes: U64,
    pub(super) from: U64,
    pub(super) to: U64,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct Post {
    pub(super) kind: u8,
    pub(super) zero: [u8; 3],
    pub(super) stream: U32,
    pub(super) to: U64,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct Offer {
    pub(super) kind: u8,
    pub(super) zero: [u8; 3],
    pub(super) stream: U32,
    pub(super) to: U64,
    pub(super) offer: U64,
    pub(super) body_len: U64,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct Credit {
    pub(super) kind: u8,
    pub(super) zero: [u8; 3],
    pub(super) messages: U32,
    pub(super) to: U64,
    pub(super) bytes: U64,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct Pull {
    pub(super) kind: u8,
    pub(super) zero: [u8; 3],
    pub(super) len: U32,
    pub(super) offer: U64,
    pub(super) body: U64,
    pub(super) from: U64,
}

/// A kind without a field: bye.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct Bare {
    pub(super) kind: u8,
    pub(super) zero: [u8; 7],
}

/// A kind with one word: decline, retract, gone, returned, ping, pong.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct OneWord {
    pub(super) kind: u8,
    pub(super) zero: [u8; 7],
    pub(super) word: U64,
}

/// A kind with two words: accept.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct TwoWords {
    pub(super) kind: u8,
    pub(super) zero: [u8; 7],
    pub(super) words: [U64; 2],
}
