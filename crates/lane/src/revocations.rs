//! Loans that their owner took back before anybody took them over.
//!
//! A block that is handed on is on its way until its next holder has taken it over. If whoever handed it on is killed meanwhile,
//! nobody knows whether the message will ever come. So the owner takes the loan back, in a table of its own that the next
//! holder reads:
//!
//! | the owner | the next holder |
//! | --- | --- |
//! | writes here that the loan is revoked | writes into its table of returns that it has the loan |
//! | then looks whether the next holder has it | then looks here whether it is revoked |
//!
//! With a fence between the two steps of either side, at least one sees the other: a block that the owner finds untaken is
//! never read. If both see each other, the next holder gives it back.

use crate::region::Region;
use crate::sync::{Ordering, fence};

/// The owner's table of loans that one peer must not take over any more.
#[derive(Clone, Debug)]
pub struct Revocations {
    table: Region,
    blocks: usize,
}

impl Revocations {
    /// Bytes of memory for a table of `blocks` blocks.
    #[must_use]
    pub const fn bytes(blocks: usize) -> usize {
        blocks * 8
    }

    /// A table in the given memory, zeroed when new.
    ///
    /// # Panics
    ///
    /// If the memory is too small.
    #[must_use]
    pub fn new(table: Region, blocks: usize) -> Self {
        assert!(
            table.len() >= Self::bytes(blocks),
            "the table fits its memory"
        );
        Self { table, blocks }
    }

    /// The loans of `block` up to this one shall not be taken over. What the peer says afterwards is looked at after this.
    pub(crate) fn revoke(&self, block: u32, loan: u64) {
        if (block as usize) < self.blocks {
            self.table
                .word(block as usize)
                .store(loan, Ordering::Release);
        }
        // Pairs with the fence in `is_revoked`.
        fence(Ordering::SeqCst);
    }

    /// Whether a loan of which the peer has just said that it has it was taken back. One beyond the table never was lent.
    pub(crate) fn is_revoked(&self, block: u32, loan: u64) -> bool {
        // Pairs with the fence in `revoke`.
        fence(Ordering::SeqCst);
        if block as usize >= self.blocks {
            return true;
        }
        self.table.load(block as usize, Ordering::Acquire) >= loan
    }
}
