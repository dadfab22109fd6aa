//! Who works, who watches, who sleeps, who is parked: so that no task waits while somebody could do it.
//!
//! Of the workers that have nothing to do, one *watches*: it looks for everything that comes, and sleeps with a bell. The others
//! are parked until one of them is called. Whoever adds a task calls the watcher, or somebody else if nobody watches.
//!
//! | who adds a task | who stops watching | who goes to sleep as the watcher |
//! | --- | --- | --- |
//! | 1. add it | 1. watching ← no | 1. asleep ← my bell |
//! | 2. fence | 2. fence | 2. fence |
//! | 3. watching? raise the bell if it is asleep | 3. call somebody else | 3. look for tasks: if any, do not sleep |
//! | 4. otherwise call somebody | 4. look for tasks before being parked | 4. sleep while the bell is as it was |
//!
//! Of the first and each of the others, one sees the other by the fences. Who parks is counted out under the lock and then looks
//! whether somebody watches: whoever stopped watching before has looked under the same lock, and found it at work.

use crate::sync::{
    Arc, AtomicBool, AtomicU32, AtomicUsize, Mutex, MutexGuard, Ordering, Parker, fence,
};
use core::time::Duration;

/// The workers of a process.
///
/// | field | writer | reader |
/// | --- | --- | --- |
/// | `queued` | who adds a task, who takes one | all workers |
/// | `watching`, `asleep` | the watcher | whoever adds a task or a source of tasks |
/// | `staff` | all, by its lock | all |
/// | `surplus` | who changes the staff | workers, after each task |
/// | `stopped` | who stops them | all |
#[derive(Debug)]
pub struct Roster {
    places: usize,
    max_threads: usize,
    staff: Mutex<Staff>,
    /// Whether more threads than places are at work, because some were blocked and go on.
    surplus: AtomicBool,
    watching: AtomicBool,
    /// The bell of the watcher plus one, while it sleeps.
    asleep: AtomicU32,
    queued: AtomicUsize,
    stopped: AtomicBool,
}

#[derive(Debug, Default)]
struct Staff {
    /// Threads that work or look for work.
    working: usize,
    /// Threads in all.
    threads: usize,
    parked: Vec<Arc<Parked>>,
}

/// How workers are called.
pub trait Calls {
    /// Raises a bell and wakes the watcher that sleeps on it.
    fn ring(&self, bell: u32);

    /// Starts one more worker. `false` if that is not possible.
    fn start(&self) -> bool;
}

/// How a parked worker is called.
#[derive(Debug)]
pub struct Parked {
    thread: Parker,
    called: AtomicBool,
}

impl Parked {
    /// For the calling thread.
    #[must_use]
    #[allow(clippy::new_without_default, reason = "it is of the calling thread")]
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            thread: Parker::new(),
            called: AtomicBool::new(false),
        })
    }

    /// Waits, in the thread it is for, until it is called or `most` is over. Whether it was called.
    pub fn wait(&self, most: Duration) -> bool {
        if !self.was_called() {
            self.thread.park_timeout(most);
            return self.was_called();
        }
        true
    }

    /// Whether it was called, since this was last asked.
    fn was_called(&self) -> bool {
        // Acquire pairs with the release in `call`.
        self.called.swap(false, Ordering::Acquire)
    }

    fn call(&self) {
        self.called.swap(true, Ordering::Release);
        self.thread.unpark();
    }
}

impl Roster {
    /// For `places` threads that work at once, and at most `max_threads` in all, however many of them are blocked.
    #[must_use]
    pub fn new(places: usize, max_threads: usize) -> Self {
        Self {
            places: places.max(1),
            max_threads,
            staff: Mutex::new(Staff::default()),
            surplus: AtomicBool::new(false),
            watching: AtomicBool::new(false),
            asleep: AtomicU32::new(0),
            queued: AtomicUsize::new(0),
            stopped: AtomicBool::new(false),
        }
    }

    /// A task is about to be put where workers find it; [`call_somebody`](Self::call_somebody) afterwards.
    #[inline]
    pub fn note_task(&self) {
        self.queued.fetch_add(1, Ordering::Relaxed);
    }

