//! How long a history is, how its network behaves, and how long faults last.

use std::ops::RangeInclusive;
use std::time::Duration;

use fastrand::Rng;

use crate::faults::Faults;
use crate::terrain::Terrain;

/// The frame of one history.
#[derive(Debug, Clone)]
pub struct Options {
    /// What may go wrong; each history takes about half of it.
    pub faults: Faults,
    /// The safety phase: how long things go wrong. Then the network is whole, and nothing else goes wrong.
    pub trouble: Duration,
    /// The liveness phase: in this time everything that waits must have ended.
    pub calm: Duration,
    /// Which hosts reach each other: by default all, over one network.
    pub terrain: Terrain,
    /// How long a message takes between two hosts of that one network.
    pub delay: RangeInclusive<Duration>,
    /// How long what was sent may be unacknowledged before the sender's connection breaks (TCP_USER_TIMEOUT).
    pub silence: Duration,
    /// How long after a connection broke its ends may learn it, each for itself.
    pub learning: Duration,
    /// When a dialler gives up.
    pub dialling: Duration,
    /// The mean time between two faults of a kind.
    pub between: RangeInclusive<Duration>,
    /// How long the ways between hosts are cut.
    pub outage: RangeInclusive<Duration>,
    /// How long a host does nothing.
    pub pause: RangeInclusive<Duration>,
    /// How long what ended takes to start again.
    pub down: RangeInclusive<Duration>,
    /// By how many parts per million a clock may be wrong.
    pub drift: u32,
    /// More events than this are a livelock.
    pub events_max: u64,
}

impl Default for Options {
    /// A network of a cluster, with an hour's bad luck in ten seconds.
    fn default() -> Self {
        let (ms, s) = (Duration::from_millis, Duration::from_secs);
        Self {
            faults: Faults::all(),
            trouble: s(10),
            calm: s(60),
            terrain: Terrain::default(),
            delay: Duration::from_micros(20)..=Duration::from_micros(500),
            silence: s(4),
            learning: s(2),
            dialling: s(5),
            between: ms(500)..=s(10),
            outage: ms(10)..=s(8),
            pause: ms(1)..=s(6),
            down: ms(10)..=s(5),
            drift: 200,
            events_max: 2_000_000,
        }
    }
}

/// A duration of the range. Short ones are as likely as long ones, decade by decade: both find mistakes.
pub(crate) fn draw(rng: &mut Rng, range: &RangeInclusive<Duration>) -> Duration {
    let (low, high) = (nanos(*range.start()).max(1), nanos(*range.end()).max(1));
    let octaves = (high / low).max(1).ilog2();
    let from = low << rng.u32(0..=octaves);
    let to = (from * 2).min(high).max(from);
    Duration::from_nanos(rng.u64(from..=to).clamp(low, high.max(low)))
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX >> 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_drawn_from_the_whole_range_and_not_beyond() {
        let (low, high) = (Duration::from_millis(3), Duration::from_secs(7));
        let mut rng = Rng::with_seed(1);
        let drawn: Vec<_> = (0..2000).map(|_| draw(&mut rng, &(low..=high))).collect();
        assert!(drawn.iter().all(|one| (low..=high).contains(one)));
        assert!(drawn.iter().any(|one| *one < low * 2));
        assert!(drawn.iter().any(|one| *one > high / 2));
        let same = draw(&mut rng, &(low..=low));
        assert_eq!(same, low);
    }
}
