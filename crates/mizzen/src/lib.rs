//! A runtime for parallel programs on clusters: threads, mailboxes, and messages packed piece by piece.
//!
//! A job is a set of processes, numbered from 0, started by `mizzen run`. Each joins with [`Deck::join`], makes a
//! [`Mailbox`], [binds](Deck::bind) it to a name, and posts [`Message`]s to the mailboxes of others through
//! [`MailboxRef`]s, which it [fetches](Deck::fetch) by name or unpacks from messages. One address reaches a thread, a
//! process of the host, or another host.
//!
//! ```
//! use mizzen::Deck;
//!
//! fn main() -> mizzen::Result<()> {
//!     let deck = Deck::join()?;
//!     if deck.rank() == 0 {
//!         let inbox = deck.mailbox()?;
//!         deck.bind("sum", &inbox)?;
//!         let total: u64 = (1..deck.size()).map(|_| inbox.receive::<u64>()).sum::<mizzen::Result<_>>()?;
//!         println!("total {total}");
//!     } else {
//!         deck.fetch("sum")?.send(&u64::from(deck.rank()))?;
//!     }
//!     Ok(())
//! }
//! ```
//!
//! [`local`] runs the same program with ranks as threads, under plain `cargo test`.

mod address;
#[doc(hidden)]
pub mod crash;
mod deck;
mod error;
mod finish;
#[doc(hidden)]
pub mod fuzzing;
mod host;
mod local;
mod lock;
mod mailbox;
mod memory;
mod message;
mod mobile;
mod net;
mod pool;
mod process;
mod rank;
mod reactor;
mod rpc;
mod scope;
mod semaphore;
mod sender;
mod tasks;
#[doc(hidden)]
pub mod wait;

pub use address::MailboxRef;
pub use deck::Deck;
pub use error::{
    ArenaError, BindError, Departure, Error, FetchError, Gone, JoinError, MailboxError, PostError,
    ReachError, Result, RetrieveError, Scope as ErrorScope, UnpackError,
};
pub use finish::FinishError;
pub use local::local;
#[doc(hidden)]
pub use local::local_over_tcp;
pub use mailbox::Mailbox;
pub use memory::{Borrowed, Lent};
pub use message::{Incoming, Later, Message, Plain};
pub use mobile::{Journey, JourneyError, Mobile, Step};
pub use pool::{Outcome, Pool, PoolError, Report};
pub use rank::{Incarnation, ProcessId, Rank};
pub use rpc::{Call, CallError, Client, Reply, Request, Service, is_cancelled};
pub use scope::{Pending, Scope};
pub use semaphore::Semaphore;
pub use sender::Sender;
pub use tasks::Task;
pub use zerocopy;
