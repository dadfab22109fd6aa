//! A block of memory as its borrower has it: found by a ticket, read where it lies, given back when it is dropped.
//!
//! A ticket is foreign input: whatever is in it, a [`Loan`] lies inside the memory it was made of, or there is none.
#![allow(unsafe_code)]

use crate::buddy::BLOCK_ALIGN;
use crate::region::Region;
use crate::returns::{Place, Returns};
use crate::revocations::Revocations;

/// What travels in the place of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoanTicket {
    /// The slab of the lender in which the block lies.
    pub slab: u32,
    /// The block's number among all of the lender's.
    pub number: u32,
    /// Where it begins in the slab.
    pub offset: u64,
    /// Its length in bytes.
    pub len: u64,
    /// How often the block was lent, this time included.
    pub loan: u64,
}

impl LoanTicket {
    /// Bytes of a ticket.
    pub const BYTES: usize = 32;

    /// The ticket as it travels.
    #[inline]
    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let names = u64::from(self.slab) | u64::from(self.number) << 32;
        let mut bytes = [0; Self::BYTES];
        let words = [names, self.offset, self.len, self.loan];
        for (to, word) in bytes.chunks_exact_mut(8).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// The ticket that travelled as `bytes`.
    #[inline]
    #[must_use]
    pub fn from_bytes(bytes: &[u8; Self::BYTES]) -> Self {
        let mut words = [0; 4];
        for (word, from) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = from.try_into().map_or(0, u64::from_le_bytes);
        }
        let [names, offset, len, loan] = words;
        Self {
            slab: names as u32,
            number: (names >> 32) as u32,
            offset,
            len,
            loan,
        }
    }
}

/// A block that was lent to us. Dropping it gives it back.
#[derive(Debug)]
pub struct Loan {
    region: Region,
    ticket: LoanTicket,
    returns: Returns,
    /// To whom it is being handed on.
    to: Option<Place>,
}

impl Loan {
    /// The block that `ticket` describes in `region`, which is given back through `returns`. `None` if it does not lie inside.
    ///
    /// # Safety
    ///
    /// If the lender is in this process, the block was lent by this ticket, once, and what its lender writes until it is back
    /// is read here only after the lender told so; a message that the ticket announced was not withdrawn. The lender takes it as given back only by `returns`, in which nobody else
    /// writes this block's word meanwhile, and which is the table of no other lender. If it was handed on, it was taken over. Nothing need be promised of lenders in
    /// other processes: their memory is read as foreign.
    #[must_use]
    pub(crate) unsafe fn new(region: Region, ticket: LoanTicket, returns: Returns) -> Option<Self> {
        let end = ticket.offset.checked_add(ticket.len)?;
        let aligned = ticket.offset % BLOCK_ALIGN as u64 == 0;
        (aligned && end <= region.len() as u64).then_some(Self {
            region,
            ticket,
            returns,
            to: None,
        })
    }

    /// The slab of its owner in which it lies.
    #[must_use]
    pub fn slab(&self) -> u32 {
        self.ticket.slab
    }

    /// The ticket by which the next holder takes it over.
    #[must_use]
    pub fn next_ticket(&self) -> LoanTicket {
        LoanTicket {
            // A peer may have said any number.
            loan: self.ticket.loan.wrapping_add(1),
            ..self.ticket
        }
    }

    /// Says that it is handed on, before the next holder is told: from then on its owner knows whom to ask for it.
    pub fn hand_on(&mut self, to: Place) {
        self.returns
            .hand_on(self.ticket.number, self.ticket.loan, to);
        self.to = Some(to);
    }

    /// It was handed on: the next holder gives it back.
    pub fn handed_on(mut self) {
        // A number of no block: nothing is given back.
        self.ticket.number = u32::MAX;
    }

    /// The next holder was not told: it is ours again. `false`: its owner took it back meanwhile, because the next holder is
    /// dead, and it must not be read any more.
    pub(crate) fn keep(&mut self, revocations: &Revocations) -> bool {
        let LoanTicket { number, loan, .. } = self.ticket;
        let Some(to) = self.to else {
            return true;
        };
        let is_ours = self.returns.keep(number, loan, to) && !revocations.is_revoked(number, loan);
        if is_ours {
            self.to = None;
        }
        is_ours
    }

    /// Copies from `offset` of the block, which must be whole by then, while the lender may write other parts of it.
    ///
    /// # Panics
    ///
    /// If that reaches beyond the block.
    pub fn copy_out(&self, offset: usize, target: &mut [u8]) {
        let len = self.len();
        assert!(
            offset <= len && target.len() <= len - offset,
            "the copy lies inside the block"
        );
        // SAFETY: `new` was promised that the lender wrote these bytes before it told of them, and does not write them again
        // before we give the block back.
        unsafe {
            self.region
                .copy_out(self.ticket.offset as usize + offset, target);
        }
    }

    /// Length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ticket.len as usize
    }

    /// Whether it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes in place. A lender in another process can change them, if it is broken or hostile: what is checked is a copy
    /// of them, and only that is used.
    #[cfg(not(loom))]
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        // SAFETY: `new` checked that the range lies inside the region, and was promised that the lender does not write it
        // before we give it back.
        unsafe {
            let base = self.region.base().add(self.ticket.offset as usize);
            core::slice::from_raw_parts(base.as_ptr(), self.len())
        }
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        let LoanTicket { number, loan, .. } = self.ticket;
        match self.to {
            None => self.returns.give_back(number, loan),
            // Its owner may have taken it back, and lent it again.
            Some(_) => self.returns.give_back_late(number, loan),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_arrives_as_it_was_sent() {
        let ticket = LoanTicket {
            slab: 3,
            number: u32::MAX,
            offset: 1 << 40,
            len: 7,
            loan: u64::MAX - 1,
        };
        assert_eq!(LoanTicket::from_bytes(&ticket.to_bytes()), ticket);
    }

    #[test]
    fn a_ticket_that_points_outside_is_no_loan() {
        let region = Region::heap(2 * BLOCK_ALIGN);
        let returns = Returns::new(Region::heap(64), 8);
        let lies_inside = |offset, len| {
            let ticket = LoanTicket {
                slab: 0,
                number: 0,
                offset,
                len,
                loan: 1,
            };
            // SAFETY: nobody else uses this memory.
            unsafe { Loan::new(region.clone(), ticket, returns.clone()) }.is_some()
        };
        let block = BLOCK_ALIGN as u64;
        assert!(lies_inside(block, block));
        assert!(!lies_inside(block, block + 1));
        assert!(!lies_inside(1, 1));
        assert!(!lies_inside(u64::MAX - block + 1, block));
    }
}
