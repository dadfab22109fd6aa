//! The table by which a long message is read while it is still being written.
//!
//! A long message goes through chunks of the sender's arena. Its manifest, memory of the same arena, says which chunks they
//! are and how many bytes of the message are in them by now. The sender writes it, the receiver reads it.
//!
//! It has an entry for each chunk that may be at the receiver at once. In a message of more chunks the entries go round: an
//! entry is written again when its chunk has come back, and so has been read by then.
//!
//! | offset | word | ordering |
//! | --- | --- | --- |
//! | 0 | `filled`: bytes written so far, or [`ABANDONED`] | release / acquire: chunks and entries before it |
//! | 8 | how many entries there are | relaxed; ordered by the lane that announces the message |
//! | 16 | where the message lies in the sender's own memory, while its receiver may read it there; or 0 | offered before the announcement; withdrawn, then a fence, then the receiver's word: `filling.rs` |
//! | 24, 32 | where the sender has a word that nobody else has there, and the word | relaxed; ordered by the announcement |
//! | 64 + 8·i | slab (low half) and offset (high half) of chunk i, i plus the number of entries, … | relaxed; ordered by `filled` |

use crate::region::Region;
use crate::returns::MOST_CHUNKS;
use crate::sync::{Ordering, fence};

/// Bytes of one chunk: long enough that taking one costs little, short enough that a few of them stay in the caches of two
/// cores. A model follows every byte, and has smaller ones.
pub(crate) const CHUNK: usize = if cfg!(loom) { 2 } else { 64 << 10 };

/// In the place of a count: the rest will not come.
const ABANDONED: u64 = u64::MAX;

/// The first word of the offer.
const OFFER: usize = 2;
const ENTRIES_AT: usize = 64;

/// A message as its sender has it in memory of its own, for a receiver that can read that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The address of its first byte.
    pub at: u64,
    /// The address of the word that proves that it is the sender's memory that was read.
    pub proof_at: u64,
    /// That word.
    pub proof: u64,
}

/// The manifest of one long message.
#[derive(Clone, Debug)]
pub(crate) struct Manifest {
    region: Region,
    /// Where it begins, in words.
    at: usize,
    entries: usize,
    len: usize,
}

impl Manifest {
    /// Bytes of a manifest of so many entries.
    pub(crate) const fn bytes(entries: usize) -> usize {
        ENTRIES_AT + entries * 8
    }

    /// Sender: the manifest at `offset` of a region, of a message of `len` bytes.
    ///
    /// # Panics
    ///
    /// If it does not lie inside.
    pub(crate) fn new(region: Region, offset: usize, entries: usize, len: usize) -> Self {
        let manifest = Self::within(region, offset, entries, len);
        manifest.expect("the arena made it inside the region")
    }

    /// Sender: nothing is filled yet.
    ///
    /// # Panics
    ///
    /// If this is the receiver's view of it; so do `enter`, `tell` and `abandon`.
    pub(crate) fn begin(&self) {
        let entries = self.region.word(self.at + 1);
        entries.store(self.entries as u64, Ordering::Relaxed);
        self.set(OFFER, 0);
        self.tell(0);
    }

    /// Sender, before the message is announced: the receiver may read it where it lies.
    pub(crate) fn offer(&self, offer: Offer) {
        self.set(OFFER + 1, offer.proof_at);
        self.set(OFFER + 2, offer.proof);
        self.set(OFFER, offer.at);
    }

    /// Sender: the receiver may not begin to read the message where it lies any more. If it has begun, it has said so, and whoever looks
    /// for that after this sees it.
    pub(crate) fn withdraw_offer(&self) {
        self.set(OFFER, 0);
        // With the fence in `offered`, of both sides at least one sees what the other wrote.
        fence(Ordering::SeqCst);
    }

    /// Receiver, after it has said that it begins, or has read: what the sender offers, if it still does.
    pub(crate) fn offered(&self) -> Option<Offer> {
        fence(Ordering::SeqCst);
        let word = |word| self.region.load(self.at + word, Ordering::Relaxed);
        let at = word(OFFER);
        (at != 0).then(|| Offer {
            at,
            proof_at: word(OFFER + 1),
            proof: word(OFFER + 2),
        })
    }

