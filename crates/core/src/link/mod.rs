//! Links through memory: what this process shares with one peer that is a thread of it, or a process of the same host.
//!
//! | file | subject |
//! | --- | --- |
//! | `fate` | whether the peer is still there |
//! | `channel` | how both sides talk about their link |
//! | `chunks` | memory of long messages on their way to the peer |
//! | `memory` | the link itself: lanes, watches, routes, credits |
//! | `reading` | a long message that is read while its sender still writes it |

mod channel;
mod chunks;
mod fate;
mod memory;
mod reading;

pub(crate) use channel::{Channel, Hangup, LaneEnd, OpenLane, SENDER_LANE, SHARED_LANE};
pub(crate) use chunks::{Out, StreamOut};
pub(crate) use fate::Fate;
pub(crate) use memory::{Account, Inbound, MemoryLink, News, Parts, Route, WINDOW};
pub(crate) use reading::Stream;
