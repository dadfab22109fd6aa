//! The ticket of a lent buffer.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// What travels in the place of a lent buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct LoanTicket {
    pub(crate) slab: u32,
    pub(crate) number: u32,
    pub(crate) offset: u64,
    pub(crate) len: u64,
    pub(crate) loan: u64,
}

impl LoanTicket {
    pub(crate) const BYTES: usize = size_of::<Self>();
}
