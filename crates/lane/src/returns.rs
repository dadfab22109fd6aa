//! How lent buffers come back.
//!
//! A lender numbers its buffers and counts the loans of each. Whoever borrowed a buffer writes the loan's number
//! into the buffer's word of a table in its own memory; the lender reads it. One writer per loan, no queue, any
//! order.

use crate::region::Region;
use crate::sync::Ordering;

/// The borrower's table of buffers given back to one lender.
#[derive(Clone, Debug)]
pub struct Returns {
    table: Region,
    buffers: usize,
}

impl Returns {
    /// Bytes of memory for a table of `buffers` buffers.
    #[must_use]
    pub const fn bytes(buffers: usize) -> usize {
        buffers * 8
    }

    /// A table in the given memory, zeroed when new.
    ///
    /// # Panics
    ///
    /// If the memory is too small.
    #[must_use]
    pub fn new(table: Region, buffers: usize) -> Self {
        assert!(
            table.len() >= Self::bytes(buffers),
            "the table fits its memory"
        );
        Self { table, buffers }
    }

    /// Gives `buffer` back, which was lent as loan number `loan` (counted from 1). The borrower must not touch the
    /// buffer afterwards. A number beyond the table is ignored: it came from a peer and was never valid.
    ///
    /// # Panics
    ///
    /// If the table is in read-only memory: the lender's view of it.
    pub fn give_back(&self, buffer: u32, loan: u64) {
        if (buffer as usize) < self.buffers {
            // Release pairs with the acquire in `is_back`: the borrower's reads are over. A plain store: a buffer is lent
            // again only after this was seen, so there is no other thread that would write the word now.
            self.table
                .word(buffer as usize)
                .store(loan, Ordering::Release);
        }
    }

    /// Whether loan number `loan` of `buffer` came back.
    #[must_use]
    pub fn is_back(&self, buffer: u32, loan: u64) -> bool {
        (buffer as usize) < self.buffers
            && self.table.load(buffer as usize, Ordering::Acquire) == loan
    }
}
