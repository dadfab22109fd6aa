//! Whether long messages of a peer are pulled: read by the kernel from the sender's own memory, in one copy, instead of through
//! chunks in two that overlap.
//!
//! Which is faster depends on the processor, on the length, and most of all on whether the sender's core has just written what it sends.
//! So the receiver tries. At first all goes through chunks; now and then it measures a few messages of a length either way, and goes on
//! with what was faster. The less it changes, the less often it looks again. Why: docs/design/one-copy-by-the-kernel.md.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use crate::lock::lock;

/// The variable that forces one way: `never`, or `always` where it can be done.
const PULL: &str = "MIZZEN_PULL";

/// Messages of each way in one comparison. The fastest of them counts: whatever disturbs makes slower.
const SAMPLES: u32 = 4;
/// Messages before the first comparison.
const FIRST: u32 = 16;
/// Messages between two when the last one changed something.
const SOON: u32 = 64;
/// The most between two comparisons, one of which costs a few messages the slower way.
const RARELY: u32 = 2048;
/// While messages are pulled, it is more than the copy that may have become slow: the sender cannot go on meanwhile.
const RARELY_PULLED: u32 = 512;
/// By how much one way must be faster, in sixteenths, to be changed to.
const MARGIN: u32 = 15;
/// Lengths are told apart by powers of two, from the shortest that goes this way on.
const CLASSES: usize = 8;
const SHORTEST: u32 = 15;
/// The longest for which it is tried: what does not stay in the caches was never faster in one copy.
const LONGEST: usize = 2 << 20;
/// The longest if it is forced. The call cannot be interrupted.
const LONGEST_FORCED: usize = 1 << 30;

/// The long messages of one peer.
#[derive(Debug)]
pub(crate) struct Pulling {
    /// The peer's process, if it is another one of this host.
    pid: Option<u32>,
    forced: Option<bool>,
    /// The kernel refused, and would again.
    is_refused: AtomicBool,
    classes: Mutex<[Class; CLASSES]>,
}

/// How one message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    pub(crate) pulls: bool,
    /// Since when it is measured, if it is.
    began: Option<Instant>,
}

/// The messages of one length.
#[derive(Clone, Copy, Debug)]
struct Class {
    pulls: bool,
    /// So many messages until the next comparison.
    left: u32,
    pause: u32,
    /// So many were measured of this comparison, first those of the way that is taken.
    measured: u32,
    fastest: [Duration; 2],
}

impl Default for Class {
    fn default() -> Self {
        Self {
            pulls: false,
            left: FIRST,
            pause: SOON,
            measured: 0,
            fastest: [Duration::MAX; 2],
        }
    }
}

impl Class {
    /// How the next message goes, and whether it is measured.
    fn next(&mut self) -> (bool, bool) {
        if self.left > 0 {
            self.left -= 1;
            return (self.pulls, false);
        }
        (self.pulls != (self.measured >= SAMPLES), true)
    }

    /// A message that was measured took so long.
    fn note(&mut self, pulls: bool, took: Duration) {
        let fastest = &mut self.fastest[usize::from(pulls)];
        *fastest = took.min(*fastest);
        self.measured += 1;
        if self.measured < 2 * SAMPLES {
            return;
        }
        let (now, other) = (usize::from(self.pulls), usize::from(!self.pulls));
        if self.fastest[other] < self.fastest[now] / 16 * MARGIN {
            self.pulls = !self.pulls;
            self.pause = SOON;
        } else {
            let most = if self.pulls { RARELY_PULLED } else { RARELY };
            self.pause = (self.pause * 4).min(most);
        }
        *self = Self {
            pulls: self.pulls,
            left: self.pause,
            pause: self.pause,
            ..Self::default()
        };
    }
}

impl Pulling {
    /// The peer is this process of this host. None, if it is a thread of ours.
    pub(crate) fn of(pid: Option<u32>) -> Self {
        Self {
            pid,
            forced: forced(),
            is_refused: AtomicBool::new(false),
            classes: Mutex::default(),
        }
    }

