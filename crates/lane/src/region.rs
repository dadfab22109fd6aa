//! A piece of memory that a lane lives in: heap memory, or a mapping shared with another process.
//!
//! Two views of a region are given: atomic words, and byte copies. Anyone may use the words of memory that this
//! process may write, and read those of memory that it may not. The copies are `unsafe`: the lane's protocol orders them
//! (a byte is written before the control word that announces it is stored with release, and read after that
//! word was loaded with acquire), and whoever copies outside a lane must provide an order.
//!
//! A process that breaks the protocol may change bytes while they are read. Words are read atomically, so
//! that is harmless for them; a byte copy then yields other bytes, which the reader treats as foreign
//! input anyway. References to a region's bytes are never made.
#![allow(unsafe_code)]

#[cfg(not(loom))]
pub use memory::Region;
#[cfg(loom)]
pub use model::Region;

#[cfg(not(loom))]
mod memory {
    use crate::copying::{claim, copy_for_another_core, copy_from_another_core};
    use crate::layout::LINE;
    use crate::sync::{Arc, AtomicU32, AtomicU64, Ordering};
    use core::any::Any;
    use core::fmt;
    use core::ptr::NonNull;
    use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};

    /// Arenas rely on their memory beginning at a page.
    const PAGE: usize = 4096;

    /// A piece of memory, and what keeps it alive. Cloning gives another handle on the same memory.
    #[derive(Clone)]
    pub struct Region {
        base: NonNull<u8>,
        len: usize,
        access: Access,
        _keep: Arc<dyn Any + Send + Sync>,
    }

    /// What may be done with the memory.
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Access {
        ReadWrite,
        /// A store would be a fault.
        ReadOnly,
    }

    // SAFETY: a region is a pointer into memory that `_keep`, itself Send and Sync, keeps alive; all access
    // is by atomics or by byte copies, for whose order their callers answer.
    unsafe impl Send for Region {}
    // SAFETY: as above; no method gives out a reference to non-atomic memory.
    unsafe impl Sync for Region {}

    impl Region {
        /// Fresh zeroed heap memory, rounded up to whole cache lines. A page or more begins at a page.
        ///
        /// # Panics
        ///
        /// If the size overflows.
        #[must_use]
        pub fn heap(len: usize) -> Self {
            let len = len.div_ceil(LINE).max(1) * LINE;
            let align = if len >= PAGE { PAGE } else { LINE };
            let layout =
                Layout::from_size_align(len, align).expect("a region fits the address space");
            // SAFETY: the size is not zero.
            let Some(base) = NonNull::new(unsafe { alloc_zeroed(layout) }) else {
                handle_alloc_error(layout)
            };
            Self {
                base,
                len,
                access: Access::ReadWrite,
                _keep: Arc::new(Heap { base, layout }),
            }
        }

        /// The memory at `base`, which lives as long as `keep`.
        ///
        /// # Safety
        ///
        /// `base` is aligned to 64 bytes; `len` bytes from it stay readable and writable while `keep` lives. Nobody holds
        /// a Rust reference to them.
        ///
        /// # Panics
        ///
        /// If `base` is not aligned.
        #[must_use]
        pub unsafe fn from_raw(
            base: NonNull<u8>,
            len: usize,
            keep: Arc<dyn Any + Send + Sync>,
        ) -> Self {
            assert!(
                base.as_ptr().addr() % LINE == 0,
                "a region starts at a cache line"
            );
            Self {
                base,
                len,
                access: Access::ReadWrite,
                _keep: keep,
            }
        }

        /// As [`from_raw`](Self::from_raw), for memory that only others write: whatever would store to it panics instead.
        ///
        /// # Safety
        ///
        /// As [`from_raw`](Self::from_raw), but the bytes need not be writable.
        ///
        /// # Panics
        ///
        /// If `base` is not aligned.
        #[must_use]
        pub unsafe fn from_raw_read_only(
            base: NonNull<u8>,
            len: usize,
            keep: Arc<dyn Any + Send + Sync>,
        ) -> Self {
            // SAFETY: as the caller promised, except that the bytes may not be writable: nothing stores to them, because
            // every way to do so asks `access` first.
            let region = unsafe { Self::from_raw(base, len, keep) };
            Self {
                access: Access::ReadOnly,
                ..region
            }
        }

        /// The part of this region from `offset` on, `len` bytes long.
        ///
        /// # Panics
        ///
        /// If the part does not lie inside the region or does not start at a cache line.
        #[must_use]
        pub fn part(&self, offset: usize, len: usize) -> Self {
            assert!(
                offset % LINE == 0 && offset <= self.len && len <= self.len - offset,
                "part lies inside"
            );
            // SAFETY: offset <= len, so the result points into the same allocation or one past its end.
            let base = unsafe { self.base.add(offset) };
            Self {
                base,
                len,
                access: self.access,
                _keep: Arc::clone(&self._keep),
            }
        }

        /// Length in bytes.
        #[must_use]
        #[allow(clippy::len_without_is_empty, reason = "an empty region has no use")]
        pub fn len(&self) -> usize {
            self.len
        }

        /// The address of the first byte.
        #[must_use]
        pub fn base(&self) -> NonNull<u8> {
            self.base
        }

        /// Whether this process may store to the memory.
        #[inline]
        #[must_use]
        pub fn is_writable(&self) -> bool {
            self.access == Access::ReadWrite
        }

        /// The 8-byte word at word index `index`, to be loaded and stored.
        ///
        /// # Panics
        ///
        /// If the index lies outside, or the memory is read-only: see [`load`](Self::load).
        #[inline]
        #[must_use]
        pub fn word(&self, index: usize) -> &AtomicU64 {
            self.assert_writable();
            self.word_unchecked(index)
        }

        /// Loads the 8-byte word at word index `index`.
        ///
        /// # Panics
        ///
        /// If the index lies outside.
        #[inline]
        #[must_use]
        pub fn load(&self, index: usize, ordering: Ordering) -> u64 {
            self.word_unchecked(index).load(ordering)
        }

        /// As `word`, for the parts of this crate that asked whether the memory is writable when they were made, and for
        /// loads.
        #[inline]
        pub(crate) fn word_unchecked(&self, index: usize) -> &AtomicU64 {
            assert!(index < self.len / 8);
            // SAFETY: the index was checked, the base is aligned to 64, the memory lives as long as `self`,
            // and all access to words is atomic.
            unsafe { self.base.cast::<AtomicU64>().add(index).as_ref() }
        }

        #[inline]
        pub(crate) fn assert_writable(&self) {
            assert!(
                self.is_writable(),
                "this memory is read-only: it belongs to a peer, and can only be loaded from"
            );
        }

        /// The eight words of line number `line`. For stores as in `word_unchecked`.
        #[inline]
        pub(crate) fn line(&self, line: usize) -> &[AtomicU64; 8] {
            assert!(line < self.len / LINE);
            // SAFETY: as in `word`, for the eight words of a line whose number was checked.
            unsafe { self.base.cast::<[AtomicU64; 8]>().add(line).as_ref() }
        }

        /// Copies from word `first` of line number `line` on into `target`.
        ///
        /// A plain copy, which moves more than a word at a time: what was written word by word has to reach the cache before
        /// it can be read in larger units, and a received value is moved again at once.
        #[inline(always)]
        pub(crate) fn copy_from_line(&self, line: usize, first: usize, target: &mut [u8]) {
            assert!(line < self.len / LINE && first * 8 + target.len() <= LINE);
            // SAFETY: the bytes lie in a line inside the region, as was checked; `target` is a Rust reference, so it does
            // not overlap memory that nobody may hold references to. The control word orders this after the sender's
            // stores, and the sender writes the slot again only after it was released.
            unsafe {
                self.base
                    .add(line * LINE + first * 8)
                    .copy_to_nonoverlapping(NonNull::from(&mut *target).cast(), target.len())
            }
        }

        /// The 4-byte word at 4-byte index `index`, to be loaded and stored.
        ///
        /// # Panics
        ///
        /// If the index lies outside, or the memory is read-only.
        #[inline]
        #[must_use]
        pub fn word32(&self, index: usize) -> &AtomicU32 {
            self.assert_writable();
            self.word32_unchecked(index)
        }

        /// As `word_unchecked`, for 4 bytes.
        #[inline]
        pub(crate) fn word32_unchecked(&self, index: usize) -> &AtomicU32 {
            assert!(index < self.len / 4);
            // SAFETY: as in `word`.
            unsafe { self.base.cast::<AtomicU32>().add(index).as_ref() }
        }

        /// Copies `source` into the region at `offset`.
        ///
        /// # Safety
        ///
        /// No other thread of this process accesses these bytes meanwhile. (Other processes may: whoever shares the memory
        /// with them treats what it reads as foreign.)
        ///
        /// # Panics
        ///
        /// If it does not fit, or the memory is read-only.
        #[inline]
        pub unsafe fn copy_in(&self, offset: usize, source: &[u8]) {
            let next = self.base.as_ptr().wrapping_add(offset + source.len());
            // SAFETY: as the caller promised.
            unsafe { self.copy_in_before(offset, source, next) }
        }

        /// As [`copy_in`](Self::copy_in). The copy after this one will go to `next`, which need not be memory.
        ///
        /// # Safety
        ///
        /// As for [`copy_in`](Self::copy_in).
        #[inline]
        pub(crate) unsafe fn copy_in_before(&self, offset: usize, source: &[u8], next: *const u8) {
            self.assert_writable();
            assert!(
                offset <= self.len && source.len() <= self.len - offset,
                "copy lies inside"
            );
            // SAFETY: the range was checked; `source` is a Rust reference, so it does not overlap memory that
            // nobody may hold references to; nobody else accesses the bytes, as the caller promised.
            unsafe { copy_for_another_core(self.base.add(offset), source, next) }
        }

        /// The address of `offset`, which need not lie inside: for [`copy_in_before`](Self::copy_in_before).
        #[inline]
        pub(crate) fn address(&self, offset: usize) -> *const u8 {
            self.base.as_ptr().wrapping_add(offset)
        }

        /// Asks for the lines of `len` bytes at `offset`, which will be written next: a hint, which changes nothing.
        #[inline]
        pub(crate) fn claim(&self, offset: usize, len: usize) {
            claim(self.address(offset), len);
        }

        /// Copies from the region at `offset` into `target`.
        ///
        /// # Safety
        ///
        /// No other thread of this process writes these bytes meanwhile. (Other processes may: as in
        /// [`copy_in`](Self::copy_in).)
        ///
        /// # Panics
        ///
        /// If it reaches beyond the region.
        #[inline]
        pub unsafe fn copy_out(&self, offset: usize, target: &mut [u8]) {
            assert!(
                offset <= self.len && target.len() <= self.len - offset,
                "copy lies inside"
            );
            // SAFETY: as in `copy_in`.
            unsafe { copy_from_another_core(self.base.add(offset), target) }
        }

        /// The same to memory that is in no cache: it is written by instructions that need not read it before.
        ///
        /// # Safety
        ///
        /// As for [`copy_out`](Self::copy_out).
        ///
        /// # Panics
        ///
        /// If it reaches beyond the region.
        #[inline]
        pub unsafe fn copy_out_cold(&self, offset: usize, target: &mut [u8]) {
            assert!(
                offset <= self.len && target.len() <= self.len - offset,
                "copy lies inside"
            );
            // SAFETY: as in `copy_in`.
            unsafe {
                let source = self.base.add(offset);
                source.copy_to_nonoverlapping(NonNull::from(&mut *target).cast(), target.len());
            }
        }
    }

    /// Heap memory owned as a pointer: a `Box` would claim that nobody else writes to it.
    struct Heap {
        base: NonNull<u8>,
        layout: Layout,
    }

    // SAFETY: the memory is only freed through this value, and accessed only through regions.
    unsafe impl Send for Heap {}
    // SAFETY: as above.
    unsafe impl Sync for Heap {}

    impl Drop for Heap {
        fn drop(&mut self) {
            // SAFETY: the memory came from `alloc_zeroed` with this layout, and the last region that used it is gone.
            unsafe { dealloc(self.base.as_ptr(), self.layout) };
        }
    }

    impl fmt::Debug for Region {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.debug_struct("Region").field("len", &self.len).finish()
        }
    }
}

