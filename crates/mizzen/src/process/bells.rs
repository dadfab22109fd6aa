//! The bells of a process: one for each thread that sleeps.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use mizzen_lane::{Bell, Region};
use mizzen_shm::futex;

use super::Process;
use crate::blocking::without_place;

/// The most threads of a process that can sleep at once with a bell of their own.
pub(crate) const MAX_BELLS: usize = 1024;
/// Each bell has a cache line.
const BELL_WORDS: usize = 16;
/// Bytes of the bells of a process.
pub(crate) const BELL_BYTES: usize = MAX_BELLS * BELL_WORDS * 4;
/// The bell of the thread that wakes async tasks.
pub(crate) const REACTOR_BELL: u32 = 0;

/// Raises a bell and wakes the thread that sleeps on it. A number that no process can have is ignored.
pub(crate) fn ring(bells: &Region, number: u32) {
    if let Some(bell) = bell(bells, number) {
        bell.raise();
        futex::wake(bell.word(), 1);
    }
}

pub(crate) fn bell(bells: &Region, number: u32) -> Option<Bell> {
    ((number as usize) < MAX_BELLS).then(|| Bell::new(bells.clone(), number as usize * BELL_WORDS))
}

/// Numbers that are free.
#[derive(Debug)]
pub(crate) struct BellNumbers(Mutex<(u32, Vec<u32>)>);

impl BellNumbers {
    pub(crate) fn new() -> Self {
        Self(Mutex::new((REACTOR_BELL + 1, Vec::new())))
    }

    fn take(&self) -> Option<u32> {
        let mut numbers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = numbers.1.pop() {
            return Some(number);
        }
        let number = numbers.0;
        ((number as usize) < MAX_BELLS).then(|| {
            numbers.0 += 1;
            number
        })
    }

    fn give(&self, number: u32) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .1
            .push(number);
    }
}

/// The bell of one thread in one process (a thread may work for several ranks of a local job).
struct ThreadBell {
    process: Weak<Process>,
    number: u32,
    bell: Bell,
}

impl Drop for ThreadBell {
    fn drop(&mut self) {
        if let Some(process) = self.process.upgrade() {
            process.bell_numbers.give(self.number);
        }
    }
}

thread_local! {
    static BELLS: RefCell<Vec<ThreadBell>> = const { RefCell::new(Vec::new()) };
}

impl Process {
    /// Puts the calling thread to sleep until its bell is raised or `nap` is over. `announce` tells senders which bell to
    /// raise; `ready` looks once more; `retract` says that they need not any longer. A worker gives its place to another
    /// meanwhile.
    pub(crate) fn sleep(
        self: &Arc<Self>,
        nap: Duration,
        announce: impl FnOnce(u32),
        ready: impl FnOnce() -> bool,
        retract: impl FnOnce(),
    ) {
        without_place(|| self.doze(nap, announce, ready, retract));
    }

    /// As `sleep`, for a worker that has nothing to do.
    pub(crate) fn doze(
        self: &Arc<Self>,
        nap: Duration,
        announce: impl FnOnce(u32),
        ready: impl FnOnce() -> bool,
        retract: impl FnOnce(),
    ) {
        let Some((number, bell)) = self.thread_bell() else {
            // More sleeping threads than bells: look again soon.
            std::thread::sleep(nap.min(Duration::from_millis(1)));
            return;
        };
        let count = bell.count();
        announce(number);
        if !ready() {
            futex::wait(bell.word(), count, Some(nap));
        }
        retract();
    }

    fn thread_bell(self: &Arc<Self>) -> Option<(u32, Bell)> {
        BELLS.with_borrow_mut(|bells| {
            let mine = |bell: &ThreadBell| std::ptr::eq(bell.process.as_ptr(), Arc::as_ptr(self));
            if !bells.iter().any(mine) {
                bells.retain(|bell| bell.process.strong_count() > 0);
                let number = self.bell_numbers.take()?;
                let bell = bell(&self.bells.region, number)?;
                bells.push(ThreadBell {
                    process: Arc::downgrade(self),
                    number,
                    bell,
                });
            }
            bells
                .iter()
                .find(|bell| mine(bell))
                .map(|found| (found.number, found.bell.clone()))
        })
    }
}
