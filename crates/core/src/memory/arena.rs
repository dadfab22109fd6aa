//! The arena: memory of this process in which lent buffers and long messages are made.
//!
//! It consists of slabs: one for each few megabytes of small blocks, one for each large block. A peer maps a slab when it
//! first gets a block of it. A block handed to a peer is *out* until the peer has given it back, which the arena
//! notices when it next needs memory. A dead peer's blocks come back at once.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use mizzen_lane::{Region, Returns};

use super::buddy::Buddy;
use super::share::{Memory, Shared};
use crate::error::ArenaError;
use crate::rank::ProcessId;

/// Number of a slab within its arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SlabId(pub(crate) u32);

/// What a block is for: the two have separate limits, so that a burst of long messages cannot starve lending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Lend,
    LongMessage,
}

/// Memory of one process for lent buffers and long messages.
#[derive(Debug)]
pub(crate) struct Arena {
    memory: Memory,
    state: Mutex<State>,
    /// Whether slabs were dropped that peers still keep.
    has_dropped: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    slabs: Vec<Option<Slab>>,
    blocks: Vec<Block>,
    free_numbers: Vec<u32>,
    /// Blocks at peers, the oldest first.
    out: VecDeque<Out>,
    /// Blocks that came back and are kept whole for the next use.
    spare: Vec<u32>,
    /// Bytes of blocks in use, by purpose.
    used: [usize; 2],
    /// Bytes and blocks that were promised to long messages and are not taken yet.
    reserved: Reserved,
    /// Slabs that were dropped since peers were last told.
    dropped: Vec<SlabId>,
}

#[derive(Debug)]
struct Slab {
    shared: Shared,
    /// `None` for a slab that is one large block.
    buddy: Option<Buddy>,
    large_taken: bool,
}

#[derive(Clone, Copy, Debug)]
struct Block {
    slab: u32,
    offset: usize,
    order: u32,
    /// How often the block number was lent, so that an old return cannot free a new loan.
    loan: u64,
    purpose: Purpose,
}

/// Memory that was promised, and will be taken without waiting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reserved {
    pub(crate) bytes: usize,
    pub(crate) blocks: usize,
}

/// A block at a peer.
#[derive(Debug)]
struct Out {
    number: u32,
    loan: u64,
    holder: ProcessId,
    returns: Returns,
    /// Blocks that come back with it.
    also: Vec<u32>,
}

/// A block in our hands.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) region: Region,
    pub(crate) slab: SlabId,
    pub(crate) offset: usize,
    pub(crate) number: u32,
    pub(crate) loan: u64,
}

/// A block that was lent, and for which time: its holder counts, and tells when it gives the block away.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lending {
    pub(crate) number: u32,
    pub(crate) loan: u64,
}

impl Reserved {
    /// For one block of `len` bytes.
    pub(crate) fn of(len: usize) -> Self {
        Self {
            bytes: 1 << Buddy::order_for(len),
            blocks: 1,
        }
    }

    fn less(&mut self, part: Self) {
        self.bytes -= part.bytes;
        self.blocks -= part.blocks;
    }
}

impl Arena {
    /// The most blocks of an arena that exist at once: the size of every peer's table of returns.
    pub(crate) const MAX_BLOCKS: usize = 2048;
    /// Slabs of small blocks are 4 MiB: large enough for several 1 MiB messages, small enough to be mapped in a
    /// millisecond.
    const SLAB_ORDER: u32 = 22;
    /// The most memory of all lent buffers, and of all long messages under way.
    const LIMITS: [usize; 2] = [1 << 30, 65 << 20];
    /// The largest slab: one for the largest block.
    pub(crate) const LARGEST_SLAB: usize = Self::LIMITS[0];
    /// The longest long message: a little less than all of them, because its manifest needs memory too.
    pub(crate) const LONGEST_MESSAGE: usize = 64 << 20;
    /// Blocks of any size kept whole for the next use.
    const SPARE: usize = 8;
    /// Up to this size, some more memory is better than some more cache misses: 1 MiB.
    const BATCH_ORDER: u32 = 20;
    /// Large slabs kept for the next use.
    const SPARE_LARGE: usize = 4;

