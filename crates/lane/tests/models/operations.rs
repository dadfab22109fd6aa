//! Operations that are moved on by several threads: their end against those who take them back, who wait for them, and who are
//! gone.

use std::sync::Arc;
use std::task::{Wake, Waker};

use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use loom::thread;
use mizzen_lane::{Operation, Stepped, Steps};

use crate::{Futex, model};

/// Memory that a work writes to: its user's, once the work is over or taken back. Loom reports an access beside another.
#[derive(Default)]
struct Borrowed(UnsafeCell<u32>);

// SAFETY: loom checks that no two threads are in it at once.
unsafe impl Sync for Borrowed {}
// SAFETY: as above.
unsafe impl Send for Borrowed {}

impl Borrowed {
    fn touch(&self) {
        // SAFETY: loom reports an access that is not ordered.
        self.0.with_mut(|value| unsafe { *value += 1 });
    }
}

/// Done after so many steps; or when its peer is gone, if it has one to wait for.
struct Work {
    left: u32,
    memory: Arc<Borrowed>,
    peer_is_gone: Option<Arc<AtomicBool>>,
    dropped: Arc<AtomicU32>,
}

impl Steps for Work {
    type Outcome = Result<(), &'static str>;

    fn step(&mut self) -> Stepped<Self::Outcome> {
        if let Some(gone) = &self.peer_is_gone {
            if !gone.load(Ordering::Acquire) {
                return Stepped::Idle;
            }
            return Stepped::Done(Err("gone"));
        }
        self.memory.touch();
        // Here loom lets others run.
        self.dropped.load(Ordering::Relaxed);
        self.memory.touch();
        match self.left.checked_sub(1) {
            None => Stepped::Done(Ok(())),
            Some(left) => {
                self.left = left;
                Stepped::Moved
            }
        }
    }

    fn waits_for(&self) -> String {
        String::new()
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }
}

struct Shown {
    operation: Arc<Operation<Result<(), &'static str>>>,
    memory: Arc<Borrowed>,
    gone: Arc<AtomicBool>,
    dropped: Arc<AtomicU32>,
}

fn shown(steps: u32, has_peer: bool) -> Shown {
    let (memory, dropped) = (Arc::<Borrowed>::default(), Arc::new(AtomicU32::new(0)));
    let gone = Arc::new(AtomicBool::new(false));
    let work = Work {
        left: steps,
        memory: Arc::clone(&memory),
        peer_is_gone: has_peer.then(|| Arc::clone(&gone)),
        dropped: Arc::clone(&dropped),
    };
    Shown {
        operation: Arc::new(Operation::new(Box::new(work))),
        memory,
        gone,
        dropped,
    }
}

/// Moves it on until it is over.
fn move_on(operation: &Operation<Result<(), &'static str>>) {
    while !operation.is_done() {
        operation.step();
        thread::yield_now();
    }
}

/// A task that sleeps until it is woken.
struct Task {
    futex: Futex,
    woken: AtomicU32,
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        self.woken.fetch_add(1, Ordering::Release);
        self.futex.wake();
    }
}

impl Task {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            futex: Futex::new(),
            woken: AtomicU32::new(0),
        })
    }

    fn wait_for<O>(self: &Arc<Self>, operation: &Operation<O>) -> O {
        let waker = Waker::from(Arc::clone(self));
        loop {
            let count = self.woken.load(Ordering::Acquire);
            if let Some(outcome) = operation.poll_outcome(&waker) {
                return outcome;
            }
            self.futex.sleep_while(&self.woken, count);
        }
    }
}

/// Whoever takes an operation back may touch its memory then, however far another thread had moved it on.
#[test]
fn what_was_taken_back_is_not_touched_any_more() {
    model(3, || {
        let shown = shown(1, false);
        let operation = Arc::clone(&shown.operation);
        let mover = thread::spawn(move || move_on(&operation));
        shown.operation.withdraw();
        shown.memory.touch();
        assert_eq!(shown.dropped.load(Ordering::Relaxed), 1);
        mover.join().unwrap();
        let outcome = shown.operation.take_outcome();
        assert!(matches!(outcome, None | Some(Ok(()))), "{outcome:?}");
        assert_eq!(shown.dropped.load(Ordering::Relaxed), 1);
    });
}

/// Of two threads that move it on one finishes it, and its memory is free for whoever sees that it is done.
#[test]
fn an_operation_that_two_move_on_ends_once() {
    model(3, || {
        let shown = shown(1, false);
        let operation = Arc::clone(&shown.operation);
        let mover = thread::spawn(move || move_on(&operation));
        move_on(&shown.operation);
        shown.memory.touch();
        assert_eq!(shown.dropped.load(Ordering::Relaxed), 1);
        assert_eq!(shown.operation.take_outcome(), Some(Ok(())));
        mover.join().unwrap();
        assert_eq!(shown.operation.take_outcome(), None);
    });
}

/// A task that asks just when the operation ends is told, or woken.
#[test]
fn a_task_is_woken_by_the_end() {
    model(3, || {
        let shown = shown(1, false);
        let operation = Arc::clone(&shown.operation);
        let mover = thread::spawn(move || move_on(&operation));
        assert_eq!(Task::new().wait_for(&shown.operation), Ok(()));
        shown.memory.touch();
        mover.join().unwrap();
    });
}

/// The end of a peer ends what waits for it, while another thread notices the same.
#[test]
fn a_task_is_woken_by_the_end_of_the_peer() {
    model(3, || {
        let shown = shown(0, true);
        let (operation, gone) = (Arc::clone(&shown.operation), Arc::clone(&shown.gone));
        let mover = thread::spawn(move || {
            // It waits for its peer.
            operation.step();
            gone.store(true, Ordering::Release);
            move_on(&operation);
        });
        assert_eq!(Task::new().wait_for(&shown.operation), Err("gone"));
        mover.join().unwrap();
        assert_eq!(shown.dropped.load(Ordering::Relaxed), 1);
    });
}

/// It is taken back just when its peer is gone: either came first, and its memory is free.
#[test]
fn what_is_taken_back_while_its_peer_goes_ends_once() {
    model(3, || {
        let shown = shown(0, true);
        let (operation, gone) = (Arc::clone(&shown.operation), Arc::clone(&shown.gone));
        let mover = thread::spawn(move || {
            gone.store(true, Ordering::Release);
            move_on(&operation);
        });
        shown.operation.withdraw();
        shown.memory.touch();
        let outcome = shown.operation.take_outcome();
        assert!(matches!(outcome, None | Some(Err("gone"))), "{outcome:?}");
        mover.join().unwrap();
        assert!(shown.operation.is_done());
        assert_eq!(shown.dropped.load(Ordering::Relaxed), 1);
    });
}
