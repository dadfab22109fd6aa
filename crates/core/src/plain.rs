//! Plain data: types whose bytes are their value.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Plain data that can be received: types whose bytes are their value, such as numbers, arrays of them and `#[repr(C)]`
/// structures without padding. Derive zerocopy's `FromBytes`, `IntoBytes`, `Immutable` and `KnownLayout` for your own.
///
/// ```
/// use mizzen::zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};
///
/// #[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
/// #[zerocopy(crate = "mizzen::zerocopy")]
/// #[repr(C)]
/// struct Particle {
///     position: [f64; 3],
///     mass: f64,
/// }
///
/// mizzen::local(1, |deck| {
///     let inbox = deck.mailbox()?;
///     inbox.address().send(&Particle { position: [1.0; 3], mass: 2.0 })?;
///     assert_eq!(inbox.receive::<Particle>()?.mass, 2.0);
///     Ok(())
/// }).unwrap();
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not plain data, so it cannot be received or unpacked as it is",
    label = "not plain data",
    note = "a type with serde's `Deserialize`, such as a `String`, a tuple or a structure with a `Vec`: send it with `send_value`, receive it with `receive_value`",
    note = "a `Vec<T>` of numbers: send `&values[..]`, receive it with `receive_vec::<T>()`",
    note = "a structure of your own: make it `#[repr(C)]` without padding, and derive `FromBytes`, `IntoBytes`, `Immutable` and `KnownLayout` of `mizzen::zerocopy`"
)]
pub trait Plain: FromBytes + IntoBytes + Immutable + KnownLayout {}

#[diagnostic::do_not_recommend]
impl<T: FromBytes + IntoBytes + Immutable + KnownLayout + ?Sized> Plain for T {}

/// Plain data that can be sent: what has bytes and nothing else, also slices of it.
///
/// ```
/// mizzen::local(1, |deck| {
///     let inbox = deck.mailbox()?;
///     inbox.address().send(&[1.5f64, 2.5][..])?;
///     assert_eq!(inbox.receive_vec::<f64>()?, [1.5, 2.5]);
///     Ok(())
/// }).unwrap();
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not plain data, so its bytes cannot be sent as they are",
    label = "not plain data",
    note = "a type with serde's `Serialize`, such as a `String`, a tuple or a structure with a `Vec`: send it with `send_value`, receive it with `receive_value`",
    note = "a `Vec<T>` of numbers: send `&values[..]`, receive it with `receive_vec::<T>()`",
    note = "a structure of your own: make it `#[repr(C)]` without padding, and derive `FromBytes`, `IntoBytes`, `Immutable` and `KnownLayout` of `mizzen::zerocopy`"
)]
pub trait PlainBytes: IntoBytes + Immutable {}

#[diagnostic::do_not_recommend]
impl<T: IntoBytes + Immutable + ?Sized> PlainBytes for T {}
