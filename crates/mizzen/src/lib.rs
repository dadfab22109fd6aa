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

mod deck;
mod finish;
mod local;
mod mobile;
mod pool;
mod rpc;

pub use deck::Deck;
pub use finish::FinishError;
pub use local::local;
#[doc(hidden)]
pub use local::local_over_tcp;
#[cfg(feature = "crash-points")]
#[doc(hidden)]
pub use mizzen_core::crash;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub use mizzen_core::fuzzing;
#[doc(hidden)]
pub use mizzen_core::wait;
pub use mizzen_core::{
    ArenaError, BindError, Borrowed, Departure, Error, ErrorScope, FetchError, Gone, Incarnation,
    Incoming, JoinError, Later, Lent, Mailbox, MailboxError, MailboxRef, Message, Pending, Plain,
    PostError, ProcessId, Rank, ReachError, Result, RetrieveError, Scope, Semaphore, Sender,
    ServiceError, Task, UnpackError, zerocopy,
};
pub use mobile::{Journey, JourneyError, Mobile, Step};
pub use pool::{Outcome, Pool, PoolError, Report};
pub use rpc::{Call, CallError, Client, Reply, Request, Service, is_cancelled};
