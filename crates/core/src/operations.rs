//! Operations under way: what goes on in steps, moved on by whoever waits, without a thread of its own.
//!
//! | what | who touches it | ordered by |
//! | --- | --- | --- |
//! | the work of an operation | one thread at a time: who waits, or the reactor | the operation's lock |
//! | its outcome | who finishes it, then who waits for it | the same lock |
//! | whether it is done | anybody | release and acquire of `is_done` |
//!
//! A step does not wait, and moves no other operation on: so none is inside of another.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Waker;

use crate::error::Result;
use crate::lock::{lock, try_lock};

/// The most bytes that one step moves, so that many operations take turns.
pub(crate) const STEP_BYTES: usize = 8 << 20;

/// Something that goes on in steps.
pub(crate) trait Steps: Send {
    /// Does what can be done now, without waiting.
    fn step(&mut self) -> Stepped;

    /// What it waits for, for the user if that takes long.
    fn waits_for(&self) -> String;
}

/// What a step has done.
#[derive(Debug)]
pub(crate) enum Stepped {
    /// It is over.
    Done(Result<()>),
    /// Some of it went, and more may go at once.
    Moved,
    /// It waits for somebody else.
    Idle,
}

/// An operation under way. Its work is dropped when it is done, or taken back.
pub(crate) struct Operation {
    state: Mutex<State>,
    is_done: AtomicBool,
}

struct State {
    work: Option<Box<dyn Steps>>,
    outcome: Option<Result<()>>,
    /// The task that awaits the outcome.
    waker: Option<Waker>,
}

impl Operation {
    pub(crate) fn new(work: Box<dyn Steps>) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State {
                work: Some(work),
                outcome: None,
                waker: None,
            }),
            is_done: AtomicBool::new(false),
        })
    }

    /// Moves it on, unless another thread does so just now. Whether something went.
    pub(crate) fn step(&self) -> bool {
        let Some(mut state) = try_lock(&self.state) else {
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
        self.is_done.store(true, Ordering::Release);
        drop(state);
        waker.into_iter().for_each(Waker::wake);
        true
    }

    /// Whether it is over.
    pub(crate) fn is_done(&self) -> bool {
        self.is_done.load(Ordering::Acquire)
    }

    /// How it ended. `None`: it has not, or somebody was told already.
    pub(crate) fn take_outcome(&self) -> Option<Result<()>> {
        lock(&self.state).outcome.take()
    }

    /// How it ended, or its task is woken when it has.
    pub(crate) fn poll_outcome(&self, waker: &Waker) -> Option<Result<()>> {
        let mut state = lock(&self.state);
        if state.outcome.is_none() {
            state.waker = Some(waker.clone());
        }
        state.outcome.take()
    }

    /// Takes back what is not done: when this returns, nobody touches its work any more.
    pub(crate) fn withdraw(&self) {
        // Under the lock: a thread that moves it on is done with it then.
        let mut state = lock(&self.state);
        state.work = None;
        self.is_done.store(true, Ordering::Release);
    }

    /// What it waits for, unless it is moved on just now.
    pub(crate) fn waits_for(&self) -> Option<String> {
        let state = try_lock(&self.state)?;
        state.work.as_ref().map(|work| work.waits_for())
    }
}

impl core::fmt::Debug for Operation {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Operation")
            .field("is_done", &self.is_done())
            .finish_non_exhaustive()
    }
}

/// All operations of one process that are under way, in the order in which they began.
#[derive(Debug, Default)]
pub(crate) struct Operations {
    all: Mutex<Vec<Arc<Operation>>>,
    /// How many there are.
    count: AtomicUsize,
}

impl Operations {
    /// Has an operation moved on with the others.
    pub(crate) fn add(&self, operation: Arc<Operation>) {
        let mut all = lock(&self.all);
        all.push(operation);
        self.count.store(all.len(), Ordering::Release);
    }

    /// Whether none is under way.
    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    /// Moves each of them on by a step, and forgets those that are over. Whether something went.
    pub(crate) fn move_on(&self) -> bool {
        if self.is_empty() {
            return false;
        }
        let all = lock(&self.all).clone();
        let mut moved = false;
        for operation in &all {
            moved |= operation.step();
        }
        if all.iter().any(|operation| operation.is_done()) {
            let mut all = lock(&self.all);
            all.retain(|operation| !operation.is_done());
            self.count.store(all.len(), Ordering::Release);
        }
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Done after so many steps. Says when it is dropped.
    struct Countdown(u32, Arc<AtomicBool>);

    impl Steps for Countdown {
        fn step(&mut self) -> Stepped {
            match self.0.checked_sub(1) {
                None => Stepped::Done(Ok(())),
                Some(left) => {
                    self.0 = left;
                    Stepped::Moved
                }
            }
        }

        fn waits_for(&self) -> String {
            format!("for {} steps", self.0)
        }
    }

    impl Drop for Countdown {
        fn drop(&mut self) {
            self.1.store(true, Ordering::Relaxed);
        }
    }

    #[test]
    fn those_that_are_over_are_forgotten_and_their_work_is_dropped() {
        let operations = Operations::default();
        let dropped: Vec<_> = (0..3).map(|_| Arc::<AtomicBool>::default()).collect();
        let started: Vec<_> = (0..3)
            .map(|steps| {
                let work = Countdown(steps, Arc::clone(&dropped[steps as usize]));
                Operation::new(Box::new(work))
            })
            .collect();
        started.iter().for_each(|one| operations.add(one.clone()));
        assert!(operations.move_on() && started[0].is_done() && !started[1].is_done());
        assert!(dropped[0].load(Ordering::Relaxed) && !dropped[1].load(Ordering::Relaxed));
        assert_eq!(started[2].waits_for().as_deref(), Some("for 1 steps"));
        started[2].withdraw();
        assert!(dropped[2].load(Ordering::Relaxed) && started[2].is_done());
        assert!(operations.move_on() && operations.is_empty() && !operations.move_on());
        assert!(matches!(started[1].take_outcome(), Some(Ok(()))));
        assert!(started[1].take_outcome().is_none() && started[2].take_outcome().is_none());
    }
}
