//! What services are built from, besides mailboxes and messages: the workers, messages taken unopened, and locks.
//!
//! A service is a [`Source`] that the [`Workers`] of its process look at. It takes messages out of its mailbox
//! [unopened](Next), reads what it needs at the front of them, and lets a worker do the rest.

pub use crate::blocking::block_in_place;
pub use crate::caller::Caller;
pub use crate::counters::{Counted, Counter, Rows, summary};
pub use crate::lock::{lock, lock_patiently, try_lock};
pub use crate::looks::quick_looks;
pub use crate::mailbox::{Led, Next, Taken};
pub use crate::memory::{Buffer, Lease};
pub use crate::message::Lead;
pub use crate::rank::{Address, MailboxId, SlateUse, reserved};
pub use crate::roll::{Kind, Operation, WaitsFor};
pub use crate::slate::{
    CoreSet, SLATE_WORDS, Shown, SlateNumber, Slates, TRAY_PLACE, TrayPlace, Waited, own_cores,
};
pub use crate::values::decode;
pub use crate::wait::{Noted, deadline_in};
pub use crate::workers::{
    Pace, Source, Worker, Workers, catch_panics, panic_message, step_aside, worker_count,
};
pub use mizzen_lane::SHORT_MAX;
pub use mizzen_lane::{Held, Latch};

/// The longest message that a process of the same host takes before its reader comes. A longer one is taken as it is read.
pub const LONGEST_UNREAD: usize = mizzen_lane::ALLOWANCE;
