//! Work that whoever has the port does for all: no thread waits for another's turn, and nothing that was marked is forgotten.
//!
//! Who has something for the port marks it and tries to take the port. If another has it, that one sees the mark when it gives
//! the port up, or takes it again; if not, we do it ourselves.
//!
//! | who marks | who gives up the port |
//! | --- | --- |
//! | 1. queue what there is, then mark | 1. give up the port |
//! | 2. fence | 2. fence |
//! | 3. try to take the port, and do what is marked | 3. look for marks: if any, try to take it again |
//!
//! A thread of its own sleeps for the network, and is spared when it can be. It *steps aside* while others look all the time,
//! and is called by the last of them that sleeps. What need not go at once is left to whoever looks next, or to this thread, which
//! then looks often until it has found nothing for a while.

use crate::sync::{Arc, AtomicBool, AtomicUsize, Mutex, MutexGuard, Ordering, TryLockError, fence};

/// A port, and what threads that found it taken left to be done with it.
///
/// | field | writer | reader |
/// | --- | --- | --- |
/// | `port` | who has it | who has it |
/// | `work`, `has_work` | who marks; who has the port | who has the port, or has just given it up |
/// | `often` | who leaves something for later; our thread | both |
/// | `lookers` | threads that look all the time | our thread |
/// | `is_aside` | our thread | lookers that are about to sleep |
#[derive(Debug)]
pub struct Handover<P, W> {
    port: Mutex<P>,
    work: Mutex<Vec<Arc<W>>>,
    has_work: AtomicBool,
    /// Whether something may wait for others, so that our thread must look often.
    often: AtomicBool,
    lookers: AtomicUsize,
    is_aside: AtomicBool,
}

/// Whether something is among the work.
#[derive(Debug, Default)]
pub struct Mark(AtomicBool);

/// Something that can be marked.
pub trait Marked {
    /// Its mark, for one [`Handover`].
    fn mark(&self) -> &Mark;
}

impl<P, W: Marked> Handover<P, W> {
    /// With a port that nobody has.
    pub fn new(port: P) -> Self {
        Self {
            port: Mutex::new(port),
            work: Mutex::new(Vec::new()),
            has_work: AtomicBool::new(false),
            often: AtomicBool::new(false),
            lookers: AtomicUsize::new(0),
            is_aside: AtomicBool::new(false),
        }
    }

    /// There is something to do for `what`: to be called after it was queued there, and before [`kick`](Self::kick).
    pub fn mark(&self, what: &Arc<W>) {
        // A mark that is still set is cleared later, before what waits is looked at: whoever clears it finds what we queued.
        if !what.mark().0.swap(true, Ordering::AcqRel) {
            let mut work = self.lock_work();
            work.push(Arc::clone(what));
            self.has_work.store(true, Ordering::Release);
        }
    }

    /// Does what is marked by `serve`, unless another thread has the port, which then does.
    pub fn kick(&self, mut serve: impl FnMut(&mut P)) {
        // Pairs with the fence in `release`.
        fence(Ordering::SeqCst);
        if let Some(mut port) = self.try_take() {
            serve(&mut port);
            self.release(port, serve);
        }
    }

    /// As `mark`, for what may wait a little. `true`: our thread must be woken, to look often.
    #[must_use]
    pub fn mark_for_later(&self, what: &Arc<W>) -> bool {
        self.mark(what);
        // Pairs with the fence in `look_seldom`: our thread sees the mark, or we see that it no longer looks.
        fence(Ordering::SeqCst);
        !self.often.load(Ordering::Relaxed) && !self.often.swap(true, Ordering::AcqRel)
    }

    /// The port, unless another thread has it. [`release`](Self::release) it afterwards.
    pub fn try_take(&self) -> Option<MutexGuard<'_, P>> {
        match self.port.try_lock() {
            Ok(port) => Some(port),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// The port. [`release`](Self::release) it afterwards.
    pub fn take(&self) -> MutexGuard<'_, P> {
        self.port
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Gives up the port, and sees by `serve` to what was marked while it was held.
    pub fn release<'a>(&'a self, mut port: MutexGuard<'a, P>, mut serve: impl FnMut(&mut P)) {
        loop {
            drop(port);
            // Pairs with the fence in `kick`: whoever marked something sees the port free, or we see its mark.
            fence(Ordering::SeqCst);
            if !self.has_work.load(Ordering::Relaxed) {
                return;
            }
            match self.try_take() {
                Some(again) => port = again,
                None => return,
            }
            serve(&mut port);
        }
    }

    /// What is marked now, for whoever has the port. Each is to be looked at after this; its mark is cleared.
    pub fn take_marked(&self) -> Option<Vec<Arc<W>>> {
        if !self.has_work() {
            return None;
        }
        let marked = {
            let mut work = self.lock_work();
            self.has_work.store(false, Ordering::Release);
            core::mem::take(&mut *work)
        };
        for what in &marked {
            what.mark().0.store(false, Ordering::Release);
        }
        Some(marked)
    }

    /// Whether something is marked.
    #[inline]
    pub fn has_work(&self) -> bool {
        self.has_work.load(Ordering::Acquire)
    }

    /// Our thread: whether it must look often.
    pub fn looks_often(&self) -> bool {
        self.often.load(Ordering::Acquire)
    }

    /// Our thread: from now on it sleeps as long as nobody wakes it. It looks once more after this.
    pub fn look_seldom(&self) {
        self.often.store(false, Ordering::Relaxed);
        // Pairs with the fence in `mark_for_later`: what was marked before that is seen now.
        fence(Ordering::SeqCst);
    }

    /// A thread looks all the time from now on: ours need not.
    pub fn add_looker(&self) {
        self.lookers.fetch_add(1, Ordering::AcqRel);
    }

    /// It no longer does.
    pub fn remove_looker(&self) {
        self.lookers.fetch_sub(1, Ordering::AcqRel);
    }

    /// One that looked all the time is about to sleep. `true`: our thread must be woken, to look from now on.
    #[must_use]
    pub fn must_wake(&self) -> bool {
        // Pairs with the fence in `step_aside`: either it sees that the looker is gone, or we see that it stepped aside.
        fence(Ordering::SeqCst);
        self.is_aside.load(Ordering::Relaxed)
    }

    /// Our thread: whether others look, so that it would only be in their way.
    #[must_use]
    pub fn step_aside(&self) -> bool {
        self.is_aside.store(true, Ordering::Relaxed);
        // Pairs with the fence in `must_wake`.
        fence(Ordering::SeqCst);
        let aside = self.lookers.load(Ordering::Acquire) > 0;
        if !aside {
            self.is_aside.store(false, Ordering::Relaxed);
        }
        aside
    }

    fn lock_work(&self) -> MutexGuard<'_, Vec<Arc<W>>> {
        self.work
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
