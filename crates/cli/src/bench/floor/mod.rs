//! The floors: what the bare machine needs for the same, without any runtime.
//!
//! Each is a [`Carrier`](super::carrier::Carrier) over memory that both sides map, or over a socket, and has no error to
//! report, no address to find and nobody else to serve.

pub(crate) mod copy;
pub(crate) mod futex;
pub(crate) mod line;
pub(crate) mod ring;
pub(crate) mod socket;
pub(crate) mod tls;
pub(crate) mod turns;
pub(crate) mod wire;
