//! A peer as the lender of blocks: what it has lent to us, and how we give it back.
#![allow(unsafe_code)]

use crate::emptying::StreamIn;
use crate::loan::{Loan, LoanTicket};
use crate::region::Region;
use crate::returns::Returns;
use crate::revocations::Revocations;

/// A peer whose blocks we borrow.
#[derive(Debug)]
pub struct Lender {
    /// In memory of ours: where we give its blocks back.
    returns: Returns,
    /// In memory of the peer's: what we must not take over any more.
    revocations: Revocations,
}

/// A block that was handed on, and that its owner took back before it was taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Revoked;

impl Lender {
    /// The peer that reads in `returns` what we give back, and says in `revocations` what it took back itself.
    ///
    /// # Safety
    ///
    /// If the lender is an arena of this process: all tickets that are used here, to borrow or to give back, came from it, for
    /// blocks that it has handed over to us or announced and not withdrawn, and each is used once. All regions are the slabs
    /// of that arena that the tickets name. `returns` is the table by which that arena's [`Borrower`](crate::Borrower) for us is
    /// made, and of no other lender, and nobody else writes it; `revocations` is the other one by which it is made.
    ///
    /// Nothing need be promised of lenders in other processes: their memory is read as foreign.
    #[must_use]
    pub unsafe fn new(returns: Returns, revocations: Revocations) -> Self {
        Self {
            returns,
            revocations,
        }
    }

    /// The block that `ticket` describes in `region`. `None` if it does not lie inside.
    #[must_use]
    pub fn borrow(&self, region: Region, ticket: LoanTicket) -> Option<Loan> {
        // SAFETY: as was promised to `new`.
        unsafe { Loan::new(region, ticket, self.returns.clone()) }
    }

    /// Takes over a block that another holder handed on to us, by the ticket that it sent. `None` if it does not lie inside.
    ///
    /// # Errors
    ///
    /// If the owner took it back, because whoever handed it on is dead.
    pub fn take_over(&self, region: Region, ticket: LoanTicket) -> Result<Option<Loan>, Revoked> {
        if !self.returns.take_over(ticket.number, ticket.loan) {
            return Err(Revoked);
        }
        if self.revocations.is_revoked(ticket.number, ticket.loan) {
            self.give_back_handed(ticket);
            return Err(Revoked);
        }
        let loan = self.borrow(region, ticket);
        if loan.is_none() {
            self.give_back_handed(ticket);
        }
        Ok(loan)
    }

    /// Gives back a block that was handed on to us, or by us, and that nobody will take over.
    pub fn give_back_handed(&self, ticket: LoanTicket) {
        self.returns.give_back_late(ticket.number, ticket.loan);
    }

    /// A loan of this lender was not handed on after all. `false`: it was taken back meanwhile, and must not be read any more.
    #[must_use]
    pub fn keep(&self, loan: &mut Loan) -> bool {
        loan.keep(&self.revocations)
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
