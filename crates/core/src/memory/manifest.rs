//! The table by which a long message is read while it is still being written.
//!
//! A long message goes through chunks of the sender's arena. Its manifest, a block of the same arena, says which chunks they
//! are and how many bytes of the message are in them by now. The sender writes it, the receiver reads it.
//!
//! | offset | word | ordering |
//! | --- | --- | --- |
//! | 0 | `filled`: bytes written so far, or [`ABANDONED`] | release / acquire: chunks and entries before it |
//! | 64 + 24·i | slab (low half) and number (high half) of chunk i | relaxed; ordered by `filled` |
//! | 72 + 24·i | its offset in the slab | the same |
//! | 80 + 24·i | its loan | the same |

use std::sync::atomic::Ordering;

use mizzen_lane::Region;

use super::ticket::LoanTicket;

/// Bytes of one chunk: long enough that taking one costs little, short enough that a few of them stay in the caches of two
/// cores.
pub(crate) const CHUNK: usize = 64 << 10;

/// In the place of a count: the rest will not come.
const ABANDONED: u64 = u64::MAX;

const ENTRIES_AT: usize = 64;
const ENTRY_WORDS: usize = 3;

/// The manifest of one long message.
#[derive(Clone, Debug)]
pub(crate) struct Manifest {
    region: Region,
    /// Where it begins, in words.
    at: usize,
    len: usize,
}

impl Manifest {
    /// Bytes of the manifest of a message of `len` bytes.
    pub(crate) const fn bytes(len: usize) -> usize {
        ENTRIES_AT + chunks(len) * ENTRY_WORDS * 8
    }

    /// The manifest at `offset` of a region, of a message of `len` bytes; `None` if it does not lie inside.
    pub(crate) fn new(region: Region, offset: usize, len: usize) -> Option<Self> {
        let end = offset.checked_add(Self::bytes(len))?;
        (offset % 8 == 0 && end <= region.len()).then_some(Self {
            region,
            at: offset / 8,
            len,
        })
    }

    /// Length of the message.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Sender: enters the place of a chunk. It counts when bytes in it are told as filled.
    pub(crate) fn enter(&self, chunk: usize, ticket: LoanTicket) {
        let names = u64::from(ticket.slab) | u64::from(ticket.number) << 32;
        for (index, word) in [names, ticket.offset, ticket.loan].into_iter().enumerate() {
            let at = self.entry(chunk, index);
            self.region.word(at).store(word, Ordering::Relaxed);
        }
    }

    /// Sender: so many bytes are written.
    pub(crate) fn tell(&self, filled: usize) {
        // Release pairs with the acquire in `filled`.
        self.region
            .word(self.at)
            .store(filled as u64, Ordering::Release);
    }

    /// Sender: the rest will not come.
    pub(crate) fn abandon(&self) {
        self.region
            .word(self.at)
            .store(ABANDONED, Ordering::Release);
    }

    /// Receiver: how many bytes are there; `None` if the rest will not come.
    #[inline]
    pub(crate) fn filled(&self) -> Option<usize> {
        // Acquire pairs with the release in `tell`.
        match self.region.load(self.at, Ordering::Acquire) {
            ABANDONED => None,
            filled => Some((filled as usize).min(self.len)),
        }
    }

    /// Receiver: the place of a chunk of which bytes are there. What the sender wrote is checked by whoever uses it.
    pub(crate) fn chunk(&self, chunk: usize) -> LoanTicket {
        let word = |index| {
            self.region
                .load(self.entry(chunk, index), Ordering::Relaxed)
        };
        let names = word(0);
        LoanTicket {
            slab: names as u32,
            number: (names >> 32) as u32,
            offset: word(1),
            len: CHUNK as u64,
            loan: word(2),
        }
    }

    /// Where a word of a chunk's entry is.
    fn entry(&self, chunk: usize, index: usize) -> usize {
        let chunk = chunk.min(chunks(self.len).saturating_sub(1));
        self.at + ENTRIES_AT / 8 + chunk * ENTRY_WORDS + index
    }
}

/// Chunks of a message of `len` bytes.
const fn chunks(len: usize) -> usize {
    len.div_ceil(CHUNK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_entered_is_read() {
        let len = 3 * CHUNK + 1;
        let region = Region::heap(4096 + Manifest::bytes(len));
        let manifest = Manifest::new(region.clone(), 4096, len).unwrap();
        let ticket = |chunk: u32| LoanTicket {
            slab: chunk,
            number: 7 + chunk,
            offset: 4096 * u64::from(chunk),
            len: CHUNK as u64,
            loan: 1 << 40,
        };
        assert_eq!(manifest.filled(), Some(0));
        for chunk in 0..4 {
            manifest.enter(chunk as usize, ticket(chunk));
        }
        manifest.tell(CHUNK + 5);
        assert_eq!(manifest.filled(), Some(CHUNK + 5));
        for chunk in 0..4 {
            assert_eq!(manifest.chunk(chunk as usize), ticket(chunk));
        }
        manifest.abandon();
        assert_eq!(manifest.filled(), None);
    }

    #[test]
    fn a_manifest_outside_its_region_or_with_too_large_a_count_does_no_harm() {
        let len = 200 * CHUNK;
        let region = Region::heap(4096);
        assert!(Manifest::new(region.clone(), 0, len).is_none());
        assert!(Manifest::new(region.clone(), usize::MAX - 7, 1).is_none());
        assert!(Manifest::new(region.clone(), 4, 1).is_none());
        let manifest = Manifest::new(region, 0, CHUNK).unwrap();
        manifest.tell(usize::MAX - 1);
        assert_eq!(manifest.filled(), Some(CHUNK));
        manifest.chunk(usize::MAX);
    }
}
