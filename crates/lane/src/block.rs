//! A block of the arena as its owner has it: written, lent, lent again, given away or given back.
//!
//! A block is in one hand at a time. Its loans are counted by whoever has it, without the arena's lock: the count goes back to
//! the arena with the block, so that the next owner goes on with it and no old return can free a new loan.
//!
//! | who | reads and writes the bytes | how the block leaves |
//! | --- | --- | --- |
//! | the owner, before a ticket of it was sent | all | dropped: free at once |
//! | the arena, for a peer | none | free when the peer's table of returns says so, or the peer's process is dead |
#![allow(unsafe_code)]

use crate::arena::{Arena, Backing, Held, Lending, NoBlock, Purpose, SlabId};
use crate::loan::{Loan, LoanTicket};
use crate::region::Region;
use crate::returns::Returns;
use crate::ring::Parts;
use crate::sync::Arc;

/// A block of this process's arena. Dropping it gives it back to the arena.
#[derive(Debug)]
pub struct Block<B: Backing> {
    arena: Arc<Arena<B>>,
    held: Held,
    len: usize,
    handed_over: bool,
}

impl<B: Backing> Block<B> {
    /// Takes a block of `len` bytes, which are whatever was there before. `Ok(None)`: all memory is out; try again when peers
    /// have given some back.
    ///
    /// # Errors
    ///
    /// If it is too long, or there is no memory.
    pub fn take(
        arena: &Arc<Arena<B>>,
        len: usize,
        purpose: Purpose,
    ) -> Result<Option<Self>, NoBlock<B::Error>> {
        let held = arena.take(len, purpose)?;
        Ok(held.map(|held| Self::new(arena, held, len)))
    }

    fn new(arena: &Arc<Arena<B>>, held: Held, len: usize) -> Self {
        Self {
            arena: Arc::clone(arena),
            held,
            len,
            handed_over: false,
        }
    }

    /// Whether the block is of this arena.
    #[must_use]
    pub fn is_of(&self, arena: &Arc<Arena<B>>) -> bool {
        Arc::ptr_eq(&self.arena, arena)
    }

    /// The slab it lies in.
    #[must_use]
    pub fn slab(&self) -> SlabId {
        self.held.slab
    }

    /// What a receiver needs to find it, and to give it back.
    #[must_use]
    pub fn ticket(&self) -> LoanTicket {
        LoanTicket {
            slab: self.held.slab.0,
            number: self.held.number,
            offset: self.held.offset as u64,
            len: self.len as u64,
            loan: self.held.loan,
        }
    }

    /// The region it lies in, and where.
    pub(crate) fn memory(&self) -> (Region, usize) {
        (self.held.region.clone(), self.held.offset)
    }

    /// Length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Writes `parts`, joined, into the block.
    ///
    /// # Panics
    ///
    /// If they are longer than the block.
    pub fn fill(&mut self, parts: impl Parts) {
        let mut at = 0;
        parts.each(|part| {
            self.write(at, part);
            at += part.len();
        });
    }

    /// Writes into the block at `offset`.
    fn write(&mut self, offset: usize, bytes: &[u8]) {
        assert!(
            bytes.len() <= self.len && offset <= self.len - bytes.len(),
            "the block was made for the bytes"
        );
        // SAFETY: this is inside the block, which nobody else has until it is handed over, which takes it.
        unsafe { self.held.region.copy_in(self.held.offset + offset, bytes) };
    }

    /// The bytes in place.
    #[cfg(not(loom))]
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        // SAFETY: the arena made the block inside the region; nobody else writes it until it is handed over, which takes it.
        unsafe { core::slice::from_raw_parts(self.base(), self.len) }
    }

    /// The bytes in place, to be written.
    #[cfg(not(loom))]
    pub fn as_mut_bytes(&mut self) -> &mut [u8] {
        // SAFETY: as in `as_bytes`, and `&mut self` makes this the only access in this process.
        unsafe { core::slice::from_raw_parts_mut(self.base(), self.len) }
    }

    #[cfg(not(loom))]
    fn base(&self) -> *mut u8 {
        // SAFETY: the arena made the block inside the region.
        unsafe { self.held.region.base().add(self.held.offset) }.as_ptr()
    }

    /// The block is at `holder` from now on. Comes back through `returns`.
    pub(crate) fn hand_over(mut self, holder: B::Holder, returns: Returns) {
        self.handed_over = true;
        self.arena.hand_over(self.lending(), holder, returns);
    }

    /// Seen by its own process, `me`, as if it had come from another: for blocks that a network filled.
    ///
    /// # Panics
    ///
    /// If the arena made the block outside its slab: a mistake of ours.
    #[must_use]
    pub fn into_loan(self, me: B::Holder) -> Loan {
        let ticket = self.ticket();
        let region = self.held.region.clone();
        let returns = self.arena.own().0.clone();
        self.hand_over(me, returns.clone());
        // SAFETY: the block is lent by this ticket alone, once, and is not written until it is back; the table is the arena's
        // own, and this loan the only writer of the block's word.
        let loan = unsafe { Loan::new(region, ticket, returns) };
        loan.expect("the arena made the block inside the region")
    }

    fn lending(&self) -> Lending {
        Lending {
            number: self.held.number,
            loan: self.held.loan,
        }
    }
}

impl<B: Backing> Drop for Block<B> {
    fn drop(&mut self) {
        if !self.handed_over {
            self.arena.give(self.lending());
        }
    }
}