#[cfg(loom)]
#[allow(
    missing_docs,
    reason = "the methods are documented where they are real"
)]
mod model {
    use crate::sync::{Arc, AtomicU32, AtomicU64, Ordering};
    use loom::cell::UnsafeCell;

    /// The region of a loom model: words and bytes are separate, so that loom can follow each of them.
    #[derive(Clone, Debug)]
    pub struct Region(Arc<Model>);

    #[derive(Debug)]
    struct Model {
        lines: Vec<[AtomicU64; 8]>,
        halves: Vec<AtomicU32>,
        bytes: Vec<UnsafeCell<u8>>,
    }

    // SAFETY: loom checks the accesses to `bytes` in every interleaving it runs.
    unsafe impl Send for Model {}
    // SAFETY: as above.
    unsafe impl Sync for Model {}

    impl Region {
        pub fn heap(len: usize) -> Self {
            Self(Arc::new(Model {
                lines: (0..len.div_ceil(64))
                    .map(|_| core::array::from_fn(|_| AtomicU64::new(0)))
                    .collect(),
                halves: (0..4.min(len / 4)).map(|_| AtomicU32::new(0)).collect(),
                bytes: (0..len).map(|_| UnsafeCell::new(0)).collect(),
            }))
        }

        pub fn len(&self) -> usize {
            self.0.bytes.len()
        }

