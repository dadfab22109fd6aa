//! What can go wrong, and what goes wrong in one history.

use fastrand::Rng;

/// A kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fault {
    /// A connection breaks: some of what was under way is lost, and its ends learn it at different times.
    Break,
    /// Nothing gets from one host to another, while the way back is whole.
    CutOneWay,
    /// Nothing gets from some hosts to the others, nor back.
    Partition,
    /// A host does nothing for a while, and then everything at once.
    Pause,
    /// A machine ends without a word; its host closes its connections.
    Crash,
    /// A host loses power: all its machines end, and nobody closes their connections.
    PowerLoss,
    /// What ended starts again after a while.
    Restart,
    /// Clocks go at different rates.
    Drift,
    /// Some messages take far longer than others.
    Slow,
}

impl Fault {
    /// All kinds.
    pub const ALL: [Fault; 9] = [
        Fault::Break,
        Fault::CutOneWay,
        Fault::Partition,
        Fault::Pause,
        Fault::Crash,
        Fault::PowerLoss,
        Fault::Restart,
        Fault::Drift,
        Fault::Slow,
    ];

    /// Whether it strikes again and again, and is not a property of the whole history.
    pub(crate) fn strikes(self) -> bool {
        !matches!(self, Fault::Restart | Fault::Drift | Fault::Slow)
    }
}

/// Kinds of faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Faults(u16);

impl Faults {
    /// Nothing goes wrong.
    pub const NONE: Faults = Faults(0);

    /// Those kinds.
    pub fn of(kinds: &[Fault]) -> Self {
        Self(kinds.iter().fold(0, |set, kind| set | bit(*kind)))
    }

    /// All kinds.
    pub fn all() -> Self {
        Self::of(&Fault::ALL)
    }

    /// These without one kind.
    #[must_use]
    pub fn without(self, kind: Fault) -> Self {
        Self(self.0 & !bit(kind))
    }

    /// Whether that kind is among them.
    pub fn has(self, kind: Fault) -> bool {
        self.0 & bit(kind) != 0
    }

    /// About half of them (swarm testing: Groce et al., ISSTA 2012). A history with all kinds of faults at once hides what only
    /// a few of them together bring about.
    #[must_use]
    pub(crate) fn some(self, rng: &mut Rng) -> Self {
        Self(self.0 & rng.u16(..))
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = Fault> {
        Fault::ALL.into_iter().filter(move |kind| self.has(*kind))
    }
}

fn bit(kind: Fault) -> u16 {
    1 << kind as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_faults_are_half_of_those_allowed_and_no_others() {
        let allowed = Faults::all().without(Fault::Pause);
        let mut seen = [0; Fault::ALL.len()];
        for seed in 0..1000 {
            for kind in allowed.some(&mut Rng::with_seed(seed)).iter() {
                seen[kind as usize] += 1;
            }
        }
        for kind in Fault::ALL {
            let times = seen[kind as usize];
            match kind {
                Fault::Pause => assert_eq!(times, 0),
                _ => assert!((400..600).contains(&times), "{kind:?}: {times}"),
            }
        }
    }
}
