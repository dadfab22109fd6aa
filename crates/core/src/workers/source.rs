//! Where work comes from besides the queue.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::delivery::{Core, Looker};
use crate::links::Links;
use crate::lock::{lock, try_lock};
use crate::progress::Progress;

/// The worker that looks.
pub trait Worker {
    /// What comes next takes long: another worker is to watch.
    fn step_aside(&self);

    /// What goes on around the worker.
    fn progress(&self) -> &dyn Progress;

    /// Whether it may look at the same source again at once: it still is the one that watches, and nothing else is to be done.
    fn may_go_on(&self) -> bool;
}

/// Something that workers look at. All of them may, at the same time.
pub trait Source: Send + Sync {
    /// Takes one thing, if there is one, and does it; then others, as long as the worker may go on. If there is none where the last came
    /// from, looks there up to `looks` times more, a moment apart. Whether there was something.
    fn look(&self, worker: &dyn Worker, looks: u32) -> bool;

    /// From now on whoever brings something must ring this bell.
    fn watch(&self, bell: u32);

    /// Whether a full look would find something.
    fn is_ready(&self) -> bool;

    /// Nobody needs to be woken any more.
    fn unwatch(&self);
}

/// The mailboxes that tasks of these workers await.
pub(super) struct Awaited {
    links: Arc<Links>,
    cores: Mutex<Vec<Arc<Core>>>,
    count: AtomicUsize,
}

impl Awaited {
    pub(super) fn new(links: Arc<Links>) -> Self {
        Self {
            links,
            cores: Mutex::default(),
            count: AtomicUsize::new(0),
        }
    }

    /// A task waits for a message there, and has left its waker.
    pub(super) fn add(&self, core: &Arc<Core>) {
        let mut cores = lock(&self.cores);
        if !cores.iter().any(|other| Arc::ptr_eq(other, core)) {
            cores.push(Arc::clone(core));
            self.count.store(cores.len(), Ordering::Release);
        }
    }

    fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }
}

impl Source for Awaited {
    fn look(&self, worker: &dyn Worker, _: u32) -> bool {
        if self.is_empty() {
            return false;
        }
        worker.progress().poll_networks();
        let Some(mut cores) = try_lock(&self.cores) else {
            return false;
        };
        let (_, links) = self.links.all();
        let before = cores.len();
        cores.retain(|core| !core.wake_task(Looker::Workers, &links));
        self.count.store(cores.len(), Ordering::Release);
        cores.len() < before
    }

    fn watch(&self, bell: u32) {
        for core in &*lock(&self.cores) {
            core.change_watch(Looker::Workers, |watch| watch.announce_sleep(bell));
        }
    }

    fn is_ready(&self) -> bool {
        let (_, links) = self.links.all();
        lock(&self.cores)
            .iter()
            .any(|core| core.has_awaited(&links))
    }

    fn unwatch(&self) {
        for core in &*lock(&self.cores) {
            core.change_watch(Looker::Workers, mizzen_lane::Watch::announce_awake);
        }
    }
}
