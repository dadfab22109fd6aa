//! Memory for a message that was copied out of its lane, used again by the thread that gave it up last: to allocate and clear it would
//! take as long as to copy the message.

use core::fmt;
use std::cell::Cell;

/// Bytes of one.
pub(crate) const SPARE: usize = 5 << 10;

thread_local! {
    /// What was given up last here, or nothing.
    static LAST: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Memory of a thread for one message. What it held before is still there: only what was written since is shown.
pub(crate) struct Spare {
    /// So many bytes, or as many as are shown.
    memory: Vec<u8>,
    len: usize,
}

impl Spare {
    /// The memory that this thread gave up last, or new one.
    #[inline]
    pub(crate) fn take() -> Self {
        let last = LAST.try_with(Cell::take).unwrap_or_default();
        Self {
            memory: if last.is_empty() {
                vec![0; SPARE]
            } else {
                last
            },
            len: 0,
        }
    }

    /// The first `len` bytes were written.
    #[inline]
    pub(crate) fn set_len(&mut self, len: usize) {
        self.len = len.min(self.memory.len());
    }

    /// What was written.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.memory[..self.len]
    }

    /// It will be kept for long: gives up what is not shown.
    pub(crate) fn tighten(&mut self) {
        if self.len < self.memory.len() {
            let shown = self.bytes().to_vec();
            give_up(core::mem::replace(&mut self.memory, shown));
        }
    }
}

impl AsMut<[u8]> for Spare {
    #[inline]
    fn as_mut(&mut self) -> &mut [u8] {
        &mut self.memory
    }
}

impl Drop for Spare {
    #[inline]
    fn drop(&mut self) {
        give_up(core::mem::take(&mut self.memory));
    }
}

#[inline]
fn give_up(memory: Vec<u8>) {
    if memory.len() == SPARE {
        // At the end of the thread it is freed.
        let _ = LAST.try_with(|last| last.set(memory));
    }
}

impl fmt::Debug for Spare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spare").field("len", &self.len).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::{SPARE, Spare};

    #[test]
    fn memory_is_used_again_and_shows_only_what_was_written() {
        let mut first = Spare::take();
        let place = first.as_mut().as_ptr();
        first.as_mut()[..3].copy_from_slice(b"old");
        first.set_len(3);
        assert_eq!(first.bytes(), b"old");
        drop(first);
        let mut second = Spare::take();
        assert_eq!(second.as_mut().as_ptr(), place);
        assert_eq!(second.bytes(), b"");
        let mut third = Spare::take();
        assert_eq!(third.as_mut().len(), SPARE, "it has memory of its own");
        third.set_len(SPARE + 1);
        assert_eq!(third.bytes().len(), SPARE);
    }

    #[test]
    fn what_is_kept_takes_no_more_than_it_shows() {
        let mut kept = Spare::take();
        let place = kept.as_mut().as_ptr();
        kept.as_mut()[..3].copy_from_slice(b"new");
        kept.set_len(3);
        kept.tighten();
        assert_eq!(kept.bytes(), b"new");
        assert_eq!(kept.as_mut().len(), 3);
        assert_eq!(Spare::take().as_mut().as_ptr(), place, "given up");
        drop(kept);
        assert_eq!(Spare::take().as_mut().len(), SPARE);
    }
}
