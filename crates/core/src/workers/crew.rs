//! Who works, who watches, who is parked.

use core::fmt;
use core::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Mutex, Weak};
use std::thread::Thread;

use async_task::Runnable;
use crossbeam_deque::{Injector, Steal};

use super::source::{Awaited, Source};
use super::task::Task;
use crate::bells::Bells;
use crate::delivery::Core;
use crate::links::Links;
use crate::lock::lock;
use crate::progress::Progress;

/// More threads than this are not started, however many of them are blocked.
const MAX_THREADS: usize = 1024;

/// The workers of a process, and what they have to do.
///
/// | field | writer | reader |
/// | --- | --- | --- |
/// | `queue` | whoever has a task | all workers |
/// | `watching`, `asleep` | the watcher | whoever adds a task or a source |
/// | `roster` | all, by its lock | all |
/// | `surplus` | who changes the roster | workers, after each task |
///
/// Who adds a task looks at `watching` afterwards; who stops watching looks at the queue afterwards. Both make a fence in
/// between, so that one of them sees the other, and somebody is called.
pub struct Crew {
    progress: Weak<dyn Progress>,
    pub(super) bells: Arc<Bells>,
    start: StartWorker,
    places: usize,
    queue: Injector<Runnable>,
    sources: Mutex<Vec<Arc<dyn Source>>>,
    sources_changed: AtomicU64,
    awaited: Arc<Awaited>,
    roster: Mutex<Roster>,
    /// Whether more threads than places are at work, because some were blocked and go on.
    surplus: AtomicBool,
    watching: AtomicBool,
    /// The bell of the watcher plus one, while it sleeps.
    asleep: AtomicU32,
    queued: AtomicUsize,
    stopped: AtomicBool,
}

/// Starts a worker, which is above us.
pub(super) type StartWorker = fn(&Arc<Crew>, Arc<dyn Progress>) -> std::io::Result<()>;

#[derive(Default)]
struct Roster {
    /// Threads that work or look for work.
    working: usize,
    /// Threads in all.
    threads: usize,
    parked: Vec<Arc<Parked>>,
}

/// How a parked worker is called.
pub(super) struct Parked {
    thread: Thread,
    called: AtomicBool,
}

