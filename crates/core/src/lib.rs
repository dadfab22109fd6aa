//! The core of Mizzen: mailboxes, messages, links through memory and over networks, waiting, workers.
//!
//! Programs use the crate `mizzen`, which re-exports these types beside its services. A new service is built from what
//! this crate exports: [`Endpoint`] is a process's place in its job, [`Mailbox`] and [`MailboxRef`] carry its
//! messages, and [`service`] holds what lets it work on the process's workers and take messages unopened.
//!
//! The modules are in an order, and each uses only those below it: see `ci/layers.order`.

mod address;
mod bells;
mod blocking;
mod caller;
mod channel;
mod counters;
#[cfg(not(feature = "crash-points"))]
mod crash;
#[cfg(feature = "crash-points")]
#[doc(hidden)]
pub mod crash;
mod delivery;
mod desk;
mod endpoint;
mod error;
mod few;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
mod handing;
mod host;
mod incoming;
mod link;
mod links;
mod local;
mod lock;
#[doc(hidden)]
pub mod log;
mod looks;
mod mailbox;
mod mailboxes;
mod memory;
mod message;
mod names;
mod net;
mod operations;
mod peers;
mod plain;
mod post;
mod post_steps;
mod posting;
mod process;
mod progress;
mod pump;
mod rank;
mod reactor;
mod roll;
mod scope;
mod semaphore;
mod sender;
pub mod service;
mod slate;
mod standing;
mod stream;
#[cfg(test)]
mod testing;
mod threads;
mod together;
pub mod topology;
mod values;
mod verdicts;
#[doc(hidden)]
pub mod wait;
mod workers;

pub use address::MailboxRef;
pub use channel::Channel;
pub use counters::CounterRow;
pub use endpoint::{Endpoint, WeakEndpoint};
pub use error::{
    ArenaError, BindError, ChannelError, Departure, Error, FetchError, FlushError, Gone, JoinError,
    MailboxError, PostError, ReachError, Result, RetrieveError, Scope as ErrorScope, ServiceError,
    TaskError, TopologyError, UnpackError,
};
pub use incoming::Incoming;
pub use local::local;
#[doc(hidden)]
pub use local::{local_over_tcp, local_trusted, local_unlike};
pub use mailbox::{Descriptor, Mailbox, Receive, Received, Select, select};
pub use memory::{Borrowed, Lent, LentBuffer};
pub use message::{Later, Message};
pub use plain::{Plain, PlainBytes};
pub use rank::{Incarnation, ProcessId, Rank, Ranks};
pub use scope::{Filled, Pending, PendingReceive, Scope, Transferred, scope};
pub use semaphore::Semaphore;
pub use sender::Sender;
pub use topology::Topology;
pub use workers::Task;
pub use zerocopy;
