//! The buddy system: divides a slab into blocks of powers of two, and joins free neighbours again.

use std::collections::BTreeSet;

/// The smallest block, as a power of two: a page, so that blocks suit every type's alignment.
/// A model follows every byte, and has smaller ones.
const MIN_ORDER: u32 = if cfg!(loom) { 6 } else { 12 };

/// Every block begins at a multiple of this.
pub(crate) const BLOCK_ALIGN: usize = 1 << MIN_ORDER;

/// Which parts of one slab are free.
#[derive(Debug)]
pub(crate) struct Buddy {
    /// Offsets of free blocks, by order above the smallest.
    free: Vec<BTreeSet<usize>>,
    order: u32,
}

impl Buddy {
    /// A slab of `2^order` bytes, all free.
    pub(crate) fn new(order: u32) -> Self {
        assert!(order >= MIN_ORDER, "a slab holds at least one block");
        let mut free = vec![BTreeSet::new(); (order - MIN_ORDER + 1) as usize];
        free[(order - MIN_ORDER) as usize].insert(0);
        Self { free, order }
    }

    /// The order of the block that holds `len` bytes.
    pub(crate) fn order_for(len: usize) -> u32 {
        len.max(1)
            .next_power_of_two()
            .trailing_zeros()
            .max(MIN_ORDER)
    }

    /// Takes a block of `2^order` bytes; its offset.
    pub(crate) fn take(&mut self, order: u32) -> Option<usize> {
        let from = (order..=self.order).find(|order| !self.level(*order).is_empty())?;
        let offset = self.level(from).pop_first()?;
        // Split until it fits; the upper halves stay free.
        for half in (order..from).rev() {
            self.level(half).insert(offset + (1 << half));
        }
        Some(offset)
    }

    /// Gives a block back.
    pub(crate) fn give(&mut self, mut offset: usize, mut order: u32) {
        while order < self.order && self.level(order).remove(&(offset ^ (1 << order))) {
            offset &= !(1 << order);
            order += 1;
        }
        self.level(order).insert(offset);
    }

    /// Whether nothing is taken.
    #[cfg(test)]
    fn is_whole(&mut self) -> bool {
        let order = self.order;
        !self.level(order).is_empty()
    }

    fn level(&mut self, order: u32) -> &mut BTreeSet<usize> {
        &mut self.free[(order - MIN_ORDER) as usize]
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn blocks_do_not_overlap_and_join_again() {
        let mut buddy = Buddy::new(16);
        let mut taken = Vec::new();
        while let Some(offset) = buddy.take(12 + (taken.len() as u32 % 3)) {
            taken.push((offset, 12 + (taken.len() as u32 % 3)));
        }
        for (index, (offset, order)) in taken.iter().enumerate() {
            for (other, other_order) in &taken[index + 1..] {
                assert!(offset + (1 << order) <= *other || other + (1 << other_order) <= *offset);
            }
        }
        for (offset, order) in taken {
            buddy.give(offset, order);
        }
        assert!(buddy.is_whole());
    }

    #[test]
    fn a_slab_that_is_full_gives_nothing() {
        let mut buddy = Buddy::new(13);
        assert_eq!(buddy.take(13), Some(0));
        assert_eq!(buddy.take(12), None);
    }
}
