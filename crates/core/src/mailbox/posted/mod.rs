//! Posted receives: memory that is given before the message comes.
//!
//! While any are posted, the places of the mailbox (`look.rs`) are in its [`Exchange`], so that any thread may look: the one that
//! waits for a receive, the reactor for tasks, the owner for what is left. They go back to the owner when nothing is posted.
//!
//! | file | subject |
//! | --- | --- |
//! | `memory` | the memory, whatever it holds |
//! | `slot` | one receive: posted, matched, being filled, done |
//! | `board` | which receive gets a message |
//! | `exchange` | where receives and messages meet |
//! | `owner` | what the owner of the mailbox sees of it |
//! | `thread` | waiting with a thread |
//! | `receive` | what the user holds |
//! | `lent` | one into borrowed memory |

mod board;
mod exchange;
mod lent;
mod memory;
mod owner;
mod receive;
mod slot;
mod thread;

pub(super) use self::exchange::Exchange;
pub(crate) use self::lent::{LentReceive, PostedLent};
pub use self::receive::{Receive, Received};
pub(super) use self::slot::Waiter;
pub(crate) use self::slot::Whose;
