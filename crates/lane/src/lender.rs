//! A peer as the lender of blocks: what it has lent to us, and how we give it back.
#![allow(unsafe_code)]

use crate::emptying::StreamIn;
use crate::loan::{Loan, LoanTicket};
use crate::region::Region;
use crate::returns::Returns;

/// A peer whose blocks we borrow.
#[derive(Debug)]
pub struct Lender {
    /// In memory of ours: where we give its blocks back.
    returns: Returns,
}

impl Lender {
    /// The peer that reads in `returns` what we give back.
    ///
    /// # Safety
    ///
    /// If the lender is an arena of this process: all tickets that are used here, to borrow or to give back, came from it, for
    /// blocks that it has handed over to us or announced and not withdrawn, and each is used once. All regions are the slabs
    /// of that arena that the tickets name. `returns` is the table by which that arena's [`Borrower`](crate::Borrower) for us is
    /// made, and of no other lender, and nobody else writes it.
    ///
    /// Nothing need be promised of lenders in other processes: their memory is read as foreign.
    #[must_use]
    pub unsafe fn new(returns: Returns) -> Self {
        Self { returns }
    }

    /// The block that `ticket` describes in `region`. `None` if it does not lie inside.
    #[must_use]
    pub fn borrow(&self, region: Region, ticket: LoanTicket) -> Option<Loan> {
        // SAFETY: as was promised to `new`.
        unsafe { Loan::new(region, ticket, self.returns.clone()) }
    }

    /// The message that `ticket` announced, with its manifest in `region`. `None` if the ticket
    /// makes no sense.
    #[must_use]
    pub fn open(&self, region: Region, ticket: LoanTicket) -> Option<StreamIn> {
        // SAFETY: as was promised to `new`.
        unsafe { StreamIn::open(region, ticket, self.returns.clone()) }
    }

    /// Gives back a block that nobody will read here.
    pub fn give_back(&self, ticket: LoanTicket) {
        self.returns.give_back(ticket.number, ticket.loan);
    }
}
