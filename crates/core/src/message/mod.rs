//! Messages: packed piece by piece, unpacked piece by piece.
//!
//! [`Message`] is the sending side, [`Incoming`](crate::Incoming) the receiving side. Each piece carries its length, so a
//! mismatched unpack is an error and nobody on the way needs to know types. Madeleine's modes are kept, and the
//! compiler checks what used to be prose:
//!
//! | mode | meaning | here |
//! | --- | --- | --- |
//! | safer | copied now; the source may change at once | [`Message::pack_safer`] |
//! | cheaper | the source stays unchanged until the message is sent | [`Message::pack_cheaper`] |
//! | later | read when the message is sent | [`Message::pack_later`] |
//! | express | there when unpack returns | [`crate::Incoming::unpack_express`] |
//! | cheaper (receiving) | there after `finish` | [`crate::Incoming::unpack_cheaper`] |
//!
//! A piece knows whether it is plain data or a serde value, and is unpacked as what it is. In debug builds a value that was
//! sent with `send` also knows which number it is: a `u64` received as `f64` is an error there.
//!
//! Packing and unpacking only record; memory is read in `post` and written in `finish`. Leaking a message is harmless.

pub(crate) mod form;
mod mark;
mod outgoing;
mod payload;
mod pieces;
mod table;
mod tickets;

pub(crate) use mark::Mark;
pub(crate) use outgoing::{Encoded, LED_MAX, LentPiece, Outgoing, Single};
pub use outgoing::{Later, Lead, Message};
pub(crate) use payload::{Offered, Payload, Streaming};
pub(crate) use pieces::{Entry, Flags, Kind, MAX_PIECES, VARINT_MAX, read_varint};
pub(crate) use table::Table;
pub(crate) use tickets::{AnyTicket, any_ticket_at, is_ticket_len, lent_tickets, ticket_at};
