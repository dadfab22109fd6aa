//! Workers that are called when there is something to do.

use core::time::Duration;
use std::sync::Arc;

use loom::sync::Mutex;
use loom::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use loom::thread;
use mizzen_lane::{Bell, Calls, Parked, Region, Roster};

use crate::{Futex, model};

/// What workers share: the queue, a mailbox that only the watcher looks at, and how they are called. They work as
/// `crates/core/src/workers/worker.rs` does, without its clock.
struct Shop {
    roster: Roster,
    queue: Mutex<usize>,
    mailbox: Mutex<usize>,
    bell: Bell,
    futex: Futex,
    done: AtomicUsize,
    all: usize,
    /// Whoever takes the first message waits until another has taken the second.
    both: Futex,
    taken: AtomicU32,
}

struct Caller<'a>(&'a Arc<Shop>);

impl Calls for Caller<'_> {
    fn ring(&self, _: u32) {
        self.0.bell.raise();
        self.0.futex.wake();
    }

    fn start(&self) -> bool {
        let shop = Arc::clone(self.0);
        thread::spawn(move || work(&shop));
        true
    }
}

impl Shop {
    fn new(places: usize, all: usize, messages: usize) -> Arc<Self> {
        Arc::new(Self {
            roster: Roster::new(places, places),
            queue: Mutex::new(0),
            mailbox: Mutex::new(messages),
            bell: Bell::new(Region::heap(64), 0),
            futex: Futex::new(),
            done: AtomicUsize::new(0),
            all,
            both: Futex::new(),
            taken: AtomicU32::new(0),
        })
    }

    fn push(self: &Arc<Self>) {
        self.roster.note_task();
        *self.queue.lock().unwrap() += 1;
        self.roster.call_somebody(&Caller(self));
    }

    fn take_task(&self) -> bool {
        if !self.roster.has_tasks() {
            return false;
        }
        let mut queue = self.queue.lock().unwrap();
        let found = *queue > 0;
        if found {
            *queue -= 1;
            self.roster.note_taken();
        }
        found
    }

    /// One more is done; after the last one the workers end.
    fn did_one(self: &Arc<Self>) {
        if self.done.fetch_add(1, Ordering::AcqRel) + 1 == self.all {
            self.roster.stop(&Caller(self));
        }
    }

    /// Takes a message. The first one takes long: until the second is taken.
    fn look(self: &Arc<Self>, watches: &mut bool) -> bool {
        let left = {
            let mut mailbox = self.mailbox.lock().unwrap();
            let Some(left) = mailbox.checked_sub(1) else {
                return false;
            };
            *mailbox = left;
            left
        };
        if left > 0 {
            self.step_aside(watches);
            self.both.sleep_while(&self.taken, 0);
        } else {
            self.taken.store(1, Ordering::Release);
            self.both.wake();
        }
        self.did_one();
        true
    }

    fn step_aside(self: &Arc<Self>, watches: &mut bool) {
        let watched = core::mem::take(watches);
        self.roster.step_aside(watched, &Caller(self));
    }
}

fn work(shop: &Arc<Shop>) {
    let parked = Parked::new();
    let mut watches = false;
    while !shop.roster.is_stopped() {
        if shop.look(&mut watches) {
            continue;
        }
        if shop.take_task() {
            shop.did_one();
            continue;
        }
        if shop.roster.start_watching() {
            watches = true;
            watch(shop, &mut watches);
            shop.step_aside(&mut watches);
        } else if shop.roster.park(&parked, &Caller(shop)) {
            while !parked.wait(Duration::MAX) {}
        }
    }
}

fn watch(shop: &Arc<Shop>, watches: &mut bool) {
    while !shop.roster.is_stopped() {
        if shop.take_task() {
            shop.step_aside(watches);
            shop.did_one();
            return;
        }
        if shop.look(watches) {
            if !*watches {
                return;
            }
            continue;
        }
        let count = shop.bell.count();
        shop.roster.fall_asleep(0);
        if !shop.roster.has_tasks() && !shop.roster.is_stopped() {
            shop.futex.sleep_while(shop.bell.word(), count);
        }
        shop.roster.wake_up();
        // A task was noted, and is about to be in the queue.
        thread::yield_now();
    }
}

/// A task that nobody was called for would leave its worker asleep, and the model without an end.
#[test]
fn a_task_never_waits_while_a_worker_sleeps() {
    model(3, || {
        let shop = Shop::new(1, 2, 0);
        shop.push();
        shop.push();
    });
}

/// With two workers: one may be about to be parked, because the other watches, just when that one stops.
#[test]
fn a_task_never_waits_while_workers_are_parked() {
    model(3, || {
        let shop = Shop::new(2, 2, 0);
        shop.push();
        shop.push();
    });
}

/// A worker finds its first work before anybody watches, and steps aside: somebody else looks for what comes next.
#[test]
fn who_steps_aside_before_anybody_watched_calls_somebody() {
    model(3, || {
        let shop = Shop::new(2, 2, 2);
        shop.roster.call_somebody(&Caller(&shop));
    });
}
