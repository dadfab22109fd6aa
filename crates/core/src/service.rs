//! What services are built from, besides mailboxes and messages: the workers, messages taken unopened, and locks.
//!
//! A service is a [`Source`] that the [`Workers`](Crew) of its process look at. It takes messages out of its mailbox
//! [unopened](Next), reads what it must at the front of them, and lets a worker do the rest.

pub use crate::blocking::without_place;
pub use crate::lock::{lock, lock_patiently, try_lock};
pub use crate::mailbox::{Next, Taken};
pub use crate::message::Lead;
pub use crate::rank::{Address, FIRST_MAILBOX, MailboxId};
pub use crate::wait::deadline_in;
pub use crate::workers::{Crew, Pace, Source, Worker, catch_panics, places, step_aside};
pub use mizzen_lane::SHORT_MAX;

/// The longest message that goes from process to process on one host.
pub const LONGEST_MESSAGE: usize = crate::memory::Arena::LONGEST_MESSAGE;
