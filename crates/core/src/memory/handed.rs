//! Buffers on their way through several processes: borrowed ones, and the tickets by which they are handed on.

use mizzen_lane::{Loan, LoanTicket, Region, Returns, Revocations};

use super::share::{Arena, Block};
use crate::rank::ProcessId;

/// What travels in the place of a buffer that its holder hands on: it lies in a slab of its owner, who need not be the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HandedTicket {
    pub(crate) owner: ProcessId,
    pub(crate) ticket: LoanTicket,
}

impl HandedTicket {
    /// Bytes of such a ticket: by these it is told from that of a buffer of the sender's own.
    pub(crate) const BYTES: usize = LoanTicket::BYTES + 8;

    pub(crate) fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        let (ticket, owner) = bytes.split_at_mut(LoanTicket::BYTES);
        ticket.copy_from_slice(&self.ticket.to_bytes());
        owner.copy_from_slice(&self.owner.to_u64().to_le_bytes());
        bytes
    }

    pub(crate) fn from_bytes(bytes: &[u8; Self::BYTES]) -> Option<Self> {
        let (ticket, owner) = bytes.split_first_chunk()?;
        let owner = u64::from_le_bytes(owner.try_into().ok()?);
        Some(Self {
            owner: ProcessId::from_u64(owner),
            ticket: LoanTicket::from_bytes(ticket),
        })
    }
}

/// A buffer that was lent to us, and whose it is.
#[derive(Debug)]
pub(crate) struct Holding {
    pub(crate) loan: Loan,
    pub(crate) owner: ProcessId,
}

/// A buffer that moves with a message.
#[derive(Debug)]
pub enum Buffer {
    /// One that this process made.
    Made(Made),
    /// One that another made.
    Borrowed(Lease),
}

/// A block of our own arena.
#[derive(Debug)]
pub struct Made(pub(crate) Block);

/// A block of another's arena. Dropping it gives it back.
#[derive(Debug)]
pub struct Lease(pub(crate) Holding);

impl Buffer {
    pub(crate) fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Made(Made(block)) => block.as_bytes(),
            Self::Borrowed(Lease(held)) => held.loan.as_bytes(),
        }
    }
}

/// The tables by which a process tells a lender what it did with its blocks, and a borrower which it must not take over.
#[derive(Clone, Debug)]
pub(crate) struct Tables {
    pub(crate) returns: Returns,
    pub(crate) revocations: Revocations,
}

impl Tables {
    /// Bytes of memory for both.
    pub(crate) const BYTES: usize =
        Returns::bytes(Arena::MAX_BLOCKS) + Revocations::bytes(Arena::MAX_BLOCKS);

    /// Tables in the given memory, zeroed when new.
    pub(crate) fn new(memory: &Region) -> Self {
        let (first, second) = (
            Returns::bytes(Arena::MAX_BLOCKS),
            Revocations::bytes(Arena::MAX_BLOCKS),
        );
        Self {
            returns: Returns::new(memory.part(0, first), Arena::MAX_BLOCKS),
            revocations: Revocations::new(memory.part(first, second), Arena::MAX_BLOCKS),
        }
    }

    /// Tables between threads of this process.
    pub(crate) fn heap() -> Self {
        Self::new(&Region::heap(Self::BYTES))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_of_another_owner_arrives_as_it_was_sent() {
        let ticket = LoanTicket {
            slab: 3,
            number: 7,
            offset: 1 << 40,
            len: 5,
            loan: u64::MAX - 1,
        };
        let owner = ProcessId::from_u64(0x2_0000_0003);
        let handed = HandedTicket { owner, ticket };
        assert_eq!(HandedTicket::from_bytes(&handed.to_bytes()), Some(handed));
    }
}
