//! Clocks of hosts, which go a little too fast or too slow.

use mizzen_proto::time::Time;

/// The clock of one host: true time, stretched.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Clock {
    /// Parts per million by which it is fast; slow if negative.
    drift: i32,
}

const MILLION: i128 = 1_000_000;

impl Clock {
    pub(crate) const fn new(drift: i32) -> Self {
        Self { drift }
    }

    /// What it shows for who started at `start`.
    pub(crate) fn shown(self, now: Time, start: Time) -> Time {
        let elapsed = i128::from(now.0.saturating_sub(start.0));
        let shown = elapsed * (MILLION + i128::from(self.drift)) / MILLION;
        Time(u64::try_from(shown).unwrap_or(u64::MAX))
    }

    /// The first true time at which it shows at least `shown`.
    pub(crate) fn true_time(self, shown: Time, start: Time) -> Time {
        let rate = MILLION + i128::from(self.drift);
        let elapsed = (i128::from(shown.0) * MILLION + rate - 1) / rate;
        let elapsed = u64::try_from(elapsed).unwrap_or(u64::MAX);
        Time(start.0.saturating_add(elapsed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_rings_when_its_clock_shows_the_time_and_not_before() {
        for drift in [-999, -1, 0, 1, 37, 1000] {
            let clock = Clock::new(drift);
            for shown in [1, 999, 1_000_000, 123_456_789_012] {
                let rings = clock.true_time(Time(shown), Time(50));
                assert!(clock.shown(rings, Time(50)) >= Time(shown));
                assert!(clock.shown(Time(rings.0 - 1), Time(50)) < Time(shown));
            }
        }
    }
}
