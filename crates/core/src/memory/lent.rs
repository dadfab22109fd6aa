//! Lent buffers: memory of the runtime that moves with a message instead of being copied.
//!
//! A [`Lent`] buffer is written by its maker and moves into a message. The receiver gets a [`Borrowed`] view of the same
//! memory, reads it in place, and gives it back by dropping it.
//!
//! The receiver's view is a Rust slice. In its own process the maker cannot touch the memory any more, because the
//! `Lent` was moved; and no other process can map it for writing, because its segment is sealed. A maker that broke
//! its own memory safety could: processes of one user on one host are one trust domain. So nothing of ours checks what is in
//! such memory and then uses it there: the runtime copies first, and only a [`Borrowed`], for whose values any bytes will
//! do, is read in place.
#![allow(unsafe_code)]

use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::slice;
use std::sync::Arc;

use mizzen_lane::{Region, Returns};

use super::arena::{Arena, Held, Lending, SlabId};
use super::manifest::Manifest;
use super::ticket::LoanTicket;
use crate::error::UnpackError;
use crate::plain::Plain;
use crate::rank::ProcessId;

/// Blocks begin at a page: values that want more than its alignment, or have no bytes, cannot be lent. Checked when the
/// program is compiled.
const fn assert_lendable<T>() {
    assert!(size_of::<T>() > 0, "a type without bytes cannot be lent");
    assert!(
        align_of::<T>() <= PAGE,
        "a type with so large an alignment cannot be lent"
    );
}

const PAGE: usize = 4096;

/// A buffer of plain values in this process's arena. Fill it, then move it into a message.
///
/// ```
/// mizzen::local(2, |deck| {
///     let inbox = deck.mailbox()?;
///     deck.bind(&format!("tiles of {}", deck.rank()), &inbox)?;
///     if deck.rank() == 0 {
///         let mut tile = deck.lend::<f32>(1 << 16)?;
///         tile[17] = 2.5;
///         deck.fetch("tiles of 1")?.sender()?.post_lent(&42u32, tile)?;
///     } else {
///         let (number, tile) = inbox.receive_lent::<u32, f32>()?;
///         assert_eq!((number, tile[17], tile.len()), (42, 2.5, 1 << 16));
///     }
///     Ok(())
/// }).unwrap();
/// ```
pub struct Lent<T> {
    bytes: LentBytes,
    _values: PhantomData<[T]>,
}

/// A lent buffer without its type.
#[derive(Debug)]
pub(crate) struct LentBytes {
    arena: Arc<Arena>,
    held: Held,
    len: usize,
    handed_over: bool,
}

impl<T: Plain> Lent<T> {
    pub(crate) fn new(bytes: LentBytes) -> Self {
        const { assert_lendable::<T>() };
        Self {
            bytes,
            _values: PhantomData,
        }
    }

    pub(crate) fn into_bytes(self) -> LentBytes {
        self.bytes
    }

    pub(crate) fn bytes(&self) -> &LentBytes {
        &self.bytes
    }

    /// Sets all of it to zero.
    pub fn zero(&mut self) {
        self.bytes.as_mut_bytes().fill(0);
    }
}

impl<T: Plain> Deref for Lent<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: the block is aligned to a page and `len` was made of whole values; any bytes are a valid `T`
        // (`FromBytes`); nobody else accesses the block until it is handed over, which consumes `self`.
        unsafe { slice::from_raw_parts(self.bytes.base().cast(), self.bytes.len / size_of::<T>()) }
    }
}

