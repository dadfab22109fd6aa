//! Messages: packed piece by piece, unpacked piece by piece.
//!
//! [`Message`] is the sending side, [`Incoming`] the receiving side. Each piece carries its length, so a
//! mismatched unpack is an error and nobody on the way needs to know types. Madeleine's modes are kept, and the
//! compiler checks what used to be prose:
//!
//! | mode | meaning | here |
//! | --- | --- | --- |
//! | safer | copied now; the source may change at once | [`Message::pack_safer`] |
//! | cheaper | the source stays unchanged until the message is sent | [`Message::pack_cheaper`] |
//! | later | read when the message is sent | [`Message::pack_later`] |
//! | express | there when unpack returns | [`Incoming::unpack_express`] |
//! | cheaper (receiving) | there after `finish` | [`Incoming::unpack_cheaper`] |
//!
//! A piece knows whether it is plain data or a serde value, and is unpacked as what it is. In debug builds a value that was
//! sent with `send` also knows which number it is: a `u64` received as `f64` is an error there.
//!
//! Packing and unpacking only record; memory is read in `post` and written in `finish`. Leaking a message is harmless.

mod incoming;
mod mark;
mod offered;
mod outgoing;
mod payload;
mod pieces;
mod stream;

pub use incoming::Incoming;
pub(crate) use incoming::discard;
pub(crate) use mark::Mark;
pub(crate) use outgoing::{Encoded, Lead, Single};
pub use outgoing::{Later, Message};
pub(crate) use payload::Payload;
pub(crate) use pieces::Flags;
pub(crate) use stream::Stream;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Plain data: types whose bytes are their value, such as numbers, arrays of them and `#[repr(C)]` structures without
/// padding. Derive zerocopy's `FromBytes`, `IntoBytes`, `Immutable` and `KnownLayout` for your own.
///
/// ```
/// use mizzen::Message;
/// let mut message = Message::new();
/// message.pack_safer(&42u64).pack_safer(&[1.0f32, 2.0]);
/// assert_eq!(message.pieces(), 2);
/// ```
pub trait Plain: FromBytes + IntoBytes + Immutable + KnownLayout {}

impl<T: FromBytes + IntoBytes + Immutable + KnownLayout + ?Sized> Plain for T {}
