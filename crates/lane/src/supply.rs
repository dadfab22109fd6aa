//! The memory of long messages to one peer, at the sender: chunks and manifests, free here or at the receiver.
//!
//! What the receiver gave back is collected when memory is needed: of the oldest messages, as far as they came back in order, and
//! of the one that is being written; of all others when that is not enough. While the receiver keeps up, as few chunks as go
//! round are taken from the arena; more only if the caller has waited a moment for one of them.

use std::collections::VecDeque;

use crate::allowance::{Allowance, Number};
use crate::arena::{Arena, Backing, Lending, NoBlock, SlabId};
use crate::extent::Extent;
use crate::manifest::{CHUNK, Manifest};
use crate::returns::{Progress, Returns};
use crate::sync::{Arc, spin_loop};

/// Chunks that go round while the receiver keeps up, a quarter of a megabyte: with fewer, one side waits for the other; more do not
/// stay in the second caches beside the message.
pub(crate) const ROUND: usize = if cfg!(loom) { 1 } else { 4 };
/// How long to wait for the oldest of them before more are taken: what a receiver that keeps up needs for one.
const LOOKS: u32 = if cfg!(loom) { 1 } else { 1500 };
/// Chunks that are taken at once, under one lock of the arena.
const BATCH: usize = if cfg!(loom) { 1 } else { 4 };

/// The memory of long messages to one peer, for one sending thread at a time: chunks and manifests, here and at the receiver.
#[derive(Debug)]
pub struct StreamOut<B: Backing> {
    arena: Arc<Arena<B>>,
    holder: B::Holder,
    /// Where the receiver gives messages back.
    returns: Returns,
    pub(crate) allowance: Arc<Allowance>,
    /// Free chunks; the first has rested longest.
    pub(crate) chunks: VecDeque<Extent>,
    pub(crate) sheets: Vec<Sheet>,
    /// Messages at the receiver, the oldest first.
    pub(crate) out: VecDeque<Out>,
    /// Chunks here and at the receiver.
    pub(crate) count: usize,
    /// If the last of them is being written.
    pub(crate) writing: Option<Writing>,
    /// The receiver read the last of them where it was offered.
    pub(crate) was_pulled: bool,
}

/// The memory of a manifest, and the number by which it comes back.
#[derive(Debug)]
pub(crate) struct Sheet {
    pub(crate) memory: Extent,
    pub(crate) number: Number,
}

/// A message at the receiver.
#[derive(Debug)]
pub(crate) struct Out {
    pub(crate) sheet: Sheet,
    /// Those that did not come back, in the order of the message.
    pub(crate) chunks: VecDeque<Extent>,
    /// How many did.
    pub(crate) emptied: usize,
}

/// The message that is being written.
#[derive(Debug)]
pub(crate) struct Writing {
    /// Chunks that were promised to it and are not at the receiver.
    pub(crate) promised: usize,
    /// Chunks that it keeps, at the receiver or promised, until it is written.
    pub(crate) keeps: usize,
    /// Chunks that may be at the receiver at once: its manifest has no more entries.
    pub(crate) most: usize,
}

/// The receiver of a message that is being written, as far as its memory is concerned.
pub trait Receiver<B: Backing> {
    /// Why a message cannot be written to its end.
    type Error: From<NoBlock<B::Error>>;

    /// An error if nobody will read any more.
    ///
    /// # Errors
    ///
    /// Why not.
    fn check(&self) -> Result<(), Self::Error>;

    /// The receiver hears of memory in this slab next, and must know it by then.
    ///
    /// # Errors
    ///
    /// Why it cannot be told.
    fn show(&self, slab: SlabId) -> Result<(), Self::Error>;

    /// Waits a while for the receiver to give chunks back; so often it was in vain before, in a row.
    ///
    /// # Errors
    ///
    /// Why not to wait any longer.
    fn wait(&self, in_vain: u32) -> Result<(), Self::Error>;
}

/// Whether there is a chunk to go on with.
pub(crate) enum Next {
    Chunk(Extent),
    None,
    Unwanted,
}

impl<B: Backing> StreamOut<B> {
    /// For messages to `holder`, which gives them back in `returns`.
    pub(crate) fn new(
        arena: Arc<Arena<B>>,
        holder: B::Holder,
        returns: Returns,
        allowance: Arc<Allowance>,
    ) -> Self {
        Self {
            arena,
            holder,
            returns,
            allowance,
            chunks: VecDeque::new(),
            sheets: Vec::new(),
            out: VecDeque::new(),
            count: 0,
            writing: None,
            was_pulled: false,
        }
    }

    /// Whether the receiver read the last message where it was offered.
    #[must_use]
    pub fn was_pulled(&self) -> bool {
        self.was_pulled
    }

