//! Memory that all participants map. `layout.rs` says who uses which part of it.
//!
//! The front end makes it and keeps its descriptor; it has no name in a file system, so nothing is left behind.
#![allow(unsafe_code)]

use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use anyhow::Context;
use mizzen_shm::{Access, Fault, Segment, View};

use super::layout::{BYTES, TOLD};

/// The maker's hold on the memory.
pub(crate) struct Source(Segment);

impl Source {
    pub(crate) fn make() -> anyhow::Result<Self> {
        let made = Segment::create_open("mizzen bench", BYTES, Fault::OnTouch);
        Ok(Self(made.context("no memory for the measurement")?))
    }

    /// Where other processes of this host find it, as long as this lives.
    pub(crate) fn path(&self) -> String {
        let (process, fd) = (std::process::id(), self.0.fd().as_raw_fd());
        format!("/proc/{process}/fd/{fd}")
    }
}

/// The memory, mapped by a participant until its process ends: what is found in it needs no bookkeeping in timed loops.
#[derive(Clone, Copy)]
pub(crate) struct Memory(&'static View);

impl Memory {
    pub(crate) fn open(path: &str) -> anyhow::Result<Self> {
        let file = std::fs::File::options().read(true).write(true).open(path);
        let file = file.with_context(|| {
            format!("the memory of the measurement cannot be opened at {path}; start it with `mizzen bench`")
        })?;
        let view = View::attach(file.into(), BYTES, Access::ReadWrite, Fault::Now)
            .context("the memory of the measurement cannot be mapped")?;
        Ok(Self(Box::leak(Box::new(view))))
    }

    /// The word at byte `offset`.
    pub(crate) fn word(self, offset: usize) -> &'static AtomicU64 {
        assert!(offset % 8 == 0 && offset < BYTES);
        // SAFETY: it lies in the mapping, which is never given back, and is aligned; words are accessed atomically by all.
        unsafe { self.0.as_ptr().add(offset).cast().as_ref() }
    }

    /// The half word at byte `offset`, to sleep on.
    pub(crate) fn half(self, offset: usize) -> &'static AtomicU32 {
        assert!(offset % 4 == 0 && offset < BYTES);
        // SAFETY: as for `word`; no half word is also used as part of a word, but for `clear`, when nobody else looks.
        unsafe { self.0.as_ptr().add(offset).cast().as_ref() }
    }

    /// `COUNT` lines from byte `offset` on.
    pub(crate) fn lines<const COUNT: usize>(
        self,
        offset: usize,
    ) -> &'static [[AtomicU64; 8]; COUNT] {
        assert!(offset % 64 == 0 && offset + COUNT * 64 <= BYTES);
        // SAFETY: as for `word`.
        unsafe { self.0.as_ptr().add(offset).cast().as_ref() }
    }

    /// The bytes from `offset` on, `len` of which are in the mapping, for those who copy.
    pub(crate) fn bytes(self, offset: usize, len: usize) -> NonNull<u8> {
        assert!(offset <= BYTES && len <= BYTES - offset);
        // SAFETY: the result lies in the mapping or one past its end.
        unsafe { self.0.as_ptr().add(offset) }
    }

    /// Sets everything behind the meeting to zero, while nobody else uses it.
    pub(crate) fn clear(self) {
        for offset in (TOLD..BYTES).step_by(8) {
            self.word(offset).store(0, Ordering::Relaxed);
        }
    }
}