impl<T: Plain> DerefMut for Lent<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`, and `&mut self` makes this the only access in this process.
        unsafe {
            slice::from_raw_parts_mut(self.bytes.base().cast(), self.bytes.len / size_of::<T>())
        }
    }
}

impl<T: Plain> fmt::Debug for Lent<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lent").field("values", &self.len()).finish()
    }
}

impl LentBytes {
    pub(crate) fn new(arena: Arc<Arena>, held: Held, len: usize) -> Self {
        Self {
            arena,
            held,
            len,
            handed_over: false,
        }
    }

    /// Whether the buffer is of this arena.
    pub(crate) fn is_of(&self, arena: &Arc<Arena>) -> bool {
        Arc::ptr_eq(&self.arena, arena)
    }

    pub(crate) fn slab(&self) -> SlabId {
        self.held.slab
    }

    pub(crate) fn ticket(&self) -> LoanTicket {
        LoanTicket {
            slab: self.held.slab.0,
            number: self.held.number,
            offset: self.held.offset as u64,
            len: self.len as u64,
            loan: self.held.loan,
        }
    }

    /// Writes `parts`, joined, into the buffer.
    pub(crate) fn fill(&mut self, parts: impl mizzen_lane::Parts) {
        let (mut at, end) = (self.held.offset, self.held.offset + self.len);
        parts.each(|part| {
            assert!(part.len() <= end - at, "the buffer was made for the parts");
            // SAFETY: this is inside the block, which nobody else accesses until it is handed over.
            unsafe { self.held.region.copy_in(at, part) };
            at += part.len();
        });
    }

    /// Writes into the buffer at `offset`. The receiver may look at other parts of it meanwhile.
    pub(crate) fn write(&self, offset: usize, bytes: &[u8]) {
        assert!(bytes.len() <= self.len && offset <= self.len - bytes.len());
        // SAFETY: this is inside the block; the receiver looks at these bytes only after they were told as filled, and they
        // are written before.
        unsafe { self.held.region.copy_in(self.held.offset + offset, bytes) };
    }

    /// The buffer as the manifest of a message of `len` bytes, for which it was made.
    pub(crate) fn manifest(&self, len: usize) -> Manifest {
        assert!(Manifest::bytes(len) <= self.len, "the buffer holds it");
        Manifest::new(self.held.region.clone(), self.held.offset, len)
            .expect("the arena made the block inside the region")
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Whether the peer gave back the present loan.
    pub(crate) fn is_back(&self, returns: &Returns) -> bool {
        returns.is_back(self.held.number, self.held.loan)
    }

    /// The peer gave the buffer back: it can be lent once more.
    pub(crate) fn lend_again(&mut self) {
        self.held.loan += 1;
    }

    /// The buffer is at `holder` from now on.
    pub(crate) fn hand_over(mut self, holder: ProcessId, returns: Returns) {
        self.handed_over = true;
        self.arena.hand_over(self.lending(), holder, returns);
    }

    /// The same for a buffer with which others come back.
    pub(crate) fn hand_over_with(mut self, also: Vec<Self>, holder: ProcessId, returns: Returns) {
        self.handed_over = true;
        let also = also.into_iter().map(Self::leave).collect();
        self.arena
            .hand_over_with(self.lending(), also, holder, returns);
    }

    /// The arena does not get the buffer back by this being dropped: which it is.
    pub(crate) fn leave(mut self) -> Lending {
        self.handed_over = true;
        self.lending()
    }

    fn lending(&self) -> Lending {
        Lending {
            number: self.held.number,
            loan: self.held.loan,
        }
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        // SAFETY: as in `Lent::deref`.
        unsafe { slice::from_raw_parts(self.base(), self.len) }
    }

    pub(crate) fn as_mut_bytes(&mut self) -> &mut [u8] {
        // SAFETY: as in `Lent::deref_mut`.
        unsafe { slice::from_raw_parts_mut(self.base(), self.len) }
    }

    /// Seen by its own process as if it had come from another: for buffers that a network filled.
    pub(crate) fn into_loan(self, me: ProcessId, returns: Returns) -> Loan {
        let ticket = self.ticket();
        let region = self.held.region.clone();
        self.hand_over(me, returns.clone());
        Loan {
            region,
            ticket,
            returns,
        }
    }

    fn base(&self) -> *mut u8 {
        // SAFETY: the arena made the block inside the region.
        unsafe { self.held.region.base().add(self.held.offset) }.as_ptr()
    }
}

impl Drop for LentBytes {
    fn drop(&mut self) {
        if !self.handed_over {
            self.arena.give(self.lending());
        }
    }
}

/// A buffer that a peer lent us, without its type. Dropping it gives it back.
#[derive(Debug)]
pub(crate) struct Loan {
    region: Region,
    ticket: LoanTicket,
    returns: Returns,
}

impl Loan {
    /// The buffer that `ticket` describes in `region`, if it lies inside.
    pub(crate) fn new(region: Region, ticket: LoanTicket, returns: Returns) -> Option<Self> {
        let end = ticket.offset.checked_add(ticket.len)?;
        let aligned = ticket.offset % PAGE as u64 == 0;
        (aligned && end <= region.len() as u64).then_some(Self {
            region,
            ticket,
            returns,
        })
    }

    /// Copies from `offset` of the buffer, which must be whole by then, while the lender may write other parts of it.
    pub(crate) fn copy_out(&self, offset: usize, target: &mut [u8]) {
        assert!(offset + target.len() <= self.ticket.len as usize);
        let at = self.ticket.offset as usize + offset;
        // SAFETY: the lender wrote these bytes before it told of them, and does not write them again before we give the
        // buffer back.
        unsafe { self.region.copy_out(at, target) };
    }

    pub(crate) fn len(&self) -> usize {
        self.ticket.len as usize
    }

    /// The bytes in place. Not to be checked and then used: see the head of this file.
    fn as_bytes(&self) -> &[u8] {
        // SAFETY: `new` checked that the range lies inside the region; the lender handed the buffer over and does not
        // write it before we give it back (see the head of this file for what that relies on).
        unsafe {
            let base = self.region.base().add(self.ticket.offset as usize);
            slice::from_raw_parts(base.as_ptr(), self.ticket.len as usize)
        }
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        self.returns.give_back(self.ticket.number, self.ticket.loan);
    }
}

/// A received lent buffer, read in place. Dropping it gives it back to its maker.
///
/// # What may be assumed
///
/// - The buffer has the length it says, holds whole values, and is aligned for them. That was checked when it was unpacked,
///   and the memory stays mapped until this is dropped, even if the maker dies.
/// - Any bytes are valid values ([`Plain`](crate::Plain)), so that reading them is never wrong in itself.
/// - The values do not change, as long as the maker's program is sound: what it lent has been moved out of its hands, and no
///   other process can map the memory for writing.
/// - A maker on the same host whose process is broken (a stray pointer in its unsafe code) or hostile *can* change them
///   while they are read. Processes of one user on one host trust each other with that, as a debugger could do the same.
///   A program that must not be misled even so copies first and checks the copy:
///
/// ```
/// # mizzen::local(2, |deck| {
/// # let inbox = deck.mailbox()?;
/// # deck.bind(&format!("inbox of {}", deck.rank()), &inbox)?;
/// # if deck.rank() == 0 {
/// #     let mut index = deck.lend::<u32>(2)?;
/// #     index.copy_from_slice(&[1, 0]);
/// #     deck.fetch("inbox of 1")?.sender()?.post_lent(&0u32, index)?;
/// # } else {
/// let (_, places) = inbox.receive_lent::<u32, u32>()?;
/// let table = ["north", "south"];
/// // Looked at once: the value that was checked is the one that is used.
/// let first = places[0] as usize;
/// assert_eq!(table.get(first), Some(&"south"));
/// // Or all of it.
/// let places: Vec<u32> = places.to_vec();
/// assert!(places.iter().all(|place| (*place as usize) < table.len()));
/// # }
/// # Ok(())
/// # }).unwrap();
/// ```
///
/// Whatever is unpacked in another way ([`Incoming::unpack_value`](crate::Incoming::unpack_value) and the rest) is a copy in
/// memory of this process, made before it was checked.
pub struct Borrowed<T> {
    loan: Loan,
    _values: PhantomData<[T]>,
}

impl<T: Plain> Borrowed<T> {
    pub(crate) fn new(loan: Loan) -> Result<Self, UnpackError> {
        const { assert_lendable::<T>() };
        let (len, size) = (loan.len(), size_of::<T>());
        if size == 0 || len % size != 0 {
            return Err(UnpackError::Length {
                expected: size,
                found: len,
            });
        }
        Ok(Self {
            loan,
            _values: PhantomData,
        })
    }
}

impl<T: Plain> Deref for Borrowed<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        let bytes = self.loan.as_bytes();
        // SAFETY: `new` checked that the bytes are whole values, blocks are aligned to a page, and any bytes are a valid
        // `T`.
        unsafe { slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len() / size_of::<T>()) }
    }
}

impl<T: Plain> fmt::Debug for Borrowed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Borrowed")
            .field("values", &self.len())
            .finish()
    }
}
