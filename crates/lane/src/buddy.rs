//! The buddy system: divides a slab into blocks of powers of two, and joins free neighbours again.

/// The smallest block, as a power of two: a page, so that blocks suit every type's alignment.
/// A model follows every byte, and has smaller ones.
const MIN_ORDER: u32 = if cfg!(loom) { 6 } else { 12 };

/// Every block begins at a multiple of this.
pub(crate) const BLOCK_ALIGN: usize = 1 << MIN_ORDER;

/// Which parts of one slab are free.
#[derive(Debug)]
pub(crate) struct Buddy {
    /// By order above the smallest.
    free: Vec<Level>,
    order: u32,
}

/// The free blocks of one order.
#[derive(Clone, Debug)]
struct Level {
    /// A bit for each block.
    bits: Vec<u64>,
    count: usize,
}

impl Level {
    fn new(blocks: usize) -> Self {
        Self {
            bits: vec![0; blocks.div_ceil(u64::BITS as usize)],
            count: 0,
        }
    }

    fn add(&mut self, block: usize) {
        self.bits[block / 64] |= 1 << (block % 64);
        self.count += 1;
    }

    /// Whether it was there.
    fn remove(&mut self, block: usize) -> bool {
        let (word, bit) = (&mut self.bits[block / 64], 1 << (block % 64));
        let was = *word & bit != 0;
        *word &= !bit;
        self.count -= usize::from(was);
        was
    }

    fn take_first(&mut self) -> Option<usize> {
        if self.count == 0 {
            return None;
        }
        let word = self.bits.iter().position(|word| *word != 0)?;
        let block = word * 64 + self.bits[word].trailing_zeros() as usize;
        self.remove(block);
        Some(block)
    }
}

impl Buddy {
    /// A slab of `2^order` bytes, all free.
    pub(crate) fn new(order: u32) -> Self {
        assert!(order >= MIN_ORDER, "a slab holds at least one block");
        let levels = (MIN_ORDER..=order).map(|level| Level::new(1 << (order - level)));
        let mut buddy = Self {
            free: levels.collect(),
            order,
        };
        buddy.level(order).add(0);
        buddy
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
        let (from, block) =
            (order..=self.order).find_map(|from| Some((from, self.level(from).take_first()?)))?;
        let offset = block << from;
        // Split until it fits; the upper halves stay free.
        for half in (order..from).rev() {
            self.level(half).add((offset >> half) + 1);
        }
        Some(offset)
    }

    /// Gives a block back.
    pub(crate) fn give(&mut self, offset: usize, mut order: u32) {
        let mut block = offset >> order;
        while order < self.order && self.level(order).remove(block ^ 1) {
            block >>= 1;
            order += 1;
        }
        self.level(order).add(block);
    }

    /// Whether nothing is taken.
    #[cfg(test)]
    fn is_whole(&mut self) -> bool {
        let order = self.order;
        self.level(order).count == 1
    }

    fn level(&mut self, order: u32) -> &mut Level {
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
    fn whatever_the_order_in_which_they_come_back_they_join() {
        const ORDER: u32 = 22;
        let mut random = 0x9E37_79B9_u64;
        let mut random = |below: usize| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (random >> 33) as usize % below
        };
        let mut buddy = Buddy::new(ORDER);
        // Which pages are taken, by our own account.
        let mut pages = vec![false; 1 << (ORDER - MIN_ORDER)];
        let mut taken = Vec::new();
        let of = |offset: usize, order: u32| {
            let first = offset >> MIN_ORDER;
            first..first + (1 << (order - MIN_ORDER))
        };
        for _ in 0..20_000 {
            let order = MIN_ORDER + random(8) as u32;
            if random(2) == 0 && !taken.is_empty() {
                let (offset, order) = taken.swap_remove(random(taken.len()));
                pages[of(offset, order)].fill(false);
                buddy.give(offset, order);
            } else if let Some(offset) = buddy.take(order) {
                assert_eq!(offset % (1 << order), 0);
                let place = &mut pages[of(offset, order)];
                assert!(place.iter().all(|is_taken| !is_taken));
                place.fill(true);
                taken.push((offset, order));
            } else {
                let free = pages.chunks(1 << (order - MIN_ORDER));
                let mut free = free.filter(|place| place.iter().all(|is_taken| !is_taken));
                assert!(free.next().is_none(), "there was room");
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
