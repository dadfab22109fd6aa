//! The TCP driver of Mizzen.
//!
//! [`TcpDriver`] implements [`Driver`](mizzen_driver::Driver) over one TCP connection for each peer. It
//! does not block, has no thread, and holds memory only for what is in flight: an idle connection has no
//! buffer. Both ends of a link prove who they are by mutual TLS 1.3 before anything else; what follows is sealed, unless the
//! network was declared trusted.
//!
//! | file | subject |
//! |---|---|
//! | `driver` | the driver: its calls and its poll loop |
//! | `admission`, `dial` | who gets a link: dials, strangers, both at once |
//! | `security`, `session` | who is believed; TLS on one connection |
//! | `handshake` | the hello that each end says |
//! | `connection`, `send`, `receive` | an open link and its two halves |
//! | `wire` | the bytes of a connection |
//! | `header` | what goes before each frame and each piece of a body |
//! | `far` | how connections over long ways are set up |
//! | `through` | dialling through a proxy |
//! | `liveness`, `knock` | whether the other end still answers; how a host that does not is found again |
//! | `slots`, `queue`, `poller`, `listener`, `addresses`, `options` | what the name says |

mod addresses;
mod admission;
mod connection;
mod dial;
mod driver;
mod far;
#[doc(hidden)]
pub mod fuzzing;
mod handshake;
mod header;
mod knock;
mod listener;
mod liveness;
mod options;
mod poller;
mod queue;
mod receive;
mod security;
mod send;
mod session;
mod slots;
mod through;
mod wire;

pub use addresses::{Interface, interfaces};
pub use driver::TcpDriver;
pub use far::Far;
pub use liveness::{Pulse, pulse};
pub use options::{OpenError, TcpOptions};
pub use security::{Identify, Records, Security};
pub use through::{Answer, MAX_REASON, Through};