    pub(crate) fn promise(&mut self, chunks: usize) -> bool {
        self.allowance.try_promise(chunks) || {
            self.reap_all();
            self.allowance.try_promise(chunks)
        }
    }

    /// Collects all that the receiver gave back.
    pub(crate) fn reap_all(&mut self) {
        self.reap();
        for index in (0..self.out.len()).rev() {
            let is_written = self.writing.is_none() || index + 1 < self.out.len();
            if self.collect(index) && is_written {
                self.sheets
                    .extend(self.out.remove(index).map(|out| out.sheet));
            }
        }
    }

    /// Gives free memory beyond a few chunks back to the arena.
    pub(crate) fn rest(&mut self) {
        self.shrink(ROUND);
    }

    /// Gives all free memory back to the arena, after collecting what came back.
    pub(crate) fn trim(&mut self) {
        self.reap_all();
        self.shrink(0);
    }

    /// Whether the receiver has nothing of it.
    pub(crate) fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    /// Memory for a manifest. `None`: the receiver has as many messages as it may. What was promised is given back on errors.
    pub(crate) fn take_sheet(
        &mut self,
        bytes: usize,
        promised: usize,
    ) -> Result<Option<Sheet>, NoBlock<B::Error>> {
        if self.sheets.is_empty() && self.out.len() >= ROUND {
            self.reap();
        }
        let fits = |sheet: &Sheet| sheet.memory.len() >= bytes;
        let mut sheet = match self.sheets.iter().rposition(fits) {
            Some(index) => self.sheets.swap_remove(index),
            None => {
                let Some(number) = self.allowance.take_number() else {
                    return Ok(None);
                };
                let mut memory = None;
                let taken = self.arena.take_extents(1, bytes, |one| memory = Some(one));
                match (taken, memory) {
                    (Ok(()), Some(memory)) => Sheet { memory, number },
                    (taken, _) => {
                        self.allowance.give_numbers([number]);
                        self.allowance.give(promised);
                        return taken.map(|()| None);
                    }
                }
            }
        };
        sheet.number.loan += 1;
        Ok(Some(sheet))
    }

    /// A chunk for the message that is being written, the last in `out`, of which so many chunks are left. More are taken than
    /// go round only if this says `may_grow`.
    pub(crate) fn next_chunk<R: Receiver<B>>(
        &mut self,
        receiver: &R,
        left: usize,
        may_grow: bool,
    ) -> Result<Next, R::Error> {
        let enough = self.count >= ROUND;
        if enough && self.chunks.is_empty() {
            self.reap();
        }
        if self.said() == Progress::Back {
            return Ok(Next::Unwanted);
        }
        receiver.check()?;
        if enough && self.chunks.is_empty() && !may_grow {
            return Ok(Next::None);
        }
        if !self.spend() {
            self.reap_all();
            if !self.spend() {
                return Ok(Next::None);
            }
        }
        if enough {
            if let Some(rested) = self.chunks.pop_front() {
                return Ok(Next::Chunk(rested));
            }
        }
        self.grow(receiver, left).map(Next::Chunk)
    }

    /// Counts one chunk of the message that is being written as unread. `false`: it may have no more.
    fn spend(&mut self) -> bool {
        let unread = self.out.back().map_or(0, |out| out.chunks.len());
        match &mut self.writing {
            Some(writing) if unread >= writing.most => false,
            Some(writing) if writing.promised > 0 => {
                writing.promised -= 1;
                true
            }
            Some(_) => self.allowance.try_grow(),
            None => false,
        }
    }

    /// Takes more memory: one chunk of it.
    fn grow<R: Receiver<B>>(&mut self, receiver: &R, left: usize) -> Result<Extent, R::Error> {
        let before = self.chunks.len();
        let chunks = &mut self.chunks;
        let taken = self
            .arena
            .take_extents(left.clamp(1, BATCH), CHUNK, |chunk| chunks.push_back(chunk));
        self.count += self.chunks.len() - before;
        let mut shown = None;
        let show = |chunk: &Extent| match shown.replace(chunk.slab) {
            Some(slab) if slab == chunk.slab => Ok(()),
            _ => receiver.show(SlabId(chunk.slab)),
        };
        let known = self.chunks.iter().skip(before).try_for_each(show);
        // One that is not known, or none: what was spent is not.
        let none = |writing: &mut Writing| writing.promised += 1;
        if let Err(error) = taken.map_err(R::Error::from).and(known) {
            self.writing.as_mut().into_iter().for_each(none);
            return Err(error);
        }
        let chunk = self.chunks.pop_back();
        chunk.ok_or_else(|| NoBlock::AllOut.into())
    }

    /// What the receiver says of the message that is being written.
    pub(crate) fn said(&self) -> Progress {
        let writing = self.out.back();
        writing.map_or(Progress::Back, |out| out.progress(&self.returns))
    }