    fn set(&self, word: usize, value: u64) {
        self.region
            .word(self.at + word)
            .store(value, Ordering::Relaxed);
    }

    /// Receiver: the manifest at `offset` of a region, of a message of `len` bytes; `None` if it does not lie inside, or cannot
    /// be one.
    pub(crate) fn open(region: Region, offset: usize, len: usize) -> Option<Self> {
        let header = Self::within(region, offset, 0, len)?;
        // Loaded once: what follows from it stays true.
        let entries = header.region.load(header.at + 1, Ordering::Relaxed);
        let entries = usize::try_from(entries).ok()?;
        let most = chunks(len).min(MOST_CHUNKS);
        if entries == 0 || entries > most {
            return None;
        }
        Self::within(header.region, offset, entries, len)
    }

    fn within(region: Region, offset: usize, entries: usize, len: usize) -> Option<Self> {
        let end = offset.checked_add(Self::bytes(entries))?;
        (offset % 8 == 0 && end <= region.len()).then_some(Self {
            region,
            at: offset / 8,
            entries,
            len,
        })
    }

    /// Length of the message.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// How many chunks may be at the receiver at once.
    pub(crate) fn entries(&self) -> usize {
        self.entries
    }

    /// Whether all of the message may be.
    pub(crate) fn holds_all(&self) -> bool {
        self.entries == chunks(self.len)
    }

    /// Sender: enters the place of a chunk. It counts when bytes in it are told as filled.
    pub(crate) fn enter(&self, chunk: usize, slab: u32, offset: usize) {
        let place = u64::from(slab) | (offset as u64) << 32;
        self.region
            .word(self.entry(chunk))
            .store(place, Ordering::Relaxed);
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
        self.withdraw_offer();
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

    /// Receiver: slab and offset of a chunk of which bytes are there. What the sender wrote is checked by whoever uses it.
    pub(crate) fn chunk(&self, chunk: usize) -> (u32, usize) {
        let place = self.region.load(self.entry(chunk), Ordering::Relaxed);
        (place as u32, (place >> 32) as usize)
    }

    /// Where the entry of a chunk is.
    fn entry(&self, chunk: usize) -> usize {
        self.at + ENTRIES_AT / 8 + chunk % self.entries
    }
}

/// Chunks of a message of `len` bytes. An empty one has one too.
pub(crate) const fn chunks(len: usize) -> usize {
    if len == 0 { 1 } else { len.div_ceil(CHUNK) }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn what_was_entered_is_read() {
        let len = 9 * CHUNK + 1;
        let region = Region::heap(4096 + Manifest::bytes(4));
        let manifest = Manifest::new(region.clone(), 4096, 4, len);
        manifest.begin();
        assert_eq!(manifest.filled(), Some(0));
        for chunk in 0..10 {
            manifest.enter(chunk, chunk as u32, 4096 * chunk);
        }
        manifest.tell(CHUNK + 5);
        let read = Manifest::open(region, 4096, len).unwrap();
        assert_eq!(read.filled(), Some(CHUNK + 5));
        assert!(read.entries() == 4 && !read.holds_all());
        // The last four are there.
        for chunk in 6..10 {
            assert_eq!(read.chunk(chunk), (chunk as u32, 4096 * chunk));
        }
        manifest.abandon();
        assert_eq!(read.filled(), None);
    }

    #[test]
    fn a_manifest_outside_its_region_or_with_nonsense_in_it_is_none() {
        let region = Region::heap(4096);
        let entries = |count: u64| region.word(1).store(count, Ordering::Relaxed);
        let open = |offset, len| Manifest::open(region.clone(), offset, len);
        for (count, len) in [
            (0, CHUNK),
            (2, CHUNK),
            (600, 600 * CHUNK),
            (u64::MAX, usize::MAX),
        ] {
            entries(count);
            assert!(open(0, len).is_none(), "{count} entries");
        }
        entries(1);
        assert!(open(usize::MAX - 7, 1).is_none());
        assert!(open(4, 1).is_none());
        let manifest = open(0, CHUNK).unwrap();
        manifest.tell(usize::MAX - 1);
        assert_eq!(manifest.filled(), Some(CHUNK));
        manifest.chunk(usize::MAX);
    }
}