    pub(crate) fn new(memory: Memory) -> Self {
        Self {
            memory,
            state: Mutex::default(),
            has_dropped: AtomicBool::new(false),
        }
    }

    /// The longest block.
    pub(crate) const fn longest(purpose: Purpose) -> usize {
        match purpose {
            Purpose::Lend => Self::LIMITS[0],
            Purpose::LongMessage => Self::LONGEST_MESSAGE,
        }
    }

    /// Takes a block of `len` bytes. `Ok(None)`: all memory is out; try again when peers have given some back.
    pub(crate) fn take(&self, len: usize, purpose: Purpose) -> Result<Option<Held>, ArenaError> {
        let mut state = self.lock();
        let taken = self.take_in(&mut state, len, purpose);
        // Looking for memory may have freed slabs: peers are told of them now, not when memory is needed again.
        self.note_dropped(&state);
        taken
    }

    /// Takes a block out of what was promised.
    pub(crate) fn take_reserved(
        &self,
        promise: &mut Reserved,
        len: usize,
    ) -> Result<Held, ArenaError> {
        let mut state = self.lock();
        let block = Reserved::of(len);
        promise.less(block);
        state.reserved.less(block);
        let held = self.take_in(&mut state, len, Purpose::LongMessage);
        self.note_dropped(&state);
        held?.ok_or(ArenaError::AllOut {
            waited: Duration::ZERO,
        })
    }

    fn take_in(
        &self,
        state: &mut State,
        len: usize,
        purpose: Purpose,
    ) -> Result<Option<Held>, ArenaError> {
        if len > Self::longest(purpose) {
            return Err(ArenaError::TooLong {
                bytes: len,
                limit: Self::longest(purpose),
            });
        }
        let order = Buddy::order_for(len);
        if let Some(number) = state.take_spare(order, purpose) {
            return Ok(Some(state.held(number)));
        }
        if !state.fits(order, purpose) {
            state.collect();
            if !state.fits(order, purpose) {
                return Ok(None);
            }
        }
        let (slab, offset) = state.place(order, self.memory)?;
        let number = state.free_numbers.pop().unwrap_or_else(|| {
            state.blocks.push(Block {
                slab,
                offset,
                order,
                loan: 0,
                purpose,
            });
            state.blocks.len() as u32 - 1
        });
        let loan = state.blocks[number as usize].loan + 1;
        state.blocks[number as usize] = Block {
            slab,
            offset,
            order,
            loan,
            purpose,
        };
        state.used[purpose as usize] += 1 << order;
        Ok(Some(state.held(number)))
    }

    /// Takes back a block that was not handed over.
    pub(crate) fn give(&self, lent: Lending) {
        let mut state = self.lock();
        state.note(lent);
        state.free(lent.number);
        self.note_dropped(&state);
    }

    /// Notes that the block is now at `holder`, which gives it back through `returns`.
    pub(crate) fn hand_over(&self, lent: Lending, holder: ProcessId, returns: Returns) {
        self.hand_over_with(lent, Vec::new(), holder, returns);
    }

    /// The same for a block with which others come back.
    pub(crate) fn hand_over_with(
        &self,
        lent: Lending,
        also: Vec<Lending>,
        holder: ProcessId,
        returns: Returns,
    ) {
        let mut state = self.lock();
        state.note(lent);
        for other in &also {
            state.note(*other);
        }
        state.out.push_back(Out {
            number: lent.number,
            loan: lent.loan,
            holder,
            returns,
            also: also.into_iter().map(|other| other.number).collect(),
        });
    }

    /// Promises memory for a long message. `false`: not now.
    pub(crate) fn reserve(&self, wanted: Reserved) -> bool {
        let mut state = self.lock();
        if !state.has_room(wanted.bytes, wanted.blocks, Purpose::LongMessage) {
            state.collect();
        }
        let fits = state.has_room(wanted.bytes, wanted.blocks, Purpose::LongMessage);
        if fits {
            state.reserved.bytes += wanted.bytes;
            state.reserved.blocks += wanted.blocks;
        }
        fits
    }

    /// Takes back what was promised and is not needed. Whether long messages use more than half of the memory they may.
    pub(crate) fn unreserve(&self, left: Reserved) -> bool {
        let mut state = self.lock();
        state.reserved.less(left);
        state.used[Purpose::LongMessage as usize] > Self::longest(Purpose::LongMessage) / 2
    }

