//! The arena: memory of this process in which lent buffers and long messages are made.
//!
//! It consists of slabs: one for each few megabytes of small blocks, one for each large block. A peer maps a slab when it
//! first gets a block of it. A block handed to a peer is *out* until the peer has given it back, which the arena
//! notices when it next needs memory. A dead peer's blocks come back at once.

use std::sync::{Mutex, MutexGuard};

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
}

#[derive(Debug, Default)]
struct State {
    slabs: Vec<Option<Slab>>,
    blocks: Vec<Block>,
    free_numbers: Vec<u32>,
    out: Vec<Out>,
    /// Bytes of blocks in use, by purpose.
    used: [usize; 2],
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

/// A block at a peer.
#[derive(Debug)]
struct Out {
    number: u32,
    loan: u64,
    holder: ProcessId,
    returns: Returns,
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

impl Arena {
    /// The most blocks of an arena that exist at once: the size of every peer's table of returns.
    pub(crate) const MAX_BLOCKS: usize = 2048;
    /// Slabs of small blocks are 4 MiB: large enough for several 1 MiB messages, small enough to be mapped in a
    /// millisecond.
    const SLAB_ORDER: u32 = 22;
    /// The most memory of all lent buffers, and of all long messages under way.
    const LIMITS: [usize; 2] = [1 << 30, 64 << 20];
    /// Large blocks kept for the next use.
    const SPARE_LARGE: usize = 4;

    pub(crate) fn new(memory: Memory) -> Self {
        Self {
            memory,
            state: Mutex::default(),
        }
    }

    /// The longest block.
    pub(crate) const fn longest(purpose: Purpose) -> usize {
        Self::LIMITS[purpose as usize]
    }

    /// Takes a block of `len` bytes. `Ok(None)`: all memory is out; try again when peers have given some back.
    pub(crate) fn take(&self, len: usize, purpose: Purpose) -> Result<Option<Held>, ArenaError> {
        if len > Self::longest(purpose) {
            return Err(ArenaError::TooLong {
                bytes: len,
                limit: Self::longest(purpose),
            });
        }
        let mut state = self.lock();
        let order = Buddy::order_for(len);
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
        let region = state.slab(slab).shared.region.clone();
        Ok(Some(Held {
            region,
            slab: SlabId(slab),
            offset,
            number,
            loan,
        }))
    }

    /// Takes back a block that was not handed over.
    pub(crate) fn give(&self, number: u32) {
        self.lock().free(number);
    }

    /// Notes that the block is now at `holder`, which gives it back through `returns`.
    pub(crate) fn hand_over(&self, number: u32, holder: ProcessId, returns: Returns) {
        let mut state = self.lock();
        let loan = state.blocks[number as usize].loan;
        state.out.push(Out {
            number,
            loan,
            holder,
            returns,
        });
    }

    /// Takes back all blocks at a process that is dead.
    pub(crate) fn reclaim(&self, dead: ProcessId) {
        let mut state = self.lock();
        let (back, out) = core::mem::take(&mut state.out)
            .into_iter()
            .partition(|out: &Out| out.holder == dead);
        state.out = out;
        for out in back {
            state.free(out.number);
        }
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
        core::mem::take(&mut self.lock().dropped)
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

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl State {
    fn fits(&self, order: u32, purpose: Purpose) -> bool {
        self.used[purpose as usize] + (1 << order) <= Arena::LIMITS[purpose as usize]
            && (!self.free_numbers.is_empty() || self.blocks.len() < Arena::MAX_BLOCKS)
    }

    /// Takes back what peers have given back.
    fn collect(&mut self) {
        let out = core::mem::take(&mut self.out);
        for out in out {
            if out.returns.is_back(out.number, out.loan) {
                self.free(out.number);
            } else {
                self.out.push(out);
            }
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