    /// Whether messages to the peer may be offered to it.
    pub(crate) fn may_offer(&self) -> bool {
        self.pid.is_some() && self.forced != Some(false)
    }

    /// How a message of the peer goes that has just begun and is read as a whole, and the peer's process if it is pulled.
    pub(crate) fn choose(&self, len: usize) -> Option<(Way, u32)> {
        let pid = self.pid?;
        let longest = match self.forced {
            Some(true) => LONGEST_FORCED,
            _ => LONGEST,
        };
        // Nothing follows from it but what is tried next.
        if self.is_refused.load(Ordering::Relaxed) || len > longest {
            return None;
        }
        let (pulls, measures) = match self.forced {
            Some(pulls) => (pulls, false),
            None => lock(&self.classes)[class(len)].next(),
        };
        let began = measures.then(Instant::now);
        Some((Way { pulls, began }, pid))
    }

    /// The message of `len` bytes has come, this way.
    pub(crate) fn note(&self, len: usize, way: Way) {
        if let Some(began) = way.began {
            lock(&self.classes)[class(len)].note(way.pulls, began.elapsed());
        }
    }

    /// The kernel does not let us read the peer's memory.
    pub(crate) fn refuse(&self) {
        self.is_refused.store(true, Ordering::Relaxed);
    }
}

fn class(len: usize) -> usize {
    let power = len.max(1).ilog2().saturating_sub(SHORTEST);
    (power as usize).min(CLASSES - 1)
}

fn forced() -> Option<bool> {
    static FORCED: OnceLock<Option<bool>> = OnceLock::new();
    *FORCED.get_or_init(|| forced_by(std::env::var(PULL).ok().as_deref()))
}

fn forced_by(said: Option<&str>) -> Option<bool> {
    match said {
        Some("never") => Some(false),
        Some("always") => Some(true),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Receives so many messages, of which those pulled and those not take so long: how many were pulled.
    fn receive(class: &mut Class, count: u32, pulled: u64, copied: u64) -> u32 {
        let mut pulls = 0;
        for _ in 0..count {
            let (pulled_now, measured) = class.next();
            pulls += u32::from(pulled_now);
            if measured {
                let took = if pulled_now { pulled } else { copied };
                class.note(pulled_now, Duration::from_nanos(took));
            }
        }
        pulls
    }

    #[test]
    fn what_is_faster_is_found_and_what_changes_is_found_again() {
        let mut class = Class::default();
        // Slower: tried again and again, but hardly ever.
        let tried = receive(&mut class, 100_000, 13_000, 7000);
        assert!((SAMPLES..100_000 / 300).contains(&tried), "{tried}");
        // Now it is faster.
        receive(&mut class, RARELY + 2 * SAMPLES, 4500, 7000);
        let pulled = receive(&mut class, 100_000, 4500, 7000);
        assert!(pulled > 98_000, "{pulled}");
        // And slower.
        receive(&mut class, RARELY_PULLED + 2 * SAMPLES, 13_000, 7000);
        assert!(receive(&mut class, SOON, 13_000, 7000) <= SAMPLES);
    }

    #[test]
    fn a_small_difference_changes_nothing() {
        let mut class = Class::default();
        let pulled = receive(&mut class, 10_000, 6900, 7000);
        assert!(pulled < 200, "{pulled}");
    }

    #[test]
    fn a_peer_that_is_refused_or_forbidden_is_not_asked() {
        let pulling = Pulling::of(Some(1));
        assert_eq!(pulling.choose(LONGEST_FORCED + 1), None);
        pulling.refuse();
        assert_eq!(pulling.choose(1 << 16), None);
        assert_eq!(Pulling::of(None).choose(1 << 16), None);
        assert_eq!(forced_by(Some("never")), Some(false));
        assert_eq!(forced_by(Some("always")), Some(true));
        assert_eq!(forced_by(Some("sometimes")).or(forced_by(None)), None);
    }

    #[test]
    fn lengths_have_their_classes() {
        assert_eq!(
            [1, 1 << 15, 1 << 16, 1 << 22, 1 << 40].map(class),
            [0, 0, 1, 7, 7]
        );
    }
}
