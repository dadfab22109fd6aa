//! Lent buffers: memory of the runtime that moves with a message instead of being copied.
//!
//! A [`Lent`] buffer is written by its maker and moves into a message. The receiver gets a [`Borrowed`] view of the same
//! memory, reads it in place, and gives it back by dropping it.
//!
//! The receiver's view is a Rust slice. In its own process the maker cannot touch the memory any more, because the
//! `Lent` was moved; and no other process can map it for writing, because its segment is sealed. A maker that broke
//! its own memory safety could: processes of one user on one host are one trust domain. So nothing of ours checks what is in
//! such memory and then uses it there: the runtime copies first, and only a [`Borrowed`], whose values may be any bytes, is
//! read in place.
#![allow(unsafe_code)]

use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::slice;

use super::handed::{Buffer, Holding, Lease, Made};
use super::share::Block;
use crate::error::UnpackError;
use crate::plain::Plain;
use mizzen_lane::LoanTicket;

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
    bytes: Block,
    _values: PhantomData<[T]>,
}

impl<T: Plain> Lent<T> {
    pub(crate) fn new(bytes: Block) -> Self {
        const { assert_lendable::<T>() };
        Self {
            bytes,
            _values: PhantomData,
        }
    }

    /// Where it is.
    pub(crate) fn ticket(&self) -> LoanTicket {
        self.bytes.ticket()
    }

    /// Sets all of it to zero.
    pub fn zero(&mut self) {
        self.bytes.as_mut_bytes().fill(0);
    }
}

impl<T: Plain> Deref for Lent<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        let bytes = self.bytes.as_bytes();
        // SAFETY: the block is aligned to a page and its length was made of whole values; any bytes are a valid `T`
        // (`FromBytes`).
        unsafe { slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len() / size_of::<T>()) }
    }
}

impl<T: Plain> DerefMut for Lent<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        let bytes = self.bytes.as_mut_bytes();
        // SAFETY: as in `deref`.
        unsafe {
            slice::from_raw_parts_mut(bytes.as_mut_ptr().cast(), bytes.len() / size_of::<T>())
        }
    }
}

impl<T: Plain> fmt::Debug for Lent<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lent").field("values", &self.len()).finish()
    }
}

/// A received lent buffer, read in place. Dropping it gives it back to its maker.
///
/// It may be handed on to another process, as often as one likes: `post_lent` and [`pack_lent`](crate::Message::pack_lent) take it
/// as they take a [`Lent`]. On one host nothing is copied, and the last reader gives it back to its maker.
///
/// ```
/// mizzen::local(3, |deck| {
///     let inbox = deck.mailbox()?;
///     deck.bind(&format!("frames of {}", deck.rank()), &inbox)?;
///     match deck.rank().0 {
///         0 => {
///             let mut frame = deck.lend::<u8>(1 << 16)?;
///             frame[17] = 200;
///             deck.fetch("frames of 1")?.post_lent(&1u32, frame)?;
///         }
///         1 => {
///             let (number, frame) = inbox.receive_lent::<u32, u8>()?;
///             deck.fetch("frames of 2")?.post_lent(&number, frame)?;
///         }
///         _ => assert_eq!(inbox.receive_lent::<u32, u8>()?.1[17], 200),
///     }
///     deck.finish()
/// }).unwrap();
/// ```
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
    held: Holding,
    _values: PhantomData<[T]>,
}

impl<T: Plain> Borrowed<T> {
    pub(crate) fn new(held: Holding) -> Result<Self, UnpackError> {
        const { assert_lendable::<T>() };
        let (len, size) = (held.loan.len(), size_of::<T>());
        if size == 0 || len % size != 0 {
            return Err(UnpackError::Length {
                expected: size,
                found: len,
            });
        }
        Ok(Self {
            held,
            _values: PhantomData,
        })
    }
}

impl<T: Plain> Deref for Borrowed<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        let bytes = self.held.loan.as_bytes();
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

/// A buffer that may move with a message: a [`Lent`] one, or a [`Borrowed`] one that is handed on. Nothing else can be.
pub trait LentBuffer: sealed::IntoBuffer {}

impl<T: Plain> LentBuffer for Lent<T> {}
impl<T: Plain> LentBuffer for Borrowed<T> {}

mod sealed {
    use super::Buffer;

    /// What both are, without their types.
    pub trait IntoBuffer {
        fn into_buffer(self) -> Buffer;
    }
}

use sealed::IntoBuffer;

impl<T: Plain> IntoBuffer for Lent<T> {
    fn into_buffer(self) -> Buffer {
        Buffer::Made(Made(self.bytes))
    }
}

impl Buffer {
    /// The same, whatever its values are.
    #[must_use]
    pub fn of(buffer: impl LentBuffer) -> Self {
        buffer.into_buffer()
    }
}

impl Lease {
    /// What is in it.
    ///
    /// # Errors
    ///
    /// [`UnpackError::Length`] if it does not hold whole values of `T`.
    pub fn read<T: Plain>(self) -> Result<Borrowed<T>, UnpackError> {
        Borrowed::new(self.0)
    }
}

impl<T: Plain> IntoBuffer for Borrowed<T> {
    fn into_buffer(self) -> Buffer {
        Buffer::Borrowed(Lease(self.held))
    }
}