    /// Looks so many times whether the receiver says anything of the message that is being written.
    pub(crate) fn wait_for_word(&self, looks: u32) {
        for _ in 0..looks {
            if self.said() != Progress::Unread {
                return;
            }
            spin_loop();
        }
    }

    /// Waits a moment while the receiver reads the message that is being written where it lies: whether it has ended.
    pub(crate) fn wait_for_pulling(&self) -> bool {
        for _ in 0..LOOKS {
            if self.said() != Progress::Pulling {
                return true;
            }
            spin_loop();
        }
        false
    }

    /// Waits a moment for the receiver to give back a chunk of the oldest message, or of the one that is being written: whether
    /// it has.
    pub(crate) fn wait_for_oldest(&self) -> bool {
        for _ in 0..LOOKS {
            let ends = [self.out.front(), self.out.back()];
            let has_news = |out: &Out| out.came_back(&self.returns).0 > 0;
            if ends.into_iter().flatten().any(has_news) {
                return true;
            }
            spin_loop();
        }
        false
    }

    /// Collects what the receiver gave back, as far as it did so in order, and of the message that is being written.
    pub(crate) fn reap(&mut self) {
        while !self.out.is_empty() {
            let is_written = self.writing.is_none() || self.out.len() > 1;
            if !self.collect(0) || !is_written {
                break;
            }
            self.sheets
                .extend(self.out.pop_front().map(|out| out.sheet));
        }
        if self.writing.is_some() && self.out.len() > 1 {
            self.collect(self.out.len() - 1);
        }
    }

    /// Collects the chunks of one message. Whether the receiver gave back the message too.
    fn collect(&mut self, index: usize) -> bool {
        let is_last = index + 1 == self.out.len();
        let out = &mut self.out[index];
        let (came, is_back) = out.came_back(&self.returns);
        if came > 0 {
            out.emptied = out.emptied.wrapping_add(came);
            self.chunks.extend(out.chunks.drain(..came));
            let mut read = came;
            if let Some(writing) = self.writing.as_mut().filter(|_| is_last) {
                let has = writing.promised + out.chunks.len();
                let kept = writing.keeps.saturating_sub(has).min(came);
                writing.promised += kept;
                read -= kept;
            }
            self.allowance.give(read);
        }
        is_back
    }

    /// Gives all free memory beyond `keep` chunks back to the arena.
    fn shrink(&mut self, keep: usize) {
        if self.chunks.len() > keep {
            self.count -= self.chunks.len() - keep;
            self.arena.give_extents(self.chunks.drain(keep..));
        }
        if self.sheets.len() > keep {
            self.give_sheets(keep);
        }
    }

    fn give_sheets(&mut self, keep: usize) {
        let (numbers, memory): (Vec<_>, Vec<_>) = self
            .sheets
            .drain(keep..)
            .map(|sheet| (sheet.number, sheet.memory))
            .unzip();
        self.arena.give_extents(memory);
        self.allowance.give_numbers(numbers);
    }

    /// The message is written, or will not be.
    pub(crate) fn stop_writing(&mut self) {
        if let Some(writing) = self.writing.take() {
            self.allowance.give(writing.promised);
        }
    }
}

impl<B: Backing> Drop for StreamOut<B> {
    /// Leaves to the arena what the receiver may still read: it comes back with the manifest. It is never given to others, also
    /// when a program panics in the middle, of which the receiver is told.
    fn drop(&mut self) {
        if let (Some(_), Some(out)) = (&self.writing, self.out.back()) {
            out.sheet.manifest(0, 0).abandon();
        }
        self.stop_writing();
        self.trim();
        for out in self.out.drain(..) {
            let lent = Lending {
                number: out.sheet.number.number,
                loan: out.sheet.number.loan,
            };
            let mut memory = Vec::from(out.chunks);
            memory.push(out.sheet.memory);
            self.arena
                .leave_message(lent, memory, self.holder, self.returns.clone());
        }
    }
}

impl Sheet {
    pub(crate) fn manifest(&self, entries: usize, len: usize) -> Manifest {
        Manifest::new(self.memory.region.clone(), self.memory.offset, entries, len)
    }
}

impl Out {
    fn progress(&self, returns: &Returns) -> Progress {
        returns.progress(self.sheet.number.number, self.sheet.number.loan)
    }

    /// How many more chunks came back, and whether the message did.
    fn came_back(&self, returns: &Returns) -> (usize, bool) {
        match self.progress(returns) {
            Progress::Unread | Progress::Pulling => (0, false),
            Progress::Emptied(now) => {
                let more = Returns::newly_emptied(self.emptied, now, self.chunks.len());
                (more, false)
            }
            Progress::Back => (self.chunks.len(), true),
        }
    }
}
