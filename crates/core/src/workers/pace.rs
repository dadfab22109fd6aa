//! How long work takes, so that a worker knows whether another should watch meanwhile.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// How long work of one kind takes, such as the calls of a service. While the watcher itself carries some out, nobody looks for
/// what comes next: that is right only for work that is shorter than waking another worker.
pub struct Pace {
    nanoseconds: AtomicU32,
    calls: AtomicU32,
}

impl Pace {
    /// About what it costs to wake another worker and come back.
    const SLOW: Duration = Duration::from_micros(20);
    /// Quick work is timed only this often: reading the clock takes as long as some of it.
    const TIMED_EVERY: u32 = 32;

    /// Of work that was not seen yet.
    #[must_use]
    #[allow(
        clippy::new_without_default,
        reason = "it says nothing to have a usual pace"
    )]
    pub fn new() -> Self {
        Self {
            // Unknown: slow until it was seen to be quick.
            nanoseconds: AtomicU32::new(u32::MAX),
            calls: AtomicU32::new(0),
        }
    }

    /// Whether it takes longer than waking another worker.
    #[inline]
    pub fn is_slow(&self) -> bool {
        self.nanoseconds.load(Ordering::Relaxed) > Self::SLOW.as_nanos() as u32
    }

    /// Does some of the work; the time of some of it is taken.
    #[inline]
    pub fn time<T>(&self, work: impl FnOnce() -> T) -> T {
        let count = self.calls.load(Ordering::Relaxed).wrapping_add(1);
        self.calls.store(count, Ordering::Relaxed);
        if count % Self::TIMED_EVERY != 0 && !self.is_slow() {
            return work();
        }
        let started = Instant::now();
        let done = work();
        let took = u32::try_from(started.elapsed().as_nanos()).unwrap_or(u32::MAX);
        let known = self.nanoseconds.load(Ordering::Relaxed);
        // A slow one counts for the next few.
        let faded = if known == u32::MAX { 0 } else { known / 8 * 7 };
        self.nanoseconds
            .store(took.max(faded).min(u32::MAX - 1), Ordering::Relaxed);
        done
    }
}
