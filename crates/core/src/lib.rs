//! The core of Mizzen: mailboxes, messages, links through memory and over networks, waiting, workers.
//!
//! Programs use the crate `mizzen`, which shows these types again beside its services. A service of one's own is built
//! from what this crate exports: [`Endpoint`] is a process's place in its job, [`Mailbox`] and [`MailboxRef`] carry its
//! messages, and [`service`] holds what lets it work on the process's workers and take messages unopened.
//!
//! The modules have an order, and look down only: `ci/layers.order` says which.

mod address;
mod bells;
mod blocking;
#[cfg(not(feature = "crash-points"))]
mod crash;
#[cfg(feature = "crash-points")]
#[doc(hidden)]
pub mod crash;
mod delivery;
mod endpoint;
mod error;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
mod host;
mod incoming;
mod link;
mod links;
mod local;
mod lock;
mod mailbox;
mod mailboxes;
mod memory;
mod message;
mod names;
mod near;
mod net;
mod peers;
mod plain;
mod post;
mod process;
mod progress;
mod pump;
mod rank;
mod reactor;
mod scope;
mod semaphore;
mod sender;
pub mod service;
mod stream;
#[cfg(test)]
mod testing;
mod threads;
mod together;
#[doc(hidden)]
pub mod wait;
mod workers;

pub use address::MailboxRef;
pub use endpoint::{Endpoint, WeakEndpoint};
pub use error::{
    ArenaError, BindError, Departure, Error, FetchError, Gone, JoinError, MailboxError, PostError,
    ReachError, Result, RetrieveError, Scope as ErrorScope, ServiceError, UnpackError,
};
pub use incoming::Incoming;
pub use local::local;
#[doc(hidden)]
pub use local::local_over_tcp;
pub use mailbox::Mailbox;
pub use memory::{Borrowed, Lent};
pub use message::{Later, Message};
pub use plain::Plain;
pub use rank::{Incarnation, ProcessId, Rank};
pub use scope::{Pending, Scope};
pub use semaphore::Semaphore;
pub use sender::Sender;
pub use workers::Task;
pub use zerocopy;
