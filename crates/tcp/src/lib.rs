//! The TCP driver of Mizzen.
//!
//! [`TcpDriver`] implements [`Driver`](mizzen_driver::Driver) over one TCP connection for each peer. It
//! does not block, has no thread, and holds memory for what is in flight only: an idle connection has no
//! buffer. It authenticates peers by a job token before it allocates anything for them; it does not
//! encrypt.
//!
//! | file | subject |
//! |---|---|
//! | `driver` | the driver: its calls and its poll loop |
//! | `admission` | who gets a link: dials, strangers, both at once |
//! | `handshake` | the hello that each end says |
//! | `connection`, `send`, `receive` | an open link and its two halves |
//! | `wire` | the bytes of a connection |
//! | `header` | what goes before each frame and each piece of a body |
//! | `liveness` | whether the other end still answers |
//! | `slots`, `queue`, `poller`, `listener`, `addresses`, `options` | what the name says |

mod addresses;
mod admission;
mod connection;
mod driver;
mod handshake;
mod header;
mod listener;
mod liveness;
mod options;
mod poller;
mod queue;
mod receive;
mod send;
mod slots;
mod wire;

pub use driver::TcpDriver;
pub use options::{OpenError, TcpOptions, Token};
