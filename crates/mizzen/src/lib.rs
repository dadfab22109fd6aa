//! A runtime for parallel programs on clusters: threads, mailboxes, and messages packed piece by piece.
//!
//! A job is a set of processes, numbered from 0, which `mizzen run -n 4 -- program` starts. Each joins it with
//! [`Deck::join`]; its number is its [`Rank`]. In tests, [`local`] runs the ranks as threads of one process, so the programs on
//! this page run under plain `cargo test`.
//!
//! # Messages
//!
//! A process makes a [`Mailbox`], [binds](Deck::bind) it to a name, and others [fetch](Deck::fetch) its address, a
//! [`MailboxRef`], by that name or unpack it from a message. One address reaches a thread, a process of the same host, or
//! another host. A plain value is [sent](MailboxRef::send) and [received](Mailbox::receive) as it is, a serde value is
//! [encoded](MailboxRef::send_value), a [`Message`] has several pieces, and a [`Lent`] buffer is handed over without a copy.
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
//! # Services
//!
//! A [service](Deck::serve) is a function under a name, which any process calls through a [`Client`]. Arguments and results
//! are of any serde type, errors included.
//!
//! ```
//! mizzen::local(2, |deck| {
//!     let lengths = |word: String| word.len();
//!     let _service = (deck.rank() == 0).then(|| deck.serve("length", lengths)).transpose()?;
//!     let mut length = deck.client::<str, usize>("length")?;
//!     assert_eq!(length.call("mizzen")?, 6);
//!     // A service ends with its process: nobody leaves before all have finished.
//!     deck.finish()
//! }).unwrap();
//! ```
//!
//! # Tasks
//!
//! [`Deck::spawn`] runs a closure, and [`Deck::spawn_async`] a future, on the workers of this process, which look for messages
//! themselves. [`Deck::spawn_at`] starts a task that can [move](Migrate) in another process.
//!
//! ```
//! mizzen::local(1, |deck| {
//!     let mut inbox = deck.mailbox()?;
//!     let address = inbox.address();
//!     deck.spawn(move || address.send(&21u64));
//!     let doubled = deck.spawn_async(async move {
//!         let mut message = inbox.retrieve_async().await?;
//!         Ok::<u64, mizzen::Error>(2 * message.unpack_express::<u64>()?)
//!     });
//!     assert_eq!(doubled.join()??, 42);
//!     Ok(())
//! }).unwrap();
//! ```
//!
//! # Pool
//!
//! A [pool](Deck::pool) runs a function for many items on all processes of the job. Items of a process that dies are run
//! again elsewhere, and each result comes once.
//!
//! ```
//! let squares = mizzen::local(3, |deck| {
//!     let items = if deck.rank() == 0 { (0..100u64).collect() } else { Vec::new() };
//!     deck.pool().map(items, |x| x * x)
//! })?;
//! assert_eq!(squares[0][99], 99 * 99);
//! # Ok::<(), mizzen::Error>(())
//! ```
//!
//! # Groups
//!
//! All processes, some of them or threads of several do something [together](group): wait for each other, combine numbers, hand data
//! around.
//!
//! ```
//! use mizzen::group::Sum;
//!
//! mizzen::local(4, |deck| {
//!     let mut all = deck.group()?;
//!     assert_eq!(all.all_reduce_value(deck.rank().0, Sum)?, 6);
//!     all.barrier()
//! }).unwrap();
//! ```
//!
//! # Errors
//!
//! Waiting for a process that is gone is an error that names it ([`Error::lost`]), and so is a wait that nobody can end any
//! more. All operations have errors that become an [`Error`] with `?`; [`Error::scope`] says what is affected.

mod deck;
mod finish;
pub mod group;
mod local;
mod migration;
mod pool;
mod rpc;

pub use deck::Deck;
pub use finish::FinishError;
pub use group::{Group, GroupError};
pub use local::local;
#[doc(hidden)]
pub use local::{local_over_tcp, local_trusted, local_unlike};
pub use migration::{Migrate, RemoteTask, RemoteTaskError, Step};
#[cfg(feature = "crash-points")]
#[doc(hidden)]
pub use mizzen_core::crash;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub use mizzen_core::fuzzing;
#[doc(hidden)]
pub use mizzen_core::log;
pub use mizzen_core::service::block_in_place;
#[doc(hidden)]
pub use mizzen_core::wait;
pub use mizzen_core::{
    ArenaError, BindError, Borrowed, Channel, ChannelError, CounterRow, Departure, Descriptor,
    Error, ErrorScope, FetchError, Filled, FlushError, Gone, Incarnation, Incoming, JoinError,
    Later, Lent, LentBuffer, Mailbox, MailboxError, MailboxRef, Message, Pending, PendingReceive,
    Plain, PlainBytes, PostError, ProcessId, Rank, Ranks, ReachError, Receive, Received, Result,
    RetrieveError, Scope, Select, Semaphore, Sender, ServiceError, Task, TaskError, Topology,
    TopologyError, Transferred, UnpackError, select, zerocopy,
};
pub use pool::{Outcome, Pool, PoolError, Progress, Report};
pub use rpc::{Call, CallError, Client, RawClient, Reply, Request, Service, is_cancelled};

/// The programs of the README and of the pages in `docs/`, compiled and run with the doctests.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../../README.md")]
    struct Readme;

    #[doc = include_str!("../../../docs/coming-from-mpi.md")]
    struct ComingFromMpi;

    #[doc = include_str!("../../../docs/groups.md")]
    struct Groups;

    #[doc = include_str!("../../../docs/lending.md")]
    struct Lending;

    #[doc = include_str!("../../../docs/networks.md")]
    struct Networks;

    #[doc = include_str!("../../../docs/observing.md")]
    struct Observing;

    #[doc = include_str!("../../../docs/running.md")]
    struct Running;

    #[doc = include_str!("../../../docs/sending.md")]
    struct Sending;

    #[doc = include_str!("../../../docs/waiting.md")]
    struct Waiting;
}
