//! Memory that messages live in: the lane's arena over heap memory or shared segments, depending on whom it is for, and lent
//! buffers with their types.

mod handed;
mod lent;
mod share;

pub(crate) use handed::{Buffer, HandedTicket, Holding, Lease, Made, Tables};
pub use lent::{Borrowed, Lent, LentBuffer};
pub(crate) use mizzen_lane::{Ending, Loan, LoanTicket, Place, Purpose, SlabId};
pub(crate) use share::{Arena, Block, Borrower, Memory, Shared, lender};
