//! All operations under way in a process, moved on by whoever waits in it. One of them is `crates/lane/src/operation.rs`.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::error::{Error, Result};
use crate::lock::lock;

/// The most bytes that one step moves, so that many operations take turns.
pub(crate) const STEP_BYTES: usize = 8 << 20;

/// Something that goes on in steps, and what a step has done.
pub(crate) use mizzen_lane::Steps;
pub(crate) type Stepped = mizzen_lane::Stepped<Result<()>>;

/// What a step has done that says how far it came: all of it, some of it, or nothing.
pub(crate) fn stepped(advanced: core::result::Result<Option<bool>, impl Into<Error>>) -> Stepped {
    match advanced {
        Ok(None) => Stepped::Idle,
        Ok(Some(false)) => Stepped::Moved,
        Ok(Some(true)) => Stepped::Done(Ok(())),
        Err(error) => Stepped::Done(Err(error.into())),
    }
}

/// The work of an operation, which may borrow what its user lent.
pub(crate) type Work<'a> = Box<dyn Steps<Outcome = Result<()>> + 'a>;

/// An operation under way.
pub(crate) type Operation = mizzen_lane::Operation<Result<()>>;

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
    use std::sync::atomic::AtomicBool;

    use super::*;

    /// Done after so many steps. Says when it is dropped.
    struct Countdown(u32, Arc<AtomicBool>);

    impl Steps for Countdown {
        type Outcome = Result<()>;

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
                Arc::new(Operation::new(Box::new(work)))
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
