//! The mailbox: the receiving end, with one owner.
//!
//! | file | subject |
//! | --- | --- |
//! | `look` | where it looks for messages: all of them, or those of one rank |
//! | `state` | what it consists of, and its life |
//! | `waiting` | one wait of a thread |
//! | `retrieve` | retrieving with a thread that waits, and without waiting |
//! | `asynchronous` | retrieving as a task |
//! | `from` | retrieving what one rank sent |
//! | `select` | waiting for several mailboxes |
//! | `post_receive`, `lent_receive`, `posted` | memory that is given before the message comes |
//! | `led` | a message with a lead, copied out of its lane |
//! | `lonely` | waiting when nobody is left |
//! | `descriptor` | for those who wait by `poll` or `epoll` |

mod asynchronous;
mod descriptor;
mod from;
mod led;
mod lent_receive;
mod lonely;
mod look;
mod post_receive;
mod posted;
mod retrieve;
mod select;
mod state;
mod waiting;

pub use self::descriptor::Descriptor;
pub use self::led::Led;
pub use self::look::Taken;
pub(crate) use self::posted::{PostedLent, Whose};
pub use self::posted::{Receive, Received};
pub use self::retrieve::Next;
pub use self::select::{Select, select};
pub use self::state::Mailbox;