    /// Takes back all blocks at a process that is dead.
    pub(crate) fn reclaim(&self, dead: ProcessId) {
        let mut state = self.lock();
        let (back, out) = core::mem::take(&mut state.out)
            .into_iter()
            .partition(|out: &Out| out.holder == dead);
        state.out = out;
        for out in back {
            state.free_out(out);
        }
        self.note_dropped(&state);
    }

    /// The memory of a slab, to be passed to a peer.
    pub(crate) fn slab(&self, slab: SlabId) -> Option<Shared> {
        self.lock()
            .slabs
            .get(slab.0 as usize)?
            .as_ref()
            .map(|slab| slab.shared.clone())
    }

    /// Slabs that were dropped since this was last asked.
    pub(crate) fn dropped_slabs(&self) -> Vec<SlabId> {
        let mut state = self.lock();
        self.has_dropped.store(false, Ordering::Relaxed);
        core::mem::take(&mut state.dropped)
    }

    fn note_dropped(&self, state: &State) {
        if !state.dropped.is_empty() {
            self.has_dropped.store(true, Ordering::Relaxed);
        }
    }

    /// Whether there are any such.
    pub(crate) fn has_dropped(&self) -> bool {
        self.has_dropped.load(Ordering::Relaxed)
    }

    /// Bytes of memory of all slabs.
    pub(crate) fn bytes(&self) -> usize {
        self.lock()
            .slabs
            .iter()
            .flatten()
            .map(|slab| slab.shared.region.len())
            .sum()
    }

