//! Memory that messages live in: the arena that lent buffers and long messages are made in, and regions that are heap
//! memory or shared segments depending on whom they are for.

mod arena;
mod buddy;
mod lent;
mod manifest;
mod share;
mod ticket;

pub(crate) use arena::{Arena, Purpose, Reserved, SlabId};
pub use lent::{Borrowed, Lent};
pub(crate) use lent::{LentBytes, Loan};
pub(crate) use manifest::{CHUNK, Manifest};
pub(crate) use share::{Memory, Shared};
pub(crate) use ticket::LoanTicket;
