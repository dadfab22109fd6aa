//! The arena: memory of this process in which lent buffers and long messages are made.
//!
//! It consists of slabs: one for each few megabytes of small blocks, one for each large block. A peer maps a slab when it
//! first gets a block of it. A block handed to a peer is *out* until the peer has given it back, which the arena
//! notices when it next needs memory. A dead peer's blocks come back at once.
//!
//! Chunks and manifests of long messages are [`Extent`]s: memory without a number, of which each stream keeps account
//! (`filling.rs`), and of which there is as much as receivers may leave unread (`allowance.rs`).
//!
//! All of it is under one lock, except how often a block was lent: its holder counts that (`block.rs`), and tells when it gives
//! the block away.
#![allow(unsafe_code)]

use core::fmt::Debug;
use std::collections::VecDeque;
use std::sync::OnceLock;

use crate::buddy::Buddy;
use crate::extent::Extent;
use crate::loan::LoanTicket;
use crate::region::Region;
use crate::returns::{Place, Returns};
use crate::revocations::Revocations;
use crate::slabs::{SLAB_ORDER, Slabs};
use crate::sync::{AtomicBool, Mutex, MutexGuard, Ordering};
use crate::whereabouts::{AtPeer, Ending, Out, Parties};

/// Where an arena gets its memory, and who borrows it.
///
/// # Safety
///
/// [`region`](Self::region) of a slab is always the same memory, which can be written and has the bytes that were asked for;
/// nothing in this process accesses it except through the blocks of one arena, and [`Loan`](crate::Loan)s of them.
pub unsafe trait Backing: Debug + Send + Sync {
    /// A slab: its memory, and what else there is to pass to peers.
    type Slab: Clone + Debug + Send;
    /// Why there is no memory.
    type Error;
    /// One life of a peer.
    type Holder: Copy + Debug + Eq + Send;

    /// A new slab, zeroed.
    ///
    /// # Errors
    ///
    /// Why there is no memory for it.
    fn make(&self, bytes: usize) -> Result<Self::Slab, Self::Error>;

    /// The memory of a slab.
    fn region(slab: &Self::Slab) -> &Region;
}

/// Why there is no block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoBlock<E> {
    /// Longer than allowed.
    TooLong {
        /// What was asked for.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// There is no memory for another slab.
    Backing(E),
    /// Receivers hold all of it.
    AllOut,
}

/// Number of a slab within its arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SlabId(pub u32);

/// What a block is for: each has its limit, so that a burst of long messages cannot starve lending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A lent buffer.
    Lend,
    /// A message too long for a lane, in one block: one that refers to lent buffers, or that a network sends or keeps.
    LongMessage,
    /// A lent buffer of another host, which a network brought.
    Landed,
    /// What members of groups show each other.
    Tray,
}

/// Memory of one process for lent buffers and long messages.
#[derive(Debug)]
pub struct Arena<B: Backing> {
    backing: B,
    state: Mutex<State<B>>,
    /// Whether slabs were dropped that peers still keep.
    has_dropped: AtomicBool,
    /// Whether there is more memory for small blocks than would be kept if all were free.
    has_excess: AtomicBool,
    /// Where blocks come back that this process lends to itself, and which it must not take over.
    own: OnceLock<(Returns, Revocations)>,
}

#[derive(Debug)]
struct State<B: Backing> {
    slabs: Slabs<B::Slab>,
    blocks: Vec<Entry>,
    free_numbers: Vec<u32>,
    /// Blocks at peers, the oldest first.
    out: VecDeque<Out<B::Holder>>,
    /// Blocks that came back and are kept whole for the next use.
    spare: Vec<u32>,
    /// To whom they may be handed on.
    parties: Parties<B::Holder>,
    /// Bytes of blocks in use, by purpose, and how many there may be.
    used: [usize; 4],
    limits: [usize; 4],
    /// Bytes of extents in use.
    extents: usize,
}

