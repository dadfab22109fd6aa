//! When sessions must be looked at although nothing comes: acknowledgements, attempts to connect, silence.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::time::Duration;

use mizzen_proto::time::Time;
use rustix::time::{ClockId, clock_gettime};

use crate::rank::ProcessId;

/// The time of an engine: of the kernel's last tick, which costs next to nothing to ask for and is exact enough for what takes
/// tens of milliseconds.
pub(super) fn now() -> Time {
    let now = clock_gettime(ClockId::MonotonicCoarse);
    Time(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
}

/// Who must be looked at when. Only who has the port touches it.
#[derive(Default)]
pub(super) struct Timers(BinaryHeap<Reverse<(Time, ProcessId)>>);

impl Timers {
    pub(super) fn push(&mut self, at: Time, peer: ProcessId) {
        self.0.push(Reverse((at, peer)));
    }

    pub(super) fn pop_due(&mut self, now: Time) -> Option<ProcessId> {
        let Reverse((at, _)) = self.0.peek()?;
        if *at > now {
            return None;
        }
        self.0.pop().map(|Reverse((_, peer))| peer)
    }

    pub(super) fn next(&self) -> Option<Time> {
        self.0.peek().map(|Reverse((at, _))| *at)
    }
}

/// How long the engine's thread may sleep, between it and those who have the port.
///
/// | field | writer | reader |
/// | --- | --- | --- |
/// | `due` | who has the port | who is about to look at timers; our thread |
/// | `sleeps_until` | our thread | who has the port |
#[derive(Debug)]
pub(super) struct Alarm {
    due: AtomicU64,
    sleeps_until: AtomicU64,
}

impl Default for Alarm {
    fn default() -> Self {
        Self {
            due: AtomicU64::new(NEVER),
            sleeps_until: AtomicU64::new(0),
        }
    }
}

impl Alarm {
    /// The next timer is due then. `true`: our thread would sleep beyond it.
    pub(super) fn set(&self, due: Option<Time>) -> bool {
        let due = due.map_or(NEVER, |due| due.0);
        self.due.store(due, Ordering::Release);
        // Pairs with the fence in `sleep`: our thread sees when it is due, or we see how long it sleeps.
        fence(Ordering::SeqCst);
        due < self.sleeps_until.load(Ordering::Relaxed)
    }

    /// Whether a timer is due.
    #[inline]
    pub(super) fn is_due(&self) -> bool {
        let due = self.due.load(Ordering::Relaxed);
        due != NEVER && due <= now().0
    }

    /// Our thread: how long it may sleep, if not for ever.
    pub(super) fn sleep(&self) -> Option<Duration> {
        loop {
            let due = self.due.load(Ordering::Acquire);
            self.sleeps_until.store(due, Ordering::Relaxed);
            fence(Ordering::SeqCst);
            if self.due.load(Ordering::Relaxed) == due {
                let left = due.saturating_sub(now().0);
                // The clock is a tick late at most: looking before it has moved would be in vain.
                return (due != NEVER).then_some(Duration::from_nanos(left) + TICK);
            }
        }
    }

    /// Our thread: it is awake.
    pub(super) fn wake(&self) {
        self.sleeps_until.store(0, Ordering::Relaxed);
    }
}

const NEVER: u64 = u64::MAX;
/// The longest time between two ticks of a kernel.
const TICK: Duration = Duration::from_millis(4);
