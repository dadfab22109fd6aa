//! The links of a process through memory, and the arena whose blocks go over them.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::task::Waker;
use std::time::Duration;

use mizzen_lane::Lender;

use crate::error::{ArenaError, UnpackError};
use crate::link::{MemoryLink, Owners};
use crate::lock::lock;
use crate::memory::{
    Arena, Block, HandedTicket, Holding, Lent, LoanTicket, Purpose, Shared, SlabId, lender,
};
use crate::plain::Plain;
use crate::progress::Progress;
use crate::rank::ProcessId;
use crate::roll::{Kind, WaitsFor};
use crate::wait::{Contention, Noted, Patience, Step, Until, spin};

/// How long a thread that waits for memory sleeps at most before it looks again.
const MEMORY_NAP: Duration = Duration::from_millis(1);
/// How many holders of lent buffers are named one by one.
const NAMED_HOLDERS: usize = 4;
/// Peers that are gone and whose slabs are kept, because buffers of theirs may still be handed on to us.
const FORMER_MAX: usize = 8;
/// Buffers to give back when the link to their owner comes: far above what honest peers can cause.
const UNRETURNED_MAX: usize = 1 << 14;

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
    pub(crate) me: ProcessId,
    pub(crate) arena: Arc<Arena>,
    /// Ourselves as the lender of what we borrow of our own arena.
    own: OnceLock<Lender>,
    /// Links that are over, the latest last.
    former: Mutex<VecDeque<Arc<MemoryLink>>>,
    /// Buffers that were handed on and that nobody will read, of owners to whom there is no link yet.
    unreturned: Mutex<Vec<HandedTicket>>,
    all: RwLock<Vec<Arc<MemoryLink>>>,
    changed: AtomicU64,
    /// Tasks that found no memory for a long message, and ask again soon.
    posters: Mutex<Vec<Waker>>,
}

impl Links {
    pub(crate) fn new(me: ProcessId, arena: Arena) -> Self {
        Self {
            me,
            arena: Arc::new(arena),
            own: OnceLock::new(),
            former: Mutex::default(),
            unreturned: Mutex::default(),
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
        let peer = link.peer;
        self.change(|links| links.push(link));
        let now: Vec<HandedTicket> = {
            let mut unreturned = lock(&self.unreturned);
            let (now, later) = unreturned.iter().partition(|handed| handed.owner == peer);
            *unreturned = later;
            now
        };
        now.into_iter().for_each(|handed| self.give_back(handed));
    }

    /// The link to a process that is there.
    pub(crate) fn linked(&self, peer: ProcessId) -> Option<Arc<MemoryLink>> {
        let all = self.all.read().unwrap_or_else(PoisonError::into_inner);
        let is_it = |link: &&Arc<MemoryLink>| link.peer == peer && !link.fate.is_ended();
        all.iter().find(is_it).cloned()
    }

    /// The link to the owner of buffers, which may be gone.
    fn owner(&self, peer: ProcessId) -> Option<Arc<MemoryLink>> {
        let is_it = |link: &&Arc<MemoryLink>| link.peer == peer;
        let all = self.all.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(link) = all.iter().find(is_it) {
            return Some(Arc::clone(link));
        }
        lock(&self.former).iter().find(is_it).cloned()
    }

    /// A buffer that was handed on to us. `None`: there is no link to its owner, or not yet.
    pub(crate) fn take_over(&self, handed: HandedTicket) -> Option<Result<Holding, UnpackError>> {
        let HandedTicket { owner, ticket } = handed;
        if owner == self.me {
            return Some(self.take_over_own(ticket));
        }
        Some(self.owner(owner)?.take_over(ticket))
    }

    fn take_over_own(&self, ticket: LoanTicket) -> Result<Holding, UnpackError> {
        if !self.arena.comes_home(self.me, ticket) {
            return Err(UnpackError::TakenBack);
        }
        let Some(Shared { region, .. }) = self.arena.slab(SlabId(ticket.slab)) else {
            return Err(UnpackError::Malformed);
        };
        let taken = self.own().take_over(region, ticket);
        let loan = taken.map_err(|_| UnpackError::TakenBack)?;
        let loan = loan.ok_or(UnpackError::Malformed)?;
        Ok(Holding {
            loan,
            owner: self.me,
        })
    }

    /// A buffer was not handed on after all. `false`: its owner took it back meanwhile.
    pub(crate) fn keep(&self, held: &mut Holding) -> bool {
        if held.owner == self.me {
            return self.own().keep(&mut held.loan);
        }
        // An owner that is gone takes nothing back.
        let owner = self.owner(held.owner);
        owner.is_none_or(|link| link.lender.keep(&mut held.loan))
    }

    fn own(&self) -> &Lender {
        self.own.get_or_init(|| {
            let (returns, revocations) = self.arena.own();
            lender(returns.clone(), revocations.clone())
        })
    }

    pub(crate) fn remove(&self, link: &Arc<MemoryLink>) {
        if link.is_handed() {
            let mut former = lock(&self.former);
            former.push_back(Arc::clone(link));
            if former.len() > FORMER_MAX {
                former.pop_front();
            }
        }
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
        let mut noted = Noted::default();
        loop {
            if let Some(block) = self.try_take_block(len, purpose)? {
                return Ok(block);
            }
            progress.pump_all();
            spin(patience.quick_looks(), || false);
            match patience.step() {
                Step::Again => (),
                Step::Sleep(nap) => {
                    noted.keep(&mut patience, || self.waits_for(purpose));
                    if let Some(waited) = patience.remarkable() {
                        progress.remark(waited, &self.who_has(purpose));
                    }
                    std::thread::sleep(nap.min(MEMORY_NAP));
                }
                Step::Expired(waited) => return Err(ArenaError::AllOut { waited }),
            }
        }
    }

    #[cold]
    fn waits_for(&self, purpose: Purpose) -> WaitsFor {
        let (_, holders) = self.arena.lent();
        let whom = holders.iter().map(|(holder, _)| holder.rank).collect();
        WaitsFor::some(Kind::Memory, whom, self.who_has(purpose))
    }

    /// What a thread waits for that finds no memory.
    fn who_has(&self, purpose: Purpose) -> String {
        if purpose != Purpose::Lend {
            return "for memory of long messages to come back".into();
        }
        let (used, holders) = self.arena.lent();
        let out: usize = holders.iter().map(|(_, bytes)| bytes).sum();
        let mut what = String::from("for lent buffers to come back");
        for (holder, bytes) in holders.iter().take(NAMED_HOLDERS) {
            what += &format!(", {bytes} bytes are with rank {}", holder.rank);
        }
        if used > out {
            what += &format!(", {} bytes are in this process", used - out);
        }
        what
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

impl Owners for Links {
    fn give_back(&self, handed: HandedTicket) {
        if handed.owner == self.me {
            if self.arena.comes_home(self.me, handed.ticket) {
                self.own().give_back_handed(handed.ticket);
            }
            return;
        }
        // Under the lock: a link that comes now looks here for what is its peer's.
        let mut unreturned = lock(&self.unreturned);
        if let Some(link) = self.owner(handed.owner) {
            drop(unreturned);
            link.lender.give_back_handed(handed.ticket);
            return;
        }
        if unreturned.len() < UNRETURNED_MAX {
            unreturned.push(handed);
        }
    }
}
