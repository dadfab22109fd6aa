//! Links through memory: what this process shares with one peer that is a thread of it, or a process of the same host.
//!
//! | file | subject |
//! | --- | --- |
//! | `fate` | whether the peer is still there |
//! | `channel` | how both sides talk about their link |
//! | `counts` | what is counted of it |
//! | `behind` | routes to the peer's mailboxes, and what waits for room |
//! | `memory` | the link itself: lanes, watches, credits |
//! | `moving_on` | posting what found no room before |
//! | `turns` | operations that wait among them, and go when it is their turn |
//! | `backlog` | messages that found no room, of one place |
//! | `owners` | owners of buffers that others handed on |
//! | `lane_out` | the sending end of a sender's own lane |
//! | `mailbox_lane` | the sending end of the lane of a mailbox of this OS process |
//! | `pulling`, `pausing` | whether one is read where its sender has it: the reader's side, the sender's |
//! | `reading` | a long message that is read while its sender still writes it |

mod backlog;
mod behind;
mod channel;
mod counts;
mod fate;
mod lane_out;
mod mailbox_lane;
mod memory;
mod moving_on;
mod owners;
mod pausing;
mod pulling;
mod reading;
mod turns;

pub(crate) use backlog::{ALLOWANCE, Backlog, LONGEST_TO_WAIT, Queued, Turn, Waiting};
pub(crate) use behind::{LaneBehind, Route};
pub(crate) use channel::{Channel, Disconnected, LaneEnd, OpenLane, SENDER_LANE, SHARED_LANE};
pub(crate) use fate::Fate;
pub(crate) use lane_out::{LaneOut, try_send};
pub(crate) use mailbox_lane::{Ending, MailboxLane};
pub(crate) use memory::{Account, Inbound, MailboxNotice, MemoryLink, Parts, WINDOW};
pub(crate) use owners::Owners;
pub(crate) use reading::Stream;
