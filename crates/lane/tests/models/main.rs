//! Loom models of what two sides do at once: every interleaving up to a bound on preemptions. Run with
//! `RUSTFLAGS="--cfg loom" cargo test -p mizzen-lane --release --test models`.
#![cfg(loom)]
#![allow(unsafe_code)]

mod alarm;
mod handing;
mod handover;
mod lanes;
mod latch;
mod memory;
mod operations;
mod slates;
mod workers;

use loom::sync::atomic::{AtomicU32, Ordering};
use loom::sync::{Condvar, Mutex};
use mizzen_lane::{Backing, Region};

fn model(preemptions: usize, body: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(body);
}

/// Slabs of heap memory.
#[derive(Debug)]
struct Heap;

// SAFETY: the memory is fresh, and loom reports an access that is not ordered.
unsafe impl Backing for Heap {
    type Slab = Region;
    type Error = core::convert::Infallible;
    type Holder = u32;

    fn make(&self, bytes: usize) -> Result<Region, Self::Error> {
        Ok(Region::heap(bytes))
    }

    fn region(slab: &Region) -> &Region {
        slab
    }
}

/// Stands for the futex: sleeps while the bell has its old count. A lost wake-up is an endless wait, which loom
/// reports as a deadlock of the model.
struct Futex {
    lock: Mutex<()>,
    woken: Condvar,
}

impl Futex {
    fn new() -> Self {
        Self {
            lock: Mutex::new(()),
            woken: Condvar::new(),
        }
    }

    fn sleep_while(&self, word: &AtomicU32, count: u32) {
        let mut guard = self.lock.lock().unwrap();
        while word.load(Ordering::Relaxed) == count {
            guard = self.woken.wait(guard).unwrap();
        }
    }

    fn wake(&self) {
        drop(self.lock.lock().unwrap());
        self.woken.notify_all();
    }
}
