//! What a gateway does with what is not for it: hands it on, in bounded memory, without ever getting stuck.
//!
//! Messages between hosts that share no network travel as *fragments* of at most [`FRAGMENT`] bytes, cut at their origin. A gateway hands each on as soon as
//! it has it, from the buffer in which it came. It sees where a fragment goes, its flow and its length, and nothing of what is in it. Only the
//! ends put things in order, and see to it that each arrives once; so a gateway may drop, and holds nothing whose loss matters.
//!
//! # Why it cannot get stuck
//!
//! A fragment carries how many gateways it has passed, its *hop*. A gateway reserves memory for each link before it lets anybody send there: some
//! bytes that are *shared*, and one buffer for each hop that can occur, the *escapes*. A fragment goes over a link against shared bytes, or
//! against the escape of the hop that it will have there; neither, and it waits. Take the fragment with the highest hop of all that wait anywhere: its
//! next stop is its end, which takes it at once, because it granted it before it was sent; or the escape of the next hop, which only a
//! fragment of that hop could hold, and there is none. So something always moves, and no hop is above [`MAX_HOPS`].
//!
//! The shared bytes make it fast, the escapes make it safe. Every reservation is real: all links together reserve no more than the pool, so
//! every connection can be read at any time.
//!
//! # Long ways
//!
//! Nobody measures how long a way is. Who waits for a grant says so; if what was granted does not lie at the other end, it is on its way, and the way is too long
//! for it: then there is twice as much from now on. So it is soon four thirds of what is under way at full speed, and stays small where the way is short, or where
//! something else is slow. Circuits do the same from end to end.
//!
//! # Turns
//!
//! On each outgoing link jobs take turns, and the flows of a job, by bytes ([`Turns`]). What is taken out of turn is what goes into an escape.
//!
//! | module | subject |
//! | --- | --- |
//! | `heading` | what a gateway sees of a fragment |
//! | `credit` | what a link may carry: reserved, granted, used |
//! | `turns` | who is next on a link |
//! | `gateway` | the machine of a gateway |
//! | `frames` | what goes over the links of gateways, as bytes |
//! | `cover` | what is around that where the ends seal |
//! | `circuit` | one end of what two processes have with each other through gateways |

mod circuit;
mod cover;
mod credit;
mod frames;
mod gateway;
mod heading;
mod turns;

pub use circuit::{Broken, Circuit, GAP, KEEP_ALIVE, MOST_WINDOW, REMIND, SILENT, TAIL, Turn};
pub use cover::{COVER, Cover};
pub use credit::{Credit, Grant, Lane, MOST_SHARED, Overdrawn, Reserve};
pub use frames::{
    BLOCKED, Contents, FRAGMENT_HEADER, FRAME_HEADER, FragmentHeader, GRANT, Malformed,
    PIECE_HEADER, PieceHeader, Progress, RelayFrame, Route, Said, WORD, Word, blocked_bytes,
    grant_bytes,
};
pub use gateway::{Action, Fate, Full, Gateway, LinkId, Peer, STALL, Tally};
pub use heading::{FlowId, Heading, Slot};
pub use turns::Turns;

#[cfg(doc)]
use crate::route::{FRAGMENT, MAX_HOPS};
