//! An operation under way: what goes on in steps, moved on by whoever comes along, without a thread of its own.
//!
//! | what | who touches it | ordered by |
//! | --- | --- | --- |
//! | the work of an operation | one thread at a time: who waits, or the reactor | the operation's lock |
//! | its outcome | who finishes it, then who waits for it | the same lock |
//! | whether it is done | anybody | release and acquire of `is_done` |
//!
//! A step does not wait, and moves no other operation on: so none is inside of another.

use core::task::Waker;
use std::sync::PoisonError;

use crate::sync::{AtomicBool, Mutex, MutexGuard, Ordering, TryLockError};

/// Something that goes on in steps.
pub trait Steps: Send {
    /// How it ends.
    type Outcome;

    /// Does what can be done now, without waiting.
    fn step(&mut self) -> Stepped<Self::Outcome>;

    /// What it waits for, for the user if that takes long.
    fn waits_for(&self) -> String;

    /// The number of the process that it waits for, if it is one.
    fn waits_for_whom(&self) -> Option<u32> {
        None
    }

    /// How many bytes went so far, if it can tell.
    fn moved(&self) -> u64 {
        0
    }
}

/// What a step has done.
#[derive(Debug)]
pub enum Stepped<O> {
    /// It is over.
    Done(O),
    /// Some of it went, and more may go at once.
    Moved,
    /// It waits for somebody else.
    Idle,
}

/// An operation under way. Its work is dropped when it is done, or taken back.
pub struct Operation<O> {
    state: Mutex<State<O>>,
    is_done: AtomicBool,
}

struct State<O> {
    work: Option<Box<dyn Steps<Outcome = O>>>,
    outcome: Option<O>,
    /// The task that awaits the outcome.
    waker: Option<Waker>,
}

impl<O> Operation<O> {
    /// Nobody moves it on yet.
    #[must_use]
    pub fn new(work: Box<dyn Steps<Outcome = O>>) -> Self {
        Self {
            state: Mutex::new(State {
                work: Some(work),
                outcome: None,
                waker: None,
            }),
            is_done: AtomicBool::new(false),
        }
    }

    /// Moves it on, unless another thread does so just now. Whether something went.
    pub fn step(&self) -> bool {
        let Some(mut state) = self.try_lock() else {
            return false;
        };
        let Some(work) = &mut state.work else {
            return false;
        };
        match work.step() {
            Stepped::Idle => return false,
            Stepped::Moved => return true,
            Stepped::Done(outcome) => {
                state.work = None;
                state.outcome = Some(outcome);
            }
        }
        let waker = state.waker.take();
        // Pairs with `is_done`.
        self.is_done.store(true, Ordering::Release);
        drop(state);
        // A waker is code of the program.
        waker.into_iter().for_each(Waker::wake);
        true
    }

    /// Whether it is over.
    #[must_use]
    pub fn is_done(&self) -> bool {
        // Pairs with the stores in `step` and `withdraw`.
        self.is_done.load(Ordering::Acquire)
    }

    /// How it ended. `None`: it has not, or somebody was told already.
    pub fn take_outcome(&self) -> Option<O> {
        self.lock().outcome.take()
    }

    /// How it ended, or its task is woken when it has.
    pub fn poll_outcome(&self, waker: &Waker) -> Option<O> {
        let mut state = self.lock();
        if state.outcome.is_none() {
            state.waker = Some(waker.clone());
        }
        state.outcome.take()
    }

    /// Takes back what is not done: when this returns, nobody touches its work any more.
    pub fn withdraw(&self) {
        // Under the lock: a thread that moves it on is done with it then.
        let mut state = self.lock();
        state.work = None;
        // Pairs with `is_done`.
        self.is_done.store(true, Ordering::Release);
    }

    /// What it waits for, unless it is moved on just now.
    #[must_use]
    pub fn waits_for(&self) -> Option<String> {
        let state = self.try_lock()?;
        state.work.as_ref().map(|work| work.waits_for())
    }

    /// The process that it waits for, if it is known just now.
    #[must_use]
    pub fn waits_for_whom(&self) -> Option<u32> {
        let state = self.try_lock()?;
        state.work.as_ref().and_then(|work| work.waits_for_whom())
    }

    /// How many bytes went so far. `None`: it is over. Waits for a thread that moves it on just now, which is for one step.
    #[must_use]
    pub fn moved(&self) -> Option<u64> {
        let state = self.lock();
        state.work.as_ref().map(|work| work.moved())
    }

    /// What a step that panicked leaves is an operation that nobody can move on, and that can be taken back.
    fn lock(&self) -> MutexGuard<'_, State<O>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn try_lock(&self) -> Option<MutexGuard<'_, State<O>>> {
        match self.state.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

impl<O> core::fmt::Debug for Operation<O> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Operation")
            .field("is_done", &self.is_done())
            .finish_non_exhaustive()
    }
}