/// A block, whoever has it.
#[derive(Clone, Copy, Debug)]
struct Entry {
    slab: u32,
    offset: usize,
    order: u32,
    /// How often the block number was lent, so that an old return cannot free a new loan.
    loan: u64,
    purpose: Purpose,
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

/// Blocks that exist at once.
const MAX_BLOCKS: usize = if cfg!(loom) { 8 } else { 2048 };
/// Long messages that one peer has not read, at most: at least a chunk each of what it may leave unread.
pub(crate) const MAX_MESSAGES: usize = if cfg!(loom) { 4 } else { 1024 };
/// Numbers of both.
pub(crate) const NUMBERS: usize = MAX_BLOCKS + MAX_MESSAGES;
/// The longest block of a long message. A little less than all of them may have.
const LONGEST_BLOCK: usize = 64 << 20;
/// The most memory of all lent buffers, of all long messages in blocks, of lent buffers from other hosts, and of trays.
const LIMITS: [usize; 4] = [1 << 30, 65 << 20, 1 << 30, 1 << 28];
/// The most memory of long messages in chunks, to all peers together: 128 of them that read nothing. Peers map no more either.
const EXTENTS_LIMIT: usize = 8 << 30;
/// Blocks of any size kept whole for the next use.
const SPARE: usize = if cfg!(loom) { 1 } else { 8 };
/// Up to this size, some more memory is better than some more cache misses: 1 MiB.
const BATCH_ORDER: u32 = 20;

impl<B: Backing> Arena<B> {
    /// The most blocks and messages of an arena at one peer at once: the size of every peer's table of returns. Messages have
    /// the numbers after those of blocks, for each peer anew.
    pub const MAX_BLOCKS: usize = NUMBERS;
    /// The number of the first message to a peer.
    pub(crate) const FIRST_MESSAGE: u32 = MAX_BLOCKS as u32;
    /// The largest slab: one for the largest block.
    pub const LARGEST_SLAB: usize = LIMITS[0];

    /// An arena without memory yet.
    pub fn new(backing: B) -> Self {
        Self {
            backing,
            state: Mutex::new(State {
                slabs: Slabs::new(),
                blocks: Vec::new(),
                free_numbers: Vec::new(),
                out: VecDeque::new(),
                spare: Vec::new(),
                parties: Parties::new(),
                used: [0; 4],
                limits: LIMITS,
                extents: 0,
            }),
            has_dropped: AtomicBool::new(false),
            has_excess: AtomicBool::new(false),
            own: OnceLock::new(),
        }
    }

    /// The longest block.
    pub const fn longest(purpose: Purpose) -> usize {
        match purpose {
            Purpose::Lend | Purpose::Landed => LIMITS[0],
            Purpose::LongMessage => LONGEST_BLOCK,
            Purpose::Tray => LIMITS[3],
        }
    }

    /// Takes a block of `len` bytes. `Ok(None)`: all memory is out; try again when peers have given some back.
    pub(crate) fn take(
        &self,
        len: usize,
        purpose: Purpose,
    ) -> Result<Option<Held>, NoBlock<B::Error>> {
        let mut state = self.lock();
        let taken = self.take_in(&mut state, len, purpose);
        // Looking for memory may have freed slabs: peers are told of them now, not when memory is needed again.
        self.note_slabs(&state);
        taken
    }

