//! The contract of a network driver, a simulated network, and the conformance suite.
//!
//! A driver is one process's attachment to one network. It moves two things: *frames*, short and
//! unasked, and *bodies*, long and only into memory that the receiver named beforehand. It never
//! blocks and never spawns a thread. [`Driver`] states the contract as a numbered list.
//!
//! This crate holds the contract and what checks it. It knows no protocol: a layer above decides
//! what goes in a frame and which bodies to ask for.
//!
//! - [`sim`] is a network in memory: seeded, deterministic, with delays, back-pressure and cuts.
//! - [`mod@conformance`] is the contract as tests. A driver is supported when all of them pass;
//!   [`conformance!`] instantiates them in a few lines.

pub mod conformance;
pub mod sim;

mod caps;
mod driver;
mod error;
mod event;
mod id;
mod part;
mod wakeup;

pub use caps::Caps;
pub use driver::Driver;
pub use error::{ConnectError, DriverError, Refused};
pub use event::{ConnectFailure, Event, LossReason, Way};
pub use id::{BodyId, Locator, LocatorError, PeerId};
pub use part::{Gather, Part, PartMut, Scatter};
pub use wakeup::{Wakeup, are_quiet};
