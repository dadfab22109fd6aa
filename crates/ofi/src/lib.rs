//! The libfabric driver of Mizzen.
//!
//! [`OfiDriver`] implements [`Driver`](mizzen_driver::Driver) over the reliable unconnected endpoints of
//! libfabric, which is loaded at run time: a machine without it gets [`OpenError::NoLibrary`]. Such
//! endpoints have no connections, no news of loss and no authentication, so the driver is given another
//! one that has, the bootstrap, and adds the fabric to each of its links.
//!
//! It does not block and has no thread. It does not encrypt: a fabric is as safe as its network.
//!
//! | file | subject |
//! |---|---|
//! | `driver` | the driver: what it holds, and its calls |
//! | `poll`, `report`, `pending` | its poll loop: what arrives and goes on; what is reported, and the end of links |
//! | `greeting`, `heard`, `hello` | links begin and end with the bootstrap |
//! | `link`, `outgoing`, `incoming` | an open link and its two halves |
//! | `bodies` | bodies, from memory to memory |
//! | `message` | what travels through the fabric |
//! | `port`, `pool` | an endpoint for messages, and its buffers |
//! | `ports`, `renewal`, `patience` | which of them a link uses, when one is replaced, and how long it may take to connect |
//! | `registration` | memory that the fabric may use |
//! | `endpoint`, `domain`, `info`, `library`, `sys` | libfabric: its objects, offers, functions and declarations |
//! | `random`, `options` | what the name says |

mod bodies;
mod domain;
mod driver;
mod endpoint;
mod greeting;
mod heard;
mod hello;
mod incoming;
mod info;
mod library;
mod link;
mod message;
mod options;
mod outgoing;
mod patience;
mod pending;
mod poll;
mod pool;
mod port;
mod ports;
mod random;
mod registration;
mod renewal;
mod report;
#[cfg(test)]
mod strangers;
mod sys;

pub use driver::OfiDriver;
pub use info::{ProviderInfo, providers};
pub use library::{Version, version};
pub use options::{OfiOptions, OpenError};
