//! The links of a process through memory, and the arena whose blocks go over them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::task::Waker;
use std::time::Duration;

use crate::error::ArenaError;
use crate::link::MemoryLink;
use crate::lock::lock;
use crate::memory::{Arena, Block, Lent, Purpose};
use crate::plain::Plain;
use crate::progress::Progress;
use crate::wait::{Contention, Patience, Step, Until, spin};

/// How long a thread that waits for memory sleeps at most before it looks again.
const MEMORY_NAP: Duration = Duration::from_millis(1);

/// The process as a poster sees it: what goes on around, and the memory for long messages.
pub(crate) trait WithLinks: Progress {
    /// The links through memory, and the memory for what goes over them.
    fn links(&self) -> &Links;

    /// This, as threads that wait see it.
    fn progress(&self) -> &dyn Progress;
}

/// All links through memory of one process.
#[derive(Debug)]
pub(crate) struct Links {
    pub(crate) arena: Arc<Arena>,
    all: RwLock<Vec<Arc<MemoryLink>>>,
    changed: AtomicU64,
    /// Tasks that found no memory for a long message, and ask again soon.
    posters: Mutex<Vec<Waker>>,
}

impl Links {
    pub(crate) fn new(arena: Arena) -> Self {
        Self {
            arena: Arc::new(arena),
            all: RwLock::default(),
            changed: AtomicU64::new(0),
            posters: Mutex::default(),
        }
    }

    /// A task found no memory: it is woken soon, to ask again. The caller rings the reactor.
    pub(crate) fn ask_again(&self, waker: &Waker) {
        lock(&self.posters).push(waker.clone());
    }

    /// The tasks that shall ask again.
    pub(crate) fn take_posters(&self) -> Vec<Waker> {
        core::mem::take(&mut lock(&self.posters))
    }

    /// The links whose lanes are to be drained, and a number that changes with them.
    pub(crate) fn all(&self) -> (u64, Vec<Arc<MemoryLink>>) {
        let all = self.all.read().unwrap_or_else(PoisonError::into_inner);
        (self.changed.load(Ordering::Acquire), all.clone())
    }

    #[inline]
    pub(crate) fn version(&self) -> u64 {
        self.changed.load(Ordering::Acquire)
    }

    pub(crate) fn is_empty(&self) -> bool {
        let all = self.all.read().unwrap_or_else(PoisonError::into_inner);
        all.is_empty()
    }

    pub(crate) fn add(&self, link: Arc<MemoryLink>) {
        self.change(|links| links.push(link));
    }

    pub(crate) fn remove(&self, link: &Arc<MemoryLink>) {
        self.change(|links| links.retain(|other| !Arc::ptr_eq(other, link)));
    }

    fn change(&self, change: impl FnOnce(&mut Vec<Arc<MemoryLink>>)) {
        let mut all = self.all.write().unwrap_or_else(PoisonError::into_inner);
        change(&mut all);
        self.changed.fetch_add(1, Ordering::Release);
    }

    /// A block of the arena, waiting for receivers to give some back.
    pub(crate) fn take_block(
        &self,
        progress: &dyn Progress,
        len: usize,
        purpose: Purpose,
        until: Until,
    ) -> Result<Block, ArenaError> {
        let contention = Contention::default();
        let mut patience = Patience::until(until.deadline(), &contention);
        loop {
            if let Some(block) = self.try_take_block(len, purpose)? {
                return Ok(block);
            }
            progress.pump_all();
            spin(patience.quick_looks(), || false);
            match patience.step() {
                Step::Again => (),
                Step::Sleep(nap) => std::thread::sleep(nap.min(MEMORY_NAP)),
                Step::Expired(waited) => return Err(ArenaError::AllOut { waited }),
            }
        }
    }

    /// A block of the arena, if there is one now.
    pub(crate) fn try_take_block(
        &self,
        len: usize,
        purpose: Purpose,
    ) -> Result<Option<Block>, ArenaError> {
        let taken = Block::take(&self.arena, len, purpose)?;
        if self.arena.has_dropped() {
            self.hide_dropped_slabs();
        }
        Ok(taken)
    }

    /// Gives back what receivers have read of long messages, if the arena has grown for it.
    pub(crate) fn tidy(&self) {
        if self.arena.has_excess() {
            for link in self.all().1 {
                link.borrower.trim();
            }
        }
        if self.arena.has_dropped() {
            self.hide_dropped_slabs();
        }
    }

    /// Slabs that the arena dropped need not be kept by peers.
    fn hide_dropped_slabs(&self) {
        for slab in self.arena.dropped_slabs() {
            for link in self.all().1 {
                link.hide_slab(slab);
            }
        }
    }

    /// A lent buffer of `count` values, which are whatever was there before.
    pub(crate) fn lend<T: Plain>(
        &self,
        progress: &dyn Progress,
        count: usize,
        until: Until,
    ) -> Result<Lent<T>, ArenaError> {
        let limit = Arena::longest(Purpose::Lend);
        let bytes = count.saturating_mul(size_of::<T>());
        if bytes > limit {
            return Err(ArenaError::TooLong { bytes, limit });
        }
        self.take_block(progress, bytes, Purpose::Lend, until)
            .map(Lent::new)
    }
}
