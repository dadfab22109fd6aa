//! Memory beside a slate, for what does not fit into its lines: a place for each line, which is used in the same turns.
//!
//! | what | who writes | who reads | ordered by |
//! | --- | --- | --- | --- |
//! | the place of a turn | the owner, before it shows the turn | all others, when they have seen the turn shown | the number of the turn in the slate's line |
//! | the same place again | the owner, when all others have shown that they are done with the turn | | the numbers of their turns |
//!
//! As with lent buffers, others read in place: what is there are plain values, which may be any bytes.
#![allow(unsafe_code)]

use crate::arena::Backing;
use crate::block::Block;
use crate::region::Region;

/// The places of one member.
#[derive(Clone, Debug)]
pub struct Tray {
    region: Region,
    first: usize,
    places: usize,
    each: usize,
}

impl Tray {
    /// A tray of `places` places of `each` bytes, at an offset of a region. `None` if it does not lie inside, or values in it would not be aligned.
    #[must_use]
    pub fn new(region: Region, offset: usize, places: usize, each: usize) -> Option<Self> {
        let end = each
            .checked_mul(places)
            .and_then(|bytes| bytes.checked_add(offset))?;
        let fits = places > 0 && end <= region.len();
        (fits && offset % 64 == 0 && each % 64 == 0).then_some(Self {
            region,
            first: offset,
            places,
            each,
        })
    }

    /// The tray that a block of one's own is. `None` if the block is too short.
    #[must_use]
    pub fn of<B: Backing>(block: &Block<B>, places: usize, each: usize) -> Option<Self> {
        let (region, offset) = block.memory();
        (block.len() >= each.checked_mul(places)?)
            .then(|| Self::new(region, offset, places, each))?
    }

    /// Owner: writes `bytes` into the place of a turn, `at` bytes behind its beginning.
    ///
    /// # Safety
    ///
    /// The owner has not shown the turn yet, and all others are done with the one that had the place before.
    ///
    /// # Panics
    ///
    /// If they do not fit.
    #[inline]
    pub unsafe fn fill(&self, turn: u64, at: usize, bytes: &[u8]) {
        let offset = self.place(turn, at, bytes.len());
        // SAFETY: nobody reads the place, as the caller promised.
        unsafe { self.region.copy_in(offset, bytes) };
    }

    /// Others: `len` bytes of the place of a turn, `at` bytes behind its beginning.
    ///
    /// # Safety
    ///
    /// The owner was seen to have shown the turn, and keeps the place as it is while the slice lives: until this member has shown that it is done with the turn.
    ///
    /// # Panics
    ///
    /// If they lie outside the place.
    #[cfg(not(loom))]
    #[inline]
    #[must_use]
    pub unsafe fn view(&self, turn: u64, at: usize, len: usize) -> &[u8] {
        let offset = self.place(turn, at, len);
        // SAFETY: `place` has checked the range against the place, and `new` the places against the region; nobody of this process writes them meanwhile, as
        // the caller promised. (Another process that breaks the rules changes plain values, of which any bytes are.)
        unsafe { core::slice::from_raw_parts(self.region.base().add(offset).as_ptr(), len) }
    }

    /// Whether it is another process's, mapped here to be read.
    #[cfg(not(loom))]
    #[must_use]
    pub fn is_foreign(&self) -> bool {
        !self.region.is_writable()
    }

    fn place(&self, turn: u64, at: usize, len: usize) -> usize {
        assert!(
            at <= self.each && len <= self.each - at,
            "a place has {} bytes",
            self.each
        );
        self.first + (turn % self.places as u64) as usize * self.each + at
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn places_are_used_in_turn() {
        let tray = Tray::new(Region::heap(1024), 128, 3, 64).unwrap();
        for turn in 1..=4 {
            // SAFETY: there is nobody else.
            unsafe { tray.fill(turn, 8, &[turn as u8; 16]) };
        }
        // SAFETY: as above.
        let of = |turn| unsafe { tray.view(turn, 8, 16) };
        assert_eq!(
            (of(2), of(3), of(4)),
            (&[2; 16][..], &[3; 16][..], &[4; 16][..])
        );
        assert_eq!(of(1), [4; 16]);
    }

    #[test]
    fn a_tray_lies_inside_its_region() {
        let region = Region::heap(1024);
        assert!(Tray::new(region.clone(), 0, 16, 64).is_some());
        assert!(Tray::new(region.clone(), 64, 16, 64).is_none());
        assert!(Tray::new(region.clone(), 8, 1, 64).is_none());
        assert!(Tray::new(region.clone(), 0, 0, 64).is_none());
        assert!(Tray::new(region, 0, usize::MAX, 64).is_none());
    }

    #[test]
    #[should_panic(expected = "a place has 64 bytes")]
    fn nothing_is_read_beyond_a_place() {
        let tray = Tray::new(Region::heap(1024), 0, 2, 64).unwrap();
        // SAFETY: there is nobody else.
        let _ = unsafe { tray.view(0, 60, 5) };
    }
}
