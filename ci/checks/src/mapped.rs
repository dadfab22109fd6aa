//! A file mapped by several processes: words that outlive whoever wrote them, and that no lane is in the way of.
#![allow(unsafe_code)]

use std::fs::File;
use std::sync::atomic::AtomicU64;

use rustix::mm::{MapFlags, ProtFlags, mmap};

/// Words of a mapped file, for the life of the process.
pub struct Mapped {
    words: &'static [AtomicU64],
}

impl Mapped {
    /// Maps `words` words of the file at `path`, which is made if it is not there.
    ///
    /// # Errors
    ///
    /// If the file cannot be made or mapped.
    pub fn open(path: &str, words: usize) -> std::io::Result<Self> {
        let bytes = words * size_of::<AtomicU64>();
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)?;
        file.set_len(bytes as u64)?;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        // SAFETY: a fresh mapping of a file of this size, which overlaps nothing.
        let memory = unsafe { mmap(std::ptr::null_mut(), bytes, access, flags, &file, 0)? };
        // SAFETY: the mapping holds that many words, is aligned to a page and is never unmapped; all access, also by other
        // processes, is atomic.
        let words = unsafe { std::slice::from_raw_parts(memory.cast::<AtomicU64>(), words) };
        Ok(Self { words })
    }

    /// A word.
    #[must_use]
    pub fn word(&self, index: usize) -> &AtomicU64 {
        &self.words[index]
    }
}
