//! When sessions must be looked at although nothing comes: acknowledgements, attempts to connect, silence.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use mizzen_lane::Alarm;
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

    /// When the next is due, for the alarm.
    pub(super) fn next(&self) -> u64 {
        self.0.peek().map_or(Alarm::NEVER, |Reverse((at, _))| at.0)
    }
}

/// Whether a timer is due.
#[inline]
pub(super) fn is_due(alarm: &Alarm) -> bool {
    let due = alarm.due();
    due != Alarm::NEVER && due <= now().0
}

/// How long the engine's thread may sleep, if not for ever.
pub(super) fn nap(alarm: &Alarm) -> Option<Duration> {
    let due = alarm.sleep();
    let left = due.saturating_sub(now().0);
    // The clock is a tick late at most: looking before it has moved would be in vain.
    (due != Alarm::NEVER).then_some(Duration::from_nanos(left) + TICK)
}

/// The longest time between two ticks of a kernel.
const TICK: Duration = Duration::from_millis(4);