    /// Bytes of blocks in use, after taking back what peers gave back. Checks that no number is free twice.
    #[cfg(test)]
    pub(crate) fn in_use(&self) -> usize {
        let mut state = self.lock();
        state.collect();
        let mut free = state.free_numbers.clone();
        free.sort_unstable();
        free.dedup();
        assert_eq!(free.len(), state.free_numbers.len(), "a number freed twice");
        let used = state.used.iter().sum();
        if used == 0 {
            assert_eq!(free.len(), state.blocks.len(), "a number lost");
            assert_eq!(state.reserved, Reserved::default(), "a promise forgotten");
        }
        used
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl State {
    /// Notes how often a block was lent by now.
    fn note(&mut self, lent: Lending) {
        self.blocks[lent.number as usize].loan = lent.loan;
    }

    fn fits(&self, order: u32, purpose: Purpose) -> bool {
        self.has_room(1 << order, 1, purpose)
    }

    fn has_room(&self, bytes: usize, blocks: usize, purpose: Purpose) -> bool {
        let promised = match purpose {
            Purpose::Lend => 0,
            Purpose::LongMessage => self.reserved.bytes,
        };
        let numbers = self.free_numbers.len() + Arena::MAX_BLOCKS - self.blocks.len();
        self.used[purpose as usize] + promised + bytes <= Arena::LIMITS[purpose as usize]
            && self.reserved.blocks + blocks <= numbers
    }

    /// What was at a peer is free, and what comes back with it.
    fn free_out(&mut self, out: Out) {
        self.free(out.number);
        for number in out.also {
            self.free(number);
        }
    }

    /// Takes back what peers have given back.
    fn collect(&mut self) {
        let out = core::mem::take(&mut self.out);
        for out in out {
            if out.returns.is_back(out.number, out.loan) {
                self.free_out(out);
            } else {
                self.out.push_back(out);
            }
        }
        for number in core::mem::take(&mut self.spare) {
            self.free(number);
        }
    }

    /// A block of this kind that came back before: the usual case of one that is lent again and again.
    ///
    /// To see whether one came back costs a cache miss, and the same one tells of its neighbours: so small blocks are
    /// looked for when several are out.
    fn take_spare(&mut self, order: u32, purpose: Purpose) -> Option<u32> {
        if let Some(number) = self.find_spare(order, purpose) {
            return Some(number);
        }
        let is_small = order <= Arena::BATCH_ORDER;
        if is_small && self.out.len() < Arena::SPARE {
            return None;
        }
        for _ in 0..if is_small { Arena::SPARE } else { 1 } {
            let oldest = self.out.front()?;
            if !oldest.returns.is_back(oldest.number, oldest.loan) {
                break;
            }
            let number = oldest.number;
            let also = self.out.pop_front().map_or_else(Vec::new, |out| out.also);
            for number in also {
                self.free(number);
            }
            if self.blocks[number as usize].order > Arena::SLAB_ORDER {
                // A slab of its own: kept or not, it is found again as quickly.
                self.free(number);
            } else {
                self.spare.push(number);
            }
        }
        while self.spare.len() > Arena::SPARE {
            let oldest = self.spare.remove(0);
            self.free(oldest);
        }
        self.find_spare(order, purpose)
    }

    fn find_spare(&mut self, order: u32, purpose: Purpose) -> Option<u32> {
        let fits = |number: &u32| {
            let block = self.blocks[*number as usize];
            block.order == order && block.purpose == purpose
        };
        let place = self.spare.iter().rposition(fits)?;
        let number = self.spare.swap_remove(place);
        self.blocks[number as usize].loan += 1;
        Some(number)
    }

    /// A block as its holder sees it.
    fn held(&mut self, number: u32) -> Held {
        let Block {
            slab, offset, loan, ..
        } = self.blocks[number as usize];
        Held {
            region: self.slab(slab).shared.region.clone(),
            slab: SlabId(slab),
            offset,
            number,
            loan,
        }
    }

    fn place(&mut self, order: u32, memory: Memory) -> Result<(u32, usize), ArenaError> {
        if let Some(place) = self.place_in_slabs(order) {
            return Ok(place);
        }
        // Before growing, see what came back.
        self.collect();
        if let Some(place) = self.place_in_slabs(order) {
            return Ok(place);
        }
        let large = order > Arena::SLAB_ORDER;
        let bytes = 1usize << order.max(Arena::SLAB_ORDER);
        let shared = memory
            .make("mizzen-arena", bytes)
            .map_err(ArenaError::Memory)?;
        let buddy = (!large).then(|| Buddy::new(Arena::SLAB_ORDER));
        self.slabs.push(Some(Slab {
            shared,
            buddy,
            large_taken: false,
        }));
        self.place_in_slabs(order).ok_or(ArenaError::TooLong {
            bytes,
            limit: bytes,
        })
    }

    fn place_in_slabs(&mut self, order: u32) -> Option<(u32, usize)> {
        for (number, slab) in self.slabs.iter_mut().enumerate() {
            let Some(slab) = slab else { continue };
            match &mut slab.buddy {
                Some(buddy) if order <= Arena::SLAB_ORDER => {
                    if let Some(offset) = buddy.take(order) {
                        return Some((number as u32, offset));
                    }
                }
                None if !slab.large_taken && slab.shared.region.len() == 1 << order => {
                    slab.large_taken = true;
                    return Some((number as u32, 0));
                }
                _ => (),
            }
        }
        None
    }

    fn free(&mut self, number: u32) {
        let block = self.blocks[number as usize];
        self.used[block.purpose as usize] -= 1 << block.order;
        self.free_numbers.push(number);
        let slab = self.slab(block.slab);
        match &mut slab.buddy {
            Some(buddy) => buddy.give(block.offset, block.order),
            None => {
                slab.large_taken = false;
                self.drop_spare_slabs();
            }
        }
    }

    /// Keeps a few large slabs for the next use and lets the others go. Slab numbers are never used again, so a peer's
    /// old mapping cannot be mistaken for a new slab.
    fn drop_spare_slabs(&mut self) {
        let mut spare = 0;
        for (number, slab) in self.slabs.iter_mut().enumerate().rev() {
            let is_spare = matches!(
                slab,
                Some(Slab {
                    buddy: None,
                    large_taken: false,
                    ..
                })
            );
            spare += usize::from(is_spare);
            if is_spare && spare > Arena::SPARE_LARGE {
                *slab = None;
                self.dropped.push(SlabId(number as u32));
            }
        }
    }

    fn slab(&mut self, number: u32) -> &mut Slab {
        self.slabs[number as usize]
            .as_mut()
            .expect("a slab with a block in use is never dropped")
    }
}
