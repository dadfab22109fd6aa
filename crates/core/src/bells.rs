//! The bells of a process: one for each thread that sleeps.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use mizzen_lane::{Bell, Region};
use mizzen_shm::{SegmentError, futex};

use crate::blocking::block_in_place;
use crate::counters::Counter;
use crate::lock::lock;
use crate::memory::{Memory, Shared};

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

fn bell(bells: &Region, number: u32) -> Option<Bell> {
    ((number as usize) < MAX_BELLS).then(|| Bell::new(bells.clone(), number as usize * BELL_WORDS))
}

/// The bells of one process, which its peers ring.
#[derive(Debug)]
pub struct Bells {
    pub(crate) shared: Shared,
    /// How often threads of this process slept.
    pub(crate) sleeps: Counter,
    free: Mutex<FreeNumbers>,
}

#[derive(Debug)]
struct FreeNumbers {
    next: u32,
    given_back: Vec<u32>,
}

/// The bell of one thread in one process (a thread may work for several ranks of a local job).
struct ThreadBell {
    bells: Weak<Bells>,
    number: u32,
    bell: Bell,
}

impl Drop for ThreadBell {
    fn drop(&mut self) {
        if let Some(bells) = self.bells.upgrade() {
            lock(&bells.free).given_back.push(self.number);
        }
    }
}

thread_local! {
    static BELLS: RefCell<Vec<ThreadBell>> = const { RefCell::new(Vec::new()) };
}

impl Bells {
    pub(crate) fn new(memory: Memory) -> Result<Arc<Self>, SegmentError> {
        Ok(Arc::new(Self {
            shared: memory.make_open("mizzen-bells", BELL_BYTES)?,
            sleeps: Counter::default(),
            free: Mutex::new(FreeNumbers {
                next: REACTOR_BELL + 1,
                given_back: Vec::new(),
            }),
        }))
    }

    /// Raises the bell of one of our threads.
    pub(crate) fn ring(&self, number: u32) {
        ring(&self.shared.region, number);
    }

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
        block_in_place(|| self.doze(nap, announce, ready, retract));
    }

    /// As `sleep`, for a worker that has nothing to do.
    pub(crate) fn doze(
        self: &Arc<Self>,
        nap: Duration,
        announce: impl FnOnce(u32),
        ready: impl FnOnce() -> bool,
        retract: impl FnOnce(),
    ) {
        let Some((number, bell)) = self.of_thread() else {
            // More sleeping threads than bells: look again soon.
            std::thread::sleep(nap.min(Duration::from_millis(1)));
            return;
        };
        let count = bell.count();
        announce(number);
        if !ready() {
            self.sleeps.add(1);
            futex::wait(bell.word(), count, Some(nap));
        }
        retract();
    }

    /// The bell of the thread that wakes async tasks.
    pub(crate) fn of_reactor(&self) -> Option<Bell> {
        bell(&self.shared.region, REACTOR_BELL)
    }

    fn of_thread(self: &Arc<Self>) -> Option<(u32, Bell)> {
        BELLS.with_borrow_mut(|known| {
            let mine = |one: &ThreadBell| std::ptr::eq(one.bells.as_ptr(), Arc::as_ptr(self));
            if !known.iter().any(mine) {
                known.retain(|one| one.bells.strong_count() > 0);
                let number = lock(&self.free).take()?;
                known.push(ThreadBell {
                    bells: Arc::downgrade(self),
                    number,
                    bell: bell(&self.shared.region, number)?,
                });
            }
            known
                .iter()
                .find(|one| mine(one))
                .map(|found| (found.number, found.bell.clone()))
        })
    }
}

impl FreeNumbers {
    fn take(&mut self) -> Option<u32> {
        if let Some(number) = self.given_back.pop() {
            return Some(number);
        }
        let number = self.next;
        ((number as usize) < MAX_BELLS).then(|| {
            self.next += 1;
            number
        })
    }
}
