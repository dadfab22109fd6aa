//! Plain data: types whose bytes are their value.

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
