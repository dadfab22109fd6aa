//! The clock of leases: it goes on while the machine is suspended, so that a lease is over when the laptop is opened again.

use mizzen_proto::time::Time;
use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds since the host was started.
pub(crate) fn now() -> Time {
    let now = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(now.tv_nsec).unwrap_or(0);
    Time(seconds.saturating_mul(1_000_000_000).saturating_add(nanos))
}
