//! Memory that messages live in: the lane's arena over heap memory or shared segments, depending on whom it is for, and lent
//! buffers with their types.

mod lent;
mod share;

pub use lent::{Borrowed, Lent};
pub(crate) use mizzen_lane::{Loan, LoanTicket, Purpose, SlabId};
pub(crate) use share::{Arena, Block, Borrower, Memory, Shared, lender};
