//! The workers and what they have to do: the queue of tasks, and from where else work comes.

use core::fmt;
use core::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use async_task::Runnable;
use crossbeam_deque::{Injector, Steal};
use mizzen_lane::{Calls, Roster};

use super::source::{Awaited, Source};
use super::task::{Task, catch_panics};
use crate::bells::Bells;
use crate::delivery::Core;
use crate::links::Links;
use crate::lock::lock;
use crate::progress::Progress;

/// More threads than this are not started, however many of them are blocked.
const MAX_THREADS: usize = 1024;

/// The workers of a process, and what they have to do. Who is called when there is something, is [`Roster`]'s affair.
pub struct Workers {
    progress: Weak<dyn Progress>,
    pub(super) bells: Arc<Bells>,
    start: StartWorker,
    pub(super) roster: Roster,
    queue: Injector<Runnable>,
    sources: Mutex<Vec<Arc<dyn Source>>>,
    sources_changed: AtomicU64,
    awaited: Arc<Awaited>,
}

/// Starts a worker, which is above us.
pub(super) type StartWorker = fn(&Arc<Workers>, Arc<dyn Progress>) -> std::io::Result<()>;

/// Calls the workers.
pub(super) struct Caller<'a>(&'a Arc<Workers>);

impl Calls for Caller<'_> {
    fn ring(&self, bell: u32) {
        self.0.bells.ring(bell);
    }

    fn start(&self) -> bool {
        let progress = self.0.progress.upgrade();
        progress.is_some_and(|progress| (self.0.start)(self.0, progress).is_ok())
    }
}

impl Workers {
    pub(super) fn new(
        progress: Weak<dyn Progress>,
        bells: Arc<Bells>,
        links: Arc<Links>,
        places: usize,
        start: StartWorker,
    ) -> Arc<Self> {
        let awaited = Arc::new(Awaited::new(links));
        Arc::new(Self {
            progress,
            bells,
            start,
            roster: Roster::new(places, MAX_THREADS),
            queue: Injector::new(),
            sources: Mutex::new(vec![Arc::clone(&awaited) as Arc<dyn Source>]),
            sources_changed: AtomicU64::new(1),
            awaited,
        })
    }

    /// Runs a future on the workers.
    pub fn spawn<T: Send + 'static>(
        self: &Arc<Self>,
        future: impl Future<Output = T> + Send + 'static,
    ) -> Task<T> {
        let (runnable, task) = self.prepare(catch_panics(future));
        runnable.schedule();
        Task::new(task)
    }

    /// A future that runs on the workers when it is scheduled; whoever has it may run its first part itself.
    pub fn prepare<T: Send + 'static>(
        self: &Arc<Self>,
        future: impl Future<Output = T> + Send + 'static,
    ) -> (Runnable, async_task::Task<T>) {
        let workers = Arc::downgrade(self);
        let schedule = move |runnable| {
            // When the process has left its job, its tasks end.
            if let Some(workers) = workers.upgrade() {
                workers.push(runnable);
            }
        };
        async_task::Builder::new()
            .propagate_panic(true)
            .spawn(|()| future, schedule)
    }

    fn push(self: &Arc<Self>, runnable: Runnable) {
        if self.roster.is_stopped() {
            return;
        }
        self.roster.note_task();
        self.queue.push(runnable);
        self.roster.call_somebody(&self.caller());
    }

    /// The task that waits the longest.
    pub(super) fn next_task(&self) -> Option<Runnable> {
        if !self.roster.has_tasks() {
            return None;
        }
        loop {
            match self.queue.steal() {
                Steal::Success(runnable) => {
                    self.roster.note_taken();
                    return Some(runnable);
                }
                Steal::Empty => return None,
                Steal::Retry => (),
            }
        }
    }

    /// Lets workers look at this source too.
    pub fn add_source(self: &Arc<Self>, source: Arc<dyn Source>) {
        lock(&self.sources).push(source);
        self.sources_changed.fetch_add(1, Ordering::Release);
        self.roster.call_somebody(&self.caller());
    }

    /// Workers no longer look at this source; one may be doing so just now.
    pub fn remove_source(self: &Arc<Self>, source: &Arc<dyn Source>) {
        lock(&self.sources).retain(|other| !Arc::ptr_eq(other, source));
        self.sources_changed.fetch_add(1, Ordering::Release);
        self.roster.wake_watcher(&self.caller());
    }

    pub(super) fn sources_version(&self) -> u64 {
        self.sources_changed.load(Ordering::Acquire)
    }

    pub(super) fn sources(&self) -> (u64, Vec<Arc<dyn Source>>) {
        let sources = lock(&self.sources);
        (self.sources_version(), sources.clone())
    }

    /// A task of these workers awaits a message to this mailbox.
    pub(crate) fn await_mailbox(self: &Arc<Self>, core: &Arc<Core>) {
        self.awaited.add(core);
        // Another worker may sleep as the watcher, and does not know of it.
        self.roster.wake_watcher(&self.caller());
    }

    pub(super) fn caller(self: &Arc<Self>) -> Caller<'_> {
        Caller(self)
    }

    /// The process leaves its job: workers end after what they do now, and tasks that wait are dropped.
    pub(crate) fn stop(self: &Arc<Self>) {
        self.roster.stop(&self.caller());
        while let Some(task) = self.next_task() {
            drop(task);
        }
        lock(&self.sources).clear();
    }
}

impl fmt::Debug for Workers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workers")
            .field("roster", &self.roster)
            .finish_non_exhaustive()
    }
}