impl Parked {
    /// For the calling thread.
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            thread: std::thread::current(),
            called: AtomicBool::new(false),
        })
    }

    /// Whether it was called, since this was last asked.
    pub(super) fn was_called(&self) -> bool {
        self.called.swap(false, Ordering::Acquire)
    }

    pub(super) fn is_called(&self) -> bool {
        self.called.load(Ordering::Acquire)
    }

    fn call(&self) {
        self.called.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

impl Crew {
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
            places: places.max(1),
            queue: Injector::new(),
            sources: Mutex::new(vec![Arc::clone(&awaited) as Arc<dyn Source>]),
            sources_changed: AtomicU64::new(1),
            awaited,
            roster: Mutex::default(),
            surplus: AtomicBool::new(false),
            watching: AtomicBool::new(false),
            asleep: AtomicU32::new(0),
            queued: AtomicUsize::new(0),
            stopped: AtomicBool::new(false),
        })
    }

    /// Runs a future on the workers.
    pub fn spawn<T: Send + 'static>(
        self: &Arc<Self>,
        future: impl Future<Output = T> + Send + 'static,
    ) -> Task<T> {
        let (runnable, task) = self.prepare(future);
        runnable.schedule();
        Task::new(task)
    }

    /// A future that runs on the workers when it is scheduled; whoever has it may run its first part himself.
    pub fn prepare<T: Send + 'static>(
        self: &Arc<Self>,
        future: impl Future<Output = T> + Send + 'static,
    ) -> (Runnable, async_task::Task<T>) {
        let crew = Arc::downgrade(self);
        let schedule = move |runnable| {
            // When the process has left its job, its tasks end.
            if let Some(crew) = crew.upgrade() {
                crew.push(runnable);
            }
        };
        async_task::Builder::new()
            .propagate_panic(true)
            .spawn(|()| future, schedule)
    }

    fn push(self: &Arc<Self>, runnable: Runnable) {
        if self.is_stopped() {
            return;
        }
        self.queued.fetch_add(1, Ordering::Relaxed);
        self.queue.push(runnable);
        fence(Ordering::SeqCst);
        self.call_somebody();
    }

    /// The task that waits the longest.
    pub(super) fn next_task(&self) -> Option<Runnable> {
        if self.queued.load(Ordering::Acquire) == 0 {
            return None;
        }
        loop {
            match self.queue.steal() {
                Steal::Success(runnable) => {
                    self.queued.fetch_sub(1, Ordering::Relaxed);
                    return Some(runnable);
                }
                Steal::Empty => return None,
                Steal::Retry => (),
            }
        }
    }

    pub(super) fn has_tasks(&self) -> bool {
        self.queued.load(Ordering::Acquire) > 0
    }

    /// Workers shall look there, too.
    pub fn add_source(self: &Arc<Self>, source: Arc<dyn Source>) {
        lock(&self.sources).push(source);
        self.sources_changed.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        self.call_somebody();
    }

    /// Workers shall not look there any more; one may be doing it just now.
    pub fn remove_source(&self, source: &Arc<dyn Source>) {
        lock(&self.sources).retain(|other| !Arc::ptr_eq(other, source));
        self.sources_changed.fetch_add(1, Ordering::SeqCst);
        self.ring();
    }

    pub(super) fn sources_version(&self) -> u64 {
        self.sources_changed.load(Ordering::Acquire)
    }

    pub(super) fn sources(&self) -> (u64, Vec<Arc<dyn Source>>) {
        let sources = lock(&self.sources);
        (self.sources_version(), sources.clone())
    }

    /// A task of these workers awaits a message to this mailbox.
    pub(crate) fn await_mailbox(&self, core: &Arc<Core>) {
        self.awaited.add(core);
        // Another worker may sleep as the watcher, and does not know of it.
        fence(Ordering::SeqCst);
        self.ring();
    }

    /// Sees to it that somebody looks for work, if there is a place for him.
    pub(super) fn call_somebody(self: &Arc<Self>) {
        if self.watching.load(Ordering::SeqCst) {
            self.ring();
            return;
        }
        let mut roster = lock(&self.roster);
        if roster.working >= self.places || self.is_stopped() {
            return;
        }
        if let Some(parked) = roster.parked.pop() {
            roster.working += 1;
            drop(roster);
            parked.call();
        } else if roster.threads < MAX_THREADS {
            let Some(progress) = self.progress.upgrade() else {
                return;
            };
            // Without a thread the others do the work, if there are any; the next call tries again.
            if (self.start)(self, progress).is_ok() {
                roster.threads += 1;
                roster.working += 1;
            }
        }
    }

    /// Wakes the watcher if it sleeps.
    fn ring(&self) {
        if let Some(bell) = self.asleep.load(Ordering::SeqCst).checked_sub(1) {
            self.bells.ring(bell);
        }
    }

    /// Whether some worker looks for what comes.
    pub(super) fn is_watched(&self) -> bool {
        self.watching.load(Ordering::SeqCst)
    }

    pub(super) fn start_watching(&self) -> bool {
        !self.watching.swap(true, Ordering::SeqCst)
    }

    /// Somebody else shall watch, if there is anybody.
    pub(super) fn stop_watching(self: &Arc<Self>) {
        self.watching.store(false, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        self.call_somebody();
    }

    pub(super) fn set_asleep(&self, bell: Option<u32>) {
        self.asleep
            .store(bell.map_or(0, |bell| bell + 1), Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    /// A worker has nothing to do: it is out of the count until it is called.
    pub(super) fn park(&self, parked: &Arc<Parked>) {
        let mut roster = lock(&self.roster);
        roster.working -= 1;
        roster.parked.push(Arc::clone(parked));
        self.note_surplus(&roster);
    }

    /// A parked worker that nobody called for long ends, if others are left. `true`: it may.
    pub(super) fn unpark_to_end(&self, parked: &Arc<Parked>) -> bool {
        let mut roster = lock(&self.roster);
        let before = roster.parked.len();
        if roster.threads <= self.places && !self.is_stopped() {
            return false;
        }
        roster.parked.retain(|other| !Arc::ptr_eq(other, parked));
        roster.parked.len() < before
    }

    /// A thread ends that was not at work any more.
    pub(super) fn end_thread(&self) {
        lock(&self.roster).threads -= 1;
    }

    /// A worker is about to block: its place is free.
    pub(super) fn give_place(self: &Arc<Self>) {
        let mut roster = lock(&self.roster);
        roster.working -= 1;
        self.note_surplus(&roster);
        drop(roster);
        fence(Ordering::SeqCst);
        self.call_somebody();
    }

    /// A worker was blocked and goes on at once, even if its place was taken meanwhile: then another stops after its task.
    pub(super) fn take_place(&self) {
        let mut roster = lock(&self.roster);
        roster.working += 1;
        self.note_surplus(&roster);
    }

    fn note_surplus(&self, roster: &Roster) {
        self.surplus
            .store(roster.working > self.places, Ordering::Relaxed);
    }

    /// Whether a worker between two tasks should make room for one that was blocked.
    #[inline]
    pub(super) fn has_surplus(&self) -> bool {
        self.surplus.load(Ordering::Relaxed)
    }

    #[inline]
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// The process leaves its job: workers end after what they do now, and tasks that wait are dropped.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        self.ring();
        for parked in std::mem::take(&mut lock(&self.roster).parked) {
            parked.call();
        }
        while let Some(task) = self.next_task() {
            drop(task);
        }
        lock(&self.sources).clear();
    }
}

impl fmt::Debug for Crew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Crew")
            .field("places", &self.places)
            .field("queued", &self.queued)
            .finish_non_exhaustive()
    }
}
