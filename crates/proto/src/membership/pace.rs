//! How patient the membership is: every duration it knows, in three presets.

use std::time::Duration;

use crate::boot::Preset;

/// All durations of the membership, which depend on each other: take a preset.
///
/// What must hold between them is checked when this crate is compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Between two beats of an agent.
    pub beat: Duration,
    /// Silence after which an agent or the root looks for another way.
    pub suspect: Duration,
    /// How long after the answered beat was sent an agent may let its processes run.
    pub lease: Duration,
    /// How long an agent whose lease is over may take to end its processes.
    pub kill: Duration,
    /// How long finding another way to the root may take.
    pub rehome: Duration,
    /// What is left for delays of network and scheduler.
    pub slack: Duration,
    /// How long a refused port may take to be told.
    pub refused: Duration,
    /// The root closes an epoch after so long without news.
    pub batch_quiet: Duration,
    /// The root closes an epoch so long after its first news.
    pub batch_most: Duration,
}

impl Pace {
    /// A host is given up after 12 s; a stall of 6 s is survived.
    pub const DEFAULT: Self = Self {
        beat: Duration::from_secs(1),
        suspect: Duration::from_secs(4),
        lease: Duration::from_secs(10),
        kill: Duration::from_secs(2),
        rehome: Duration::from_secs(2),
        slack: Duration::from_secs(1),
        refused: Duration::from_secs(1),
        batch_quiet: Duration::from_millis(50),
        batch_most: Duration::from_millis(250),
    };

    /// A host is given up after 4.5 s, on hosts that are never busy for a second.
    pub const FAST: Self = Self {
        beat: Duration::from_millis(250),
        suspect: Duration::from_secs(1),
        lease: Duration::from_millis(2500),
        rehome: Duration::from_millis(500),
        slack: Duration::from_millis(250),
        ..Self::DEFAULT
    };

    /// A host is given up after 152 s: networks that are repaired meanwhile, and few packets.
    pub const PATIENT: Self = Self {
        beat: Duration::from_secs(15),
        suspect: Duration::from_secs(60),
        lease: Duration::from_secs(150),
        rehome: Duration::from_secs(30),
        slack: Duration::from_secs(15),
        ..Self::DEFAULT
    };

    /// For a job of one host: nobody beats, nothing is ever silent, and what was decided is told at once.
    pub const ALONE: Self = Self {
        beat: NEVER,
        suspect: NEVER,
        lease: NEVER,
        kill: NEVER,
        rehome: NEVER,
        slack: NEVER,
        refused: NEVER,
        batch_quiet: Duration::ZERO,
        batch_most: Duration::ZERO,
    };

    /// That of a preset.
    #[must_use]
    pub const fn of(preset: Preset) -> Self {
        match preset {
            Preset::Fast => Self::FAST,
            Preset::Default => Self::DEFAULT,
            Preset::Patient => Self::PATIENT,
        }
    }

    /// Silence after which a host is pronounced lost: its agent has ended its processes by then.
    #[must_use]
    pub const fn verdict(&self) -> Duration {
        self.lease.saturating_add(self.kill)
    }

    /// A tick that comes later than this says that the machine itself was not running, so that it heard nobody.
    #[must_use]
    pub const fn late(&self) -> Duration {
        Duration::from_nanos(self.beat.as_nanos() as u64 / 2)
    }

    /// Whether the durations fit each other.
    const fn holds(&self) -> bool {
        let (beat, suspect) = (self.beat.as_nanos(), self.suspect.as_nanos());
        let (rehome, slack) = (self.rehome.as_nanos(), self.slack.as_nanos());
        // A lost beat or two are no reason to suspect anybody.
        let patient = suspect >= 4 * beat;
        // Who loses the one it beats to finds another before its own lease is over, also with a grant that was relayed.
        let rehomed = self.lease.as_nanos() >= suspect + rehome + MAX_DEPTH * beat + slack;
        // The root never pronounces while processes may run.
        let fenced = self.verdict().as_nanos() > self.lease.as_nanos() + self.batch_most.as_nanos();
        // News of one cause is one epoch, and is out before the next beat.
        let batched = self.batch_quiet.as_nanos() < self.batch_most.as_nanos()
            && self.batch_most.as_nanos() <= beat;
        let refused = self.refused.as_nanos() <= suspect;
        patient && rehomed && fenced && batched && refused
    }
}

/// Longer than any job: 272 years, of which two fit a `Time`.
const NEVER: Duration = Duration::from_secs(1 << 33);

/// How many agents may stand between an agent and the root: a grant grows old by a beat at each.
const MAX_DEPTH: u128 = 3;

const _: () = assert!(Pace::DEFAULT.holds());
const _: () = assert!(Pace::FAST.holds());
const _: () = assert!(Pace::PATIENT.holds());

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_presets_are_those_of_the_design() {
        let seconds = |pace: Pace| {
            [pace.beat, pace.suspect, pace.lease, pace.verdict()].map(|each| each.as_secs_f64())
        };
        assert_eq!(seconds(Pace::DEFAULT), [1.0, 4.0, 10.0, 12.0]);
        assert_eq!(seconds(Pace::FAST), [0.25, 1.0, 2.5, 4.5]);
        assert_eq!(seconds(Pace::PATIENT), [15.0, 60.0, 150.0, 152.0]);
    }

    #[test]
    fn durations_that_contradict_each_other_are_found() {
        let shorter_lease = Pace {
            lease: Duration::from_secs(9),
            ..Pace::DEFAULT
        };
        let hasty = Pace {
            suspect: Duration::from_secs(3),
            ..Pace::DEFAULT
        };
        let no_time_to_kill = Pace {
            kill: Duration::ZERO,
            ..Pace::DEFAULT
        };
        for pace in [shorter_lease, hasty, no_time_to_kill] {
            assert!(!pace.holds(), "{pace:?}");
        }
    }
}
