//! What a worker does.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::Duration;

use mizzen_lane::Parked;
use mizzen_shm::slice;

use super::roster::Workers;
use super::source::{Source, Worker};
use crate::blocking::{WorkerSlot, set_worker_slot};
use crate::progress::{Progress, Then};
use crate::roll::WORKER_NAME;
use crate::wait::{Contention, Patience, Step};

/// A parked worker that is not needed ends after this long.
const IDLE_END: Duration = Duration::from_secs(5);

/// A worker's own state.
pub(crate) struct WorkerThread {
    workers: Arc<Workers>,
    progress: Arc<dyn Progress>,
    parked: Arc<Parked>,
    /// Whether it is the one that looks for what comes.
    watches: Cell<bool>,
    /// Whether it is blocked, and another has its place.
    away: Cell<bool>,
    /// Whether it said that it looks at the networks all the time.
    polls: Cell<bool>,
    sources: RefCell<Vec<Arc<dyn Source>>>,
    version: Cell<u64>,
    next_source: Cell<usize>,
}

thread_local! {
    static WORKER: RefCell<Option<std::rc::Rc<WorkerThread>>> = const { RefCell::new(None) };
}

/// The state of the calling thread, if it is a worker.
pub(crate) fn on_worker<T>(use_it: impl FnOnce(Option<&WorkerThread>) -> T) -> T {
    let worker = WORKER.with_borrow(Clone::clone);
    use_it(worker.as_deref())
}

/// What comes next takes long: if the calling thread is a worker, another is to watch.
pub fn step_aside() {
    on_worker(|worker| worker.into_iter().for_each(Worker::step_aside));
}

impl Worker for WorkerThread {
    fn step_aside(&self) {
        let watches = self.watches.replace(false);
        if watches {
            self.stop_polling();
        }
        let workers = &self.workers;
        workers.roster.step_aside(watches, &workers.caller());
    }

    fn progress(&self) -> &dyn Progress {
        &*self.progress
    }

    #[inline]
    fn may_go_on(&self) -> bool {
        let roster = &self.workers.roster;
        self.watches.get() && !roster.has_tasks() && !roster.is_stopped() && !roster.has_surplus()
    }
}

impl WorkerSlot for WorkerThread {
    fn leave(&self) -> bool {
        if self.away.replace(true) {
            return false;
        }
        self.step_aside();
        self.workers.roster.give_place(&self.workers.caller());
        true
    }

    fn come_back(&self) {
        self.workers.roster.take_place();
        self.away.set(false);
    }
}

impl WorkerThread {
    /// Starts a worker.
    pub(super) fn start(
        workers: &Arc<Workers>,
        progress: Arc<dyn Progress>,
    ) -> std::io::Result<()> {
        let workers = Arc::clone(workers);
        std::thread::Builder::new()
            .name(WORKER_NAME.into())
            .spawn(move || {
                let worker = std::rc::Rc::new(Self {
                    workers,
                    progress,
                    parked: Parked::new(),
                    watches: Cell::new(false),
                    away: Cell::new(false),
                    polls: Cell::new(false),
                    sources: RefCell::default(),
                    version: Cell::new(0),
                    next_source: Cell::new(0),
                });
                WORKER.set(Some(std::rc::Rc::clone(&worker)));
                set_worker_slot(Some(std::rc::Rc::clone(&worker) as _));
                worker.work();
                WORKER.set(None);
                set_worker_slot(None);
            })
            .map(drop)
    }

    pub(crate) fn workers(&self) -> &Arc<Workers> {
        &self.workers
    }

    fn start_polling(&self) {
        if !self.polls.replace(true) {
            self.progress.add_poller();
        }
    }

    fn stop_polling(&self) {
        if self.polls.replace(false) {
            self.progress.remove_poller(Then::Sleeps);
        }
    }

    fn work(&self) {
        let contention = Contention::default();
        while !self.workers.roster.is_stopped() {
            if self.workers.roster.has_surplus() {
                if !self.park() {
                    return;
                }
                continue;
            }
            if self.look(0) {
                continue;
            }
            if let Some(task) = self.workers.next_task() {
                slice::give_back();
                task.run();
                continue;
            }
            if self.workers.roster.start_watching() {
                self.watches.set(true);
                self.watch(&contention);
                self.step_aside();
            } else if !self.park() {
                return;
            }
        }
    }

    /// Looks at everything until there was something.
    fn watch(&self, contention: &Contention) {
        let mut patience = Patience::until(None, contention);
        while !self.workers.roster.is_stopped() && !self.workers.roster.has_surplus() {
            if let Some(task) = self.workers.next_task() {
                self.step_aside();
                slice::give_back();
                task.run();
                return;
            }
            if self.look(patience.quick_looks()) {
                if !self.watches.get() {
                    return;
                }
                patience = Patience::until(None, contention);
                continue;
            }
            match patience.step() {
                Step::Sleep(nap) => {
                    self.stop_polling();
                    self.sleep(nap);
                    patience.note_woken();
                }
                Step::Again | Step::Expired(_) => self.start_polling(),
            }
        }
    }

    /// Looks at each source until one had something, beginning with the one that had something last, and there up to `looks` times more.
    fn look(&self, looks: u32) -> bool {
        if self.version.get() != self.workers.sources_version() {
            let (version, sources) = self.workers.sources();
            *self.sources.borrow_mut() = sources;
            self.version.set(version);
        }
        let sources = self.sources.borrow();
        let count = sources.len();
        let first = self.next_source.get();
        (0..count).any(|turn| {
            let index = (first + turn) % count;
            let found = sources[index].look(self, if turn == 0 { looks } else { 0 });
            if found {
                self.next_source.set(index);
            }
            found
        })
    }

    fn sleep(&self, nap: Duration) {
        let sources = self.sources.borrow().clone();
        self.workers.bells.doze(
            nap,
            |bell| {
                self.workers.roster.fall_asleep(bell);
                for source in &sources {
                    source.watch(bell);
                }
            },
            || {
                self.workers.roster.has_tasks()
                    || self.workers.roster.is_stopped()
                    || self.workers.roster.has_surplus()
                    || self.version.get() != self.workers.sources_version()
                    || sources.iter().any(|source| source.is_ready())
            },
            || {
                self.workers.roster.wake_up();
                for source in &sources {
                    source.unwatch();
                }
            },
        );
    }

    /// Waits until it is called. `false`: it was not needed for long, and ends.
    fn park(&self) -> bool {
        self.step_aside();
        // What has ended is not to be held while it waits.
        self.sources.take();
        self.version.set(0);
        let roster = &self.workers.roster;
        if !roster.park(&self.parked, &self.workers.caller()) {
            return true;
        }
        while !self.parked.wait(IDLE_END) {
            if roster.end(&self.parked) {
                return false;
            }
        }
        true
    }
}
