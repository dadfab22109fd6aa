//! The memory of a posted receive, whatever values it holds.

use core::any::Any;

use zerocopy::IntoBytes;

use crate::error::UnpackError;
use crate::message::{Flags, Mark, form};
use crate::plain::Plain;

/// Memory that a message may be put into.
pub(super) trait Target: Any + Send {
    /// All of it.
    fn bytes(&mut self) -> &mut [u8];

    /// How many values a message of so many bytes and with these flags is.
    fn count(&self, len: usize, flags: Flags) -> Result<usize, UnpackError>;

    /// Puts right what came into the first `len` bytes with these flags.
    fn put_right(&mut self, len: usize, flags: Flags);

    fn into_any(self: Box<Self>) -> Box<dyn Any>;
}

impl<T: Plain + Send + 'static> Target for Vec<T> {
    fn bytes(&mut self) -> &mut [u8] {
        self.as_mut_slice().as_mut_bytes()
    }

    fn count(&self, len: usize, flags: Flags) -> Result<usize, UnpackError> {
        count::<T>(self.len(), len, flags)
    }

    fn put_right(&mut self, len: usize, flags: Flags) {
        form::put_right::<T>(flags, &mut self.bytes()[..len]);
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// How many values of `T` a message of `len` bytes is, if there is room for them.
pub(super) fn count<T: Plain>(room: usize, len: usize, flags: Flags) -> Result<usize, UnpackError> {
    let size = size_of::<T>();
    let room = room * size;
    if len > room {
        return Err(UnpackError::TooLong { room, found: len });
    }
    if size == 0 || len % size != 0 {
        return Err(UnpackError::Length {
            expected: size,
            found: len,
        });
    }
    Mark::of::<T>().check(flags)?;
    form::check::<T>(flags)?;
    Ok(len / size)
}
