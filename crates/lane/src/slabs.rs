//! The slabs of an arena: where there is room in them, and which to let go.
//!
//! A slab of small blocks is divided by the buddy system; a larger block has a slab of its own. The first slab with room is
//! used, so that the last ones become empty. A few empty ones are kept for the next use, the others are let go. Slab numbers are
//! never used again, so a peer's old mapping cannot be mistaken for a new slab.

use std::collections::BTreeMap;

use crate::buddy::Buddy;

/// Slabs of small blocks are 4 MiB: large enough for several 1 MiB messages, small enough to be mapped in a
/// millisecond. A model follows every byte of one.
pub(crate) const SLAB_ORDER: u32 = if cfg!(loom) { 9 } else { 22 };
/// Empty slabs of small blocks kept for the next use, 64 MiB: what one receiver may leave unread, so that a program that sends
/// such bursts again and again does not make and map memory each time.
const SPARE_SMALL: usize = if cfg!(loom) { 1 } else { 16 };
/// Large slabs kept for the next use.
const SPARE_LARGE: usize = 4;

/// All slabs of an arena.
#[derive(Debug)]
pub(crate) struct Slabs<S> {
    known: BTreeMap<u32, Slab<S>>,
    next: u32,
    /// Slabs of small blocks.
    small: usize,
    /// Slabs that were let go since peers were last told.
    pub(crate) dropped: Vec<u32>,
}

#[derive(Debug)]
struct Slab<S> {
    shared: S,
    bytes: usize,
    free: usize,
    /// `None` for a slab that is one large block.
    buddy: Option<Buddy>,
}

impl<S> Slab<S> {
    fn is_empty(&self) -> bool {
        self.free == self.bytes
    }
}

impl<S> Slabs<S> {
    pub(crate) fn new() -> Self {
        Self {
            known: BTreeMap::new(),
            next: 0,
            small: 0,
            dropped: Vec::new(),
        }
    }

    /// Bytes of the slab for a block of `2^order` bytes.
    pub(crate) fn bytes_for(order: u32) -> usize {
        1 << order.max(SLAB_ORDER)
    }

    /// Adds the memory of a slab that was made for a block of `2^order` bytes.
    pub(crate) fn add(&mut self, order: u32, shared: S) {
        let bytes = Self::bytes_for(order);
        let is_small = order <= SLAB_ORDER;
        self.small += usize::from(is_small);
        let slab = Slab {
            shared,
            bytes,
            free: bytes,
            buddy: is_small.then(|| Buddy::new(SLAB_ORDER)),
        };
        self.known.insert(self.next, slab);
        self.next += 1;
    }

    /// Room for a block of `2^order` bytes: the number of a slab, and the offset in it.
    pub(crate) fn take(&mut self, order: u32) -> Option<(u32, usize)> {
        let bytes = 1usize << order;
        for (number, slab) in &mut self.known {
            if slab.free < bytes {
                continue;
            }
            let offset = match &mut slab.buddy {
                Some(buddy) if order <= SLAB_ORDER => buddy.take(order),
                None if slab.bytes == bytes => Some(0),
                _ => None,
            };
            if let Some(offset) = offset {
                slab.free -= bytes;
                return Some((*number, offset));
            }
        }
        None
    }

    /// Gives back a block that was taken.
    pub(crate) fn give(&mut self, number: u32, offset: usize, order: u32) {
        let slab = self.known.get_mut(&number);
        let slab = slab.expect("a slab with a block in use is never dropped");
        slab.free += 1 << order;
        if let Some(buddy) = &mut slab.buddy {
            buddy.give(offset, order);
        }
        if slab.is_empty() {
            let (is_small, most) = match slab.buddy {
                Some(_) => (true, SPARE_SMALL),
                None => (false, SPARE_LARGE),
            };
            self.drop_spare(is_small, most);
        }
    }

    /// Lets empty slabs of a kind go, the oldest of the large and the newest of the small ones, until there are no more than
    /// `most`.
    fn drop_spare(&mut self, is_small: bool, most: usize) {
        let is_spare = |slab: &Slab<S>| slab.is_empty() && slab.buddy.is_some() == is_small;
        if self.known.values().filter(|slab| is_spare(slab)).count() <= most {
            return;
        }
        let spare = self.known.iter().filter(|(_, slab)| is_spare(slab));
        let spare: Vec<u32> = spare.map(|(number, _)| *number).collect();
        let surplus = spare.len().saturating_sub(most);
        let go = if is_small {
            &spare[spare.len() - surplus..]
        } else {
            &spare[..surplus]
        };
        for number in go {
            self.known.remove(number);
            self.small -= usize::from(is_small);
            self.dropped.push(*number);
        }
    }

    /// Whether there are more slabs of small blocks than would be kept empty.
    pub(crate) fn has_excess(&self) -> bool {
        self.small > SPARE_SMALL
    }

    /// The memory of a slab.
    pub(crate) fn shared(&self, number: u32) -> Option<&S> {
        self.known.get(&number).map(|slab| &slab.shared)
    }

    /// Bytes of memory of all slabs.
    pub(crate) fn bytes(&self) -> usize {
        self.known.values().map(|slab| slab.bytes).sum()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const CHUNK: u32 = 16;

    #[test]
    fn slabs_that_came_back_are_used_first_and_those_beyond_some_are_let_go() {
        let mut slabs = Slabs::new();
        let mut taken = Vec::new();
        let wanted = (3 * SPARE_SMALL) << (SLAB_ORDER - CHUNK);
        while taken.len() < wanted {
            match slabs.take(CHUNK) {
                Some(place) => taken.push(place),
                None => slabs.add(CHUNK, ()),
            }
        }
        assert_eq!(slabs.bytes(), (3 * SPARE_SMALL) << SLAB_ORDER);
        assert!(slabs.has_excess());
        for (number, offset) in taken {
            slabs.give(number, offset, CHUNK);
        }
        assert_eq!(slabs.bytes(), SPARE_SMALL << SLAB_ORDER);
        assert!(!slabs.has_excess());
        assert_eq!(slabs.dropped.len(), 2 * SPARE_SMALL);
        // Numbers are not used again.
        assert!(slabs.take(CHUNK).is_some());
        while slabs.take(SLAB_ORDER).is_some() {}
        slabs.add(SLAB_ORDER, ());
        let (number, _) = slabs.take(SLAB_ORDER).unwrap();
        assert_eq!(number as usize, 3 * SPARE_SMALL);
    }
}