        pub(crate) fn assert_writable(&self) {}

        pub fn word(&self, index: usize) -> &AtomicU64 {
            &self.0.lines[index / 8][index % 8]
        }

        pub fn load(&self, index: usize, ordering: Ordering) -> u64 {
            self.word(index).load(ordering)
        }

        pub(crate) fn word_unchecked(&self, index: usize) -> &AtomicU64 {
            self.word(index)
        }

        pub(crate) fn line(&self, line: usize) -> &[AtomicU64; 8] {
            &self.0.lines[line]
        }

        pub(crate) fn copy_from_line(&self, line: usize, first: usize, target: &mut [u8]) {
            for (bytes, word) in target.chunks_mut(8).zip(&self.0.lines[line][first..]) {
                let word = word.load(Ordering::Relaxed).to_ne_bytes();
                bytes.copy_from_slice(&word[..bytes.len()]);
            }
        }

        pub fn word32(&self, index: usize) -> &AtomicU32 {
            &self.0.halves[index]
        }

        pub(crate) fn word32_unchecked(&self, index: usize) -> &AtomicU32 {
            self.word32(index)
        }

        pub(crate) fn claim(&self, _: usize, _: usize) {}

        pub unsafe fn copy_in(&self, offset: usize, source: &[u8]) {
            for (cell, byte) in self.0.bytes[offset..].iter().zip(source) {
                // SAFETY: loom reports an access that is not ordered.
                cell.with_mut(|cell| unsafe { *cell = *byte });
            }
        }

        pub(crate) unsafe fn copy_in_before(&self, offset: usize, source: &[u8], _: *const u8) {
            // SAFETY: as the caller promised.
            unsafe { self.copy_in(offset, source) }
        }

        pub(crate) fn address(&self, _: usize) -> *const u8 {
            core::ptr::null()
        }

        pub unsafe fn copy_out_cold(&self, offset: usize, target: &mut [u8]) {
            // SAFETY: as the caller promised.
            unsafe { self.copy_out(offset, target) }
        }

        pub unsafe fn copy_out(&self, offset: usize, target: &mut [u8]) {
            for (cell, byte) in self.0.bytes[offset..].iter().zip(target) {
                // SAFETY: loom reports an access that is not ordered.
                cell.with(|cell| unsafe { *byte = *cell });
            }
        }
    }
}