    fn take_in(
        &self,
        state: &mut State<B>,
        len: usize,
        purpose: Purpose,
    ) -> Result<Option<Held>, NoBlock<B::Error>> {
        if len > Self::longest(purpose) {
            return Err(NoBlock::TooLong {
                bytes: len,
                limit: Self::longest(purpose),
            });
        }
        let order = Buddy::order_for(len);
        let limit = state.limits[purpose as usize];
        if 1 << order > limit {
            return Err(NoBlock::TooLong { bytes: len, limit });
        }
        if let Some(number) = state.take_spare(order, purpose) {
            return Ok(Some(state.held(number)));
        }
        if !state.fits(order, purpose) {
            state.collect();
            if !state.fits(order, purpose) {
                return Ok(None);
            }
        }
        let (slab, offset) = match state.slabs.take(order) {
            Some(place) => place,
            None => {
                state.collect_keeping(order, purpose);
                if let Some(number) = state.find_spare(order, purpose) {
                    return Ok(Some(state.held(number)));
                }
                state.place(order, &self.backing)?
            }
        };
        let number = state.free_numbers.pop().unwrap_or_else(|| {
            state.blocks.push(Entry {
                slab,
                offset,
                order,
                loan: 0,
                purpose,
            });
            state.blocks.len() as u32 - 1
        });
        let loan = state.blocks[number as usize].loan + 1;
        state.blocks[number as usize] = Entry {
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
        self.note_slabs(&state);
    }

    /// Notes that the block is now at `holder`, which gives it back through `returns`.
    pub(crate) fn hand_over(&self, lent: Lending, holder: B::Holder, returns: Returns) {
        let mut state = self.lock();
        state.note(lent);
        state.out.push_back(Out {
            what: AtPeer::Block,
            number: lent.number,
            loan: lent.loan,
            holder,
            returns,
        });
    }

    /// Takes memory for long messages: at least one extent of `len` bytes and up to `count`, each given to `take`.
    pub(crate) fn take_extents(
        &self,
        count: usize,
        len: usize,
        mut take: impl FnMut(Extent),
    ) -> Result<(), NoBlock<B::Error>> {
        let mut state = self.lock();
        let order = Buddy::order_for(len);
        let mut taken = Ok(());
        for already in 0..count {
            match self.take_extent(&mut state, order) {
                Ok(extent) => take(extent),
                Err(_) if already > 0 => break,
                Err(none) => {
                    taken = Err(none);
                    break;
                }
            }
        }
        self.note_slabs(&state);
        taken
    }

    fn take_extent(&self, state: &mut State<B>, order: u32) -> Result<Extent, NoBlock<B::Error>> {
        if state.extents + (1 << order) > EXTENTS_LIMIT {
            state.collect();
            if state.extents + (1 << order) > EXTENTS_LIMIT {
                return Err(NoBlock::AllOut);
            }
        }
        let (slab, offset) = state.place(order, &self.backing)?;
        state.extents += 1 << order;
        Ok(Extent {
            region: state.region(slab),
            slab,
            offset,
            order,
        })
    }

    /// Takes back memory that no message needs.
    pub(crate) fn give_extents(&self, extents: impl IntoIterator<Item = Extent>) {
        let mut state = self.lock();
        extents
            .into_iter()
            .for_each(|extent| state.free_extent(extent));
        self.note_slabs(&state);
    }

    /// A message is at `holder`, which may still read it and gives it back as this loan through `returns`.
    pub(crate) fn leave_message(
        &self,
        lent: Lending,
        extents: Vec<Extent>,
        holder: B::Holder,
        returns: Returns,
    ) {
        self.lock().out.push_back(Out {
            what: AtPeer::Message(extents),
            number: lent.number,
            loan: lent.loan,
            holder,
            returns,
        });
    }

    /// Takes back all blocks at a process that is dead, and those that were on their way to it.
    pub fn reclaim(&self, dead: B::Holder, how: Ending) {
        let mut state = self.lock();
        for mut out in core::mem::take(&mut state.out) {
            if out.is_free_after(dead, how, &state.parties) {
                state.free_out(out);
            } else {
                state.out.push_back(out);
            }
        }
        state.parties.forget(dead);
        self.note_slabs(&state);
    }

    /// Blocks of ours may be handed on to `holder`, which says in `returns` what it does with them and looks into `revocations`
    /// first. `None`: to too many already.
    pub(crate) fn admit(
        &self,
        holder: B::Holder,
        returns: &Returns,
        revocations: &Revocations,
    ) -> Option<Place> {
        self.lock().parties.admit(holder, returns, revocations)
    }

    /// Blocks of ours may be handed on to us, `me`.
    pub fn admit_self(&self, me: B::Holder) -> Option<Place> {
        let (returns, revocations) = self.own();
        self.admit(me, returns, revocations)
    }

    /// Whether a ticket that a peer sent is of a block of ours, just as it is, that is being handed on to us, `me`: only then may
    /// we read by it, or give the block back.
    pub fn comes_home(&self, me: B::Holder, ticket: LoanTicket) -> bool {
        let mut guard = self.lock();
        let State {
            out,
            blocks,
            parties,
            ..
        } = &mut *guard;
        let Some(block) = blocks.get(ticket.number as usize) else {
            return false;
        };
        let is_it = |out: &&mut Out<B::Holder>| {
            matches!(out.what, AtPeer::Block) && out.number == ticket.number
        };
        // As it was lent first, it is with whom we lent it to.
        block.slab == ticket.slab
            && block.offset as u64 == ticket.offset
            && ticket.len <= 1 << block.order
            && ticket.loan > block.loan
            && out
                .iter_mut()
                .find(is_it)
                .is_some_and(|out| out.is_coming_to(me, ticket.loan, parties))
    }

    /// The tables in which this process gives back blocks to itself, and says which it must not take over.
    pub fn own(&self) -> &(Returns, Revocations) {
        self.own.get_or_init(|| {
            let heap = || Region::heap(Returns::bytes(MAX_BLOCKS));
            let revocations = Revocations::new(heap(), MAX_BLOCKS);
            (Returns::new(heap(), MAX_BLOCKS), revocations)
        })
    }

    /// Allows so many bytes of lent buffers in use, in our hands or out; at most as many as there may be anyway.
    pub fn set_lending_limit(&self, bytes: usize) {
        self.lock().limits[Purpose::Lend as usize] = bytes.min(LIMITS[0]);
    }

    /// Bytes of lent buffers in use, as far as is known, and with whom those are that are out.
    pub fn lent(&self) -> (usize, Vec<(B::Holder, usize)>) {
        let mut guard = self.lock();
        let state = &mut *guard;
        let mut holders: Vec<(B::Holder, usize)> = Vec::new();
        for out in &mut state.out {
            let is_back = out.is_back(&state.parties);
            let AtPeer::Block = out.what else {
                continue;
            };
            let block = state.blocks[out.number as usize];
            if is_back || block.purpose != Purpose::Lend {
                continue;
            }
            let bytes = 1usize << block.order;
            match holders.iter_mut().find(|(known, _)| *known == out.holder) {
                Some((_, sum)) => *sum += bytes,
                None => holders.push((out.holder, bytes)),
            }
        }
        (state.used[Purpose::Lend as usize], holders)
    }

    /// Takes back a block that was handed over to a process which was never told of it. `false`: it was not handed over yet.
    pub fn take_back(&self, number: u32, loan: u64) -> bool {
        let mut state = self.lock();
        let is_it = |out: &Out<B::Holder>| out.number == number && out.loan == loan;
        let place = state.out.iter().position(is_it);
        let Some(out) = place.and_then(|place| state.out.remove(place)) else {
            return false;
        };
        state.free_out(out);
        self.note_slabs(&state);
        true
    }

    /// The memory of a slab, to be passed to a peer.
    pub fn slab(&self, slab: SlabId) -> Option<B::Slab> {
        self.lock().slabs.shared(slab.0).cloned()
    }

    /// Slabs that were dropped since this was last asked.
    pub fn dropped_slabs(&self) -> Vec<SlabId> {
        let mut state = self.lock();
        self.has_dropped.store(false, Ordering::Relaxed);
        let dropped = core::mem::take(&mut state.slabs.dropped);
        dropped.into_iter().map(SlabId).collect()
    }

    fn note_slabs(&self, state: &State<B>) {
        if !state.slabs.dropped.is_empty() {
            self.has_dropped.store(true, Ordering::Relaxed);
        }
        self.has_excess
            .store(state.slabs.has_excess(), Ordering::Relaxed);
    }

    /// Whether there are any such.
    pub fn has_dropped(&self) -> bool {
        self.has_dropped.load(Ordering::Relaxed)
    }

    /// Whether there is more memory than is worth keeping, so that what came back should be given back too.
    pub fn has_excess(&self) -> bool {
        self.has_excess.load(Ordering::Relaxed)
    }

    /// Bytes of memory of all slabs.
    pub fn bytes(&self) -> usize {
        self.lock().slabs.bytes()
    }

    /// Bytes of blocks in use, after taking back what peers gave back. Checks that no block was freed twice, and none
    /// is missing when none is used.
    ///
    /// # Panics
    ///
    /// If a block was freed twice or lost: a mistake of ours.
    pub fn in_use(&self) -> usize {
        let mut state = self.lock();
        state.collect();
        let mut free = state.free_numbers.clone();
        free.sort_unstable();
        free.dedup();
        assert_eq!(free.len(), state.free_numbers.len(), "a number freed twice");
        let used: usize = state.used.iter().sum();
        if used == 0 {
            assert_eq!(free.len(), state.blocks.len(), "a number lost");
        }
        used + state.extents
    }

    fn lock(&self) -> MutexGuard<'_, State<B>> {
        self.state
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl<B: Backing> State<B> {
    /// Notes how often a block was lent by now.
    fn note(&mut self, lent: Lending) {
        self.blocks[lent.number as usize].loan = lent.loan;
    }

    fn fits(&self, order: u32, purpose: Purpose) -> bool {
        self.used[purpose as usize] + (1 << order) <= self.limits[purpose as usize]
            && (!self.free_numbers.is_empty() || self.blocks.len() < MAX_BLOCKS)
    }

    /// What was at a peer is free.
    fn free_out(&mut self, out: Out<B::Holder>) {
        match out.what {
            AtPeer::Block => {
                self.blocks[out.number as usize].loan = out.loan;
                self.free(out.number);
            }
            AtPeer::Message(extents) => {
                extents
                    .into_iter()
                    .for_each(|extent| self.free_extent(extent));
            }
        }
    }

    fn free_extent(&mut self, extent: Extent) {
        self.extents -= extent.len();
        let Extent {
            slab,
            offset,
            order,
            ..
        } = extent;
        self.slabs.give(slab, offset, order);
    }

    /// Takes back what peers have given back.
    fn collect(&mut self) {
        self.collect_if(|_, _| false);
    }

    /// The same, but small blocks of this kind stay whole for the next use: who lends the same again and again would otherwise have
    /// them divided anew each time.
    fn collect_keeping(&mut self, order: u32, purpose: Purpose) {
        let mut kept = 0;
        self.collect_if(|block, loan| {
            let keeps = kept < SPARE
                && block.order == order
                && block.purpose == purpose
                && order <= SLAB_ORDER;
            if keeps {
                kept += 1;
                block.loan = loan;
            }
            keeps
        });
    }

    /// Takes back what peers have given back. Blocks of which `keep` is true stay whole; it is given how often they were lent.
    fn collect_if(&mut self, mut keep: impl FnMut(&mut Entry, u64) -> bool) {
        while let Some(number) = self.spare.pop() {
            self.free(number);
        }
        for _ in 0..self.out.len() {
            let Some(mut out) = self.out.pop_front() else {
                return;
            };
            if !out.is_back(&self.parties) {
                self.out.push_back(out);
                continue;
            }
            let is_block = matches!(out.what, AtPeer::Block);
            if is_block && keep(&mut self.blocks[out.number as usize], out.loan) {
                self.spare.push(out.number);
            } else {
                self.free_out(out);
            }
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
        let is_small = order <= BATCH_ORDER;
        if is_small && self.out.len() < SPARE {
            return None;
        }
        for _ in 0..if is_small { SPARE } else { 1 } {
            let oldest = self.out.front_mut()?;
            if !oldest.is_back(&self.parties) {
                break;
            }
            let Some(out) = self.out.pop_front() else {
                break;
            };
            // A slab of its own, kept or not, is found again as quickly.
            let is_small = |number: u32| self.blocks[number as usize].order <= SLAB_ORDER;
            match out.what {
                AtPeer::Block if is_small(out.number) => {
                    self.blocks[out.number as usize].loan = out.loan;
                    self.spare.push(out.number);
                }
                _ => self.free_out(out),
            }
        }
        while self.spare.len() > SPARE {
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

    /// The memory of a slab in which something is in use.
    fn region(&self, slab: u32) -> Region {
        let shared = self.slabs.shared(slab);
        B::region(shared.expect("a slab with a block in use is never dropped")).clone()
    }

    /// A block as its holder sees it.
    fn held(&self, number: u32) -> Held {
        let Entry {
            slab, offset, loan, ..
        } = self.blocks[number as usize];
        Held {
            region: self.region(slab),
            slab: SlabId(slab),
            offset,
            number,
            loan,
        }
    }

    fn place(&mut self, order: u32, backing: &B) -> Result<(u32, usize), NoBlock<B::Error>> {
        if let Some(place) = self.slabs.take(order) {
            return Ok(place);
        }
        // Before growing, take apart what came back.
        self.collect();
        if let Some(place) = self.slabs.take(order) {
            return Ok(place);
        }
        let bytes = Slabs::<B::Slab>::bytes_for(order);
        let shared = backing.make(bytes).map_err(NoBlock::Backing)?;
        self.slabs.add(order, shared);
        self.slabs.take(order).ok_or(NoBlock::TooLong {
            bytes,
            limit: bytes,
        })
    }

    fn free(&mut self, number: u32) {
        let block = self.blocks[number as usize];
        self.used[block.purpose as usize] -= 1 << block.order;
        self.free_numbers.push(number);
        self.slabs.give(block.slab, block.offset, block.order);
    }
}
