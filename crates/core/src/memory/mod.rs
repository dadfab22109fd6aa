//! Memory that messages live in: the lane's arena over heap memory or shared segments, depending on whom it is for, and lent
//! buffers with their types.

mod handed;
mod lent;
mod share;
mod spare;

pub use handed::{Buffer, Lease};
pub(crate) use handed::{HandedTicket, Holding, Made, Tables};
pub use lent::{Borrowed, Lent, LentBuffer};
pub(crate) use mizzen_lane::{Ending, Loan, LoanTicket, Place, Purpose, SlabId};
pub(crate) use share::{Arena, Block, Borrower, Memory, Shared, lender};
pub(crate) use spare::{SPARE, Spare};