    /// A worker took one.
    #[inline]
    pub fn note_taken(&self) {
        self.queued.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether there are tasks that nobody took yet.
    #[inline]
    #[must_use]
    pub fn has_tasks(&self) -> bool {
        self.queued.load(Ordering::Acquire) > 0
    }

    /// Sees to it that somebody looks for work, if there is a place for it. After whatever there is to look for.
    pub fn call_somebody(&self, calls: &impl Calls) {
        // Pairs with the fence in `fall_asleep`, and with this one when who stops watching calls somebody.
        fence(Ordering::SeqCst);
        if self.is_watched() {
            return self.ring(calls);
        }
        let mut staff = self.lock();
        if staff.working >= self.places || self.is_stopped() {
            return;
        }
        if let Some(parked) = staff.parked.pop() {
            staff.working += 1;
            drop(staff);
            parked.call();
        } else if staff.threads < self.max_threads {
            // Without a thread the others do the work, if there are any; the next call tries again.
            if calls.start() {
                staff.threads += 1;
                staff.working += 1;
            }
        }
    }

    /// Wakes the watcher if it sleeps: what it should look for has changed.
    pub fn wake_watcher(&self, calls: &impl Calls) {
        // Pairs with the fence in `fall_asleep`.
        fence(Ordering::SeqCst);
        self.ring(calls);
    }

    fn ring(&self, calls: &impl Calls) {
        if let Some(bell) = self.asleep.load(Ordering::Relaxed).checked_sub(1) {
            calls.ring(bell);
        }
    }

    /// The calling worker watches from now on, unless another does. `false` if so.
    #[must_use]
    pub fn start_watching(&self) -> bool {
        !self.watching.swap(true, Ordering::AcqRel)
    }

    /// A worker is busy for long from now on: somebody else shall watch. `watches` says whether it was the one.
    pub fn step_aside(&self, watches: bool, calls: &impl Calls) {
        if watches {
            self.watching.store(false, Ordering::Release);
        } else if self.is_watched() {
            return;
        }
        // Also if it found its work before anybody had begun to watch.
        self.call_somebody(calls);
    }

    /// Whether some worker looks for what comes.
    #[must_use]
    pub fn is_watched(&self) -> bool {
        self.watching.load(Ordering::Acquire)
    }

    /// The watcher sleeps until `bell` is raised. It looks for tasks after this, before it does.
    pub fn fall_asleep(&self, bell: u32) {
        self.asleep.store(bell + 1, Ordering::Relaxed);
        // Pairs with the fence in `call_somebody`.
        fence(Ordering::SeqCst);
    }

    /// It is awake again.
    pub fn wake_up(&self) {
        self.asleep.store(0, Ordering::Relaxed);
    }

    /// A worker has nothing to do: it is out of the count until it is called. `false`: it shall not wait.
    #[must_use]
    pub fn park(&self, parked: &Arc<Parked>, calls: &impl Calls) -> bool {
        {
            let mut staff = self.lock();
            if self.is_stopped() {
                return false;
            }
            staff.working -= 1;
            staff.parked.push(Arc::clone(parked));
            self.note_surplus(&staff);
        }
        // What came after its last look is seen to by the watcher; if there is none, by whom this calls.
        self.call_somebody(calls);
        true
    }

    /// A parked worker that nobody called for long ends, if others are left. `true`: it may, and is counted out.
    #[must_use]
    pub fn end(&self, parked: &Arc<Parked>) -> bool {
        let mut staff = self.lock();
        if staff.threads <= self.places && !self.is_stopped() {
            return false;
        }
        let before = staff.parked.len();
        staff.parked.retain(|other| !Arc::ptr_eq(other, parked));
        let ends = staff.parked.len() < before;
        if ends {
            staff.threads -= 1;
        }
        ends
    }

    /// A worker is about to block: its place is free.
    pub fn give_place(&self, calls: &impl Calls) {
        {
            let mut staff = self.lock();
            staff.working -= 1;
            self.note_surplus(&staff);
        }
        self.call_somebody(calls);
    }

    /// A worker was blocked and goes on at once, even if its place was taken meanwhile: then another stops after its task.
    pub fn take_place(&self) {
        let mut staff = self.lock();
        staff.working += 1;
        self.note_surplus(&staff);
    }

    /// Whether a worker between two tasks should make room for one that was blocked.
    #[inline]
    #[must_use]
    pub fn has_surplus(&self) -> bool {
        self.surplus.load(Ordering::Relaxed)
    }

    /// Whether all workers shall end.
    #[inline]
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// Workers end after what they do now, and are called if they wait.
    pub fn stop(&self, calls: &impl Calls) {
        self.stopped.store(true, Ordering::Release);
        self.wake_watcher(calls);
        // Who parks later sees under the lock that it shall not.
        let parked = core::mem::take(&mut self.lock().parked);
        parked.iter().for_each(|parked| parked.call());
    }

    fn note_surplus(&self, staff: &Staff) {
        let surplus = staff.working > self.places;
        self.surplus.store(surplus, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, Staff> {
        self.staff
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
