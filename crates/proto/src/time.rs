//! Time as machines see it: given in with each event, never asked for.

use std::ops::Add;
use std::time::Duration;

/// Nanoseconds since the machine's own start; 584 years fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(pub u64);

impl Time {
    /// How long after `earlier` this is; zero if it is before.
    #[must_use]
    pub fn since(self, earlier: Time) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Time {
    type Output = Self;

    /// Saturates, so that a deadline that is never reached can be written as one.
    fn add(self, later: Duration) -> Self {
        let nanos = u64::try_from(later.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(nanos))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_before_is_no_time_ago() {
        let (early, late) = (Time(5), Time(5) + Duration::from_nanos(7));
        assert_eq!(late.since(early), Duration::from_nanos(7));
        assert_eq!(early.since(late), Duration::ZERO);
    }

    #[test]
    fn a_deadline_beyond_all_time_is_never_reached() {
        assert_eq!(Time(1) + Duration::MAX, Time(u64::MAX));
    }
}
