//! Whether long messages of a peer are pulled: read by the kernel from the sender's own memory, in one copy, instead of through
//! chunks in two that overlap.
//!
//! Which is faster depends on the processor, on the length, and most of all on whether the sender's core has just written what it sends.
//! So the receiver tries. At first all goes through chunks; now and then it measures a few messages of a length either way, and goes on
//! with what was faster. The less it changes, the less often it looks again.
//!
//! What is measured is the time from the end of one message to the end of the next: in a stream both sides copy at once, and what
//! either needs for one message says little. If that is far longer than the message itself took, the program did something else, and only
//! the latter counts. The other side is `pausing.rs`. Why: docs/design/one-copy-by-the-kernel.md.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use crate::lock::lock;

/// The variable that forces one way: `never`, or `always` where it can be done.
const PULL: &str = "MIZZEN_PULL";

/// Times of each way in one comparison. Their medians are compared: whatever disturbs makes slower, and one that waited for nobody is
/// faster than the next can be.
const SAMPLES: usize = 5;
/// Messages before the first comparison.
const FIRST: u32 = 16;
/// Messages between two when the last one changed something.
const SOON: u32 = 64;
/// The most between two comparisons, one of which costs a few messages the slower way.
const RARELY: u32 = 2048;
/// While messages are pulled, it is more than the copy that may have become slow: the sender cannot go on meanwhile.
const RARELY_PULLED: u32 = 512;
/// Messages in which a comparison must have all its times. In a stream one can be pulled only if its sender holds it for that, which it
/// does rarely (`pausing.rs`).
const PATIENCE: u32 = 3 * 4096;
/// By how much one way must be faster, in sixteenths, to be changed to.
const MARGIN: u32 = 15;
/// Lengths are told apart by powers of two, from the shortest that goes this way on.
pub(super) const CLASSES: usize = 8;
const SHORTEST: u32 = 15;
/// The longest for which it is tried: what does not stay in the caches was never faster in one copy.
pub(super) const LONGEST: usize = 2 << 20;
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
    past: Mutex<Past>,
}

/// What is known of messages that came.
#[derive(Debug, Default)]
struct Past {
    classes: [Class; CLASSES],
    /// When the last one ended.
    last: Option<Instant>,
}

/// How one message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    pub(crate) pulls: bool,
    /// When the one before it ended, and when it began itself; if it is measured.
    measured: Option<(Option<Instant>, Instant)>,
}

/// The messages of one length.
#[derive(Clone, Copy, Debug)]
struct Class {
    pulls: bool,
    /// So many messages until the next comparison.
    left: u32,
    pause: u32,
    /// Nanoseconds of the way that is taken, which are measured first, and of the other.
    times: [[u32; SAMPLES]; 2],
    measured: usize,
    /// So many messages are left of this comparison.
    patience: u32,
}

impl Default for Class {
    fn default() -> Self {
        Self {
            pulls: false,
            left: FIRST,
            pause: SOON,
            times: [[0; SAMPLES]; 2],
            measured: 0,
            patience: PATIENCE,
        }
    }
}

impl Class {
    /// Whether the next message is pulled, and whether it is measured. Only one that is early can be pulled.
    fn next(&mut self, is_early: bool) -> (bool, bool) {
        if self.left > 0 {
            self.left -= 1;
            return (self.pulls && is_early, false);
        }
        if self.patience == 0 {
            self.rest();
            return (self.pulls && is_early, false);
        }
        self.patience -= 1;
        let wanted = self.pulls != (self.measured >= SAMPLES);
        let pulls = wanted && is_early;
        (pulls, pulls == wanted)
    }

    /// A message took so long, this way. Other threads may have ended the comparison meanwhile.
    fn note(&mut self, pulled: bool, took: Duration) {
        let (way, sample) = (self.measured / SAMPLES, self.measured % SAMPLES);
        if self.left > 0 || pulled != (self.pulls != (way > 0)) {
            return;
        }
        self.times[way][sample] = u32::try_from(took.as_nanos()).unwrap_or(u32::MAX);
        self.measured += 1;
        if self.measured < 2 * SAMPLES {
            return;
        }
        let [now, other] = self.times.map(median);
        if other < now / 16 * MARGIN {
            self.pulls = !self.pulls;
            self.pause = SOON / 4;
        }
        self.rest();
    }

    /// Compares no more for a while.
    fn rest(&mut self) {
        let most = if self.pulls { RARELY_PULLED } else { RARELY };
        let pause = (self.pause * 4).min(most);
        *self = Self {
            pulls: self.pulls,
            left: pause,
            pause,
            ..Self::default()
        };
    }
}

/// What counts of a message that took so long `itself`, and ended so long `after` the one before it.
fn took(after: Option<Duration>, itself: Duration) -> Duration {
    after.filter(|after| *after < itself * 2).unwrap_or(itself)
}

fn median(mut times: [u32; SAMPLES]) -> u32 {
    times.sort_unstable();
    times[SAMPLES / 2]
}

impl Pulling {
    /// The peer is this process of this host. None, if it is a thread of ours.
    pub(crate) fn of(pid: Option<u32>) -> Self {
        Self {
            pid,
            forced: forced(),
            is_refused: AtomicBool::new(false),
            past: Mutex::default(),
        }
    }

    /// Whether messages to the peer may be offered to it.
    pub(crate) fn may_offer(&self) -> bool {
        self.pid.is_some() && self.forced != Some(false)
    }

    /// How a message of the peer goes that is read as a whole, and the peer's process if it is pulled; which it can be only if it `is_early`:
    /// little of it is written.
    pub(crate) fn choose(&self, len: usize, is_early: bool) -> Option<(Way, u32)> {
        let pid = self.pid?;
        let longest = match self.forced {
            Some(true) => LONGEST_FORCED,
            _ => LONGEST,
        };
        // Nothing follows from it but what is tried next.
        if self.is_refused.load(Ordering::Relaxed) {
            return None;
        }
        if let Some(forced) = self.forced {
            let pulls = forced && is_early && len <= longest;
            let measured = None;
            return Some((Way { pulls, measured }, pid));
        }
        let mut past = lock(&self.past);
        // Of one that says nothing of its end.
        let last = past.last.take();
        if len > longest {
            return None;
        }
        let (pulls, measures) = past.classes[class(len)].next(is_early);
        let measured = measures.then(|| (last, Instant::now()));
        Some((Way { pulls, measured }, pid))
    }

    /// The message of `len` bytes has come, this way.
    pub(crate) fn note(&self, len: usize, way: Way) {
        if self.forced.is_some() {
            return;
        }
        let now = Instant::now();
        let mut past = lock(&self.past);
        past.last = Some(now);
        if let Some((since, began)) = way.measured {
            let took = took(since.map(|since| now - since), now - began);
            past.classes[class(len)].note(way.pulls, took);
        }
    }

    /// The kernel does not let us read the peer's memory.
    pub(crate) fn refuse(&self) {
        self.is_refused.store(true, Ordering::Relaxed);
    }
}

pub(super) fn class(len: usize) -> usize {
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

    /// Receives so many messages, each `early` or not, of which those pulled and those not take so long: how many were pulled.
    fn receive(class: &mut Class, count: u32, early: bool, pulled: u64, copied: u64) -> u32 {
        let mut pulls = 0;
        for _ in 0..count {
            let (pulled_now, measured) = class.next(early);
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
        let tried = receive(&mut class, 100_000, true, 13_000, 7000);
        assert!((SAMPLES as u32..100_000 / 300).contains(&tried), "{tried}");
        // Now it is faster.
        receive(&mut class, RARELY + 2 * SAMPLES as u32, true, 4500, 7000);
        let pulled = receive(&mut class, 100_000, true, 4500, 7000);
        assert!(pulled > 98_000, "{pulled}");
        // And slower.
        let few = RARELY_PULLED + 2 * SAMPLES as u32;
        receive(&mut class, few, true, 13_000, 7000);
        assert!(receive(&mut class, SOON, true, 13_000, 7000) <= SAMPLES as u32);
    }

    #[test]
    fn a_small_difference_changes_nothing() {
        let mut class = Class::default();
        let pulled = receive(&mut class, 10_000, true, 6900, 7000);
        assert!(pulled < 200, "{pulled}");
    }

    #[test]
    fn a_comparison_waits_for_messages_that_can_be_pulled_but_not_for_ever() {
        let mut class = Class::default();
        assert_eq!(receive(&mut class, 3000, false, 4500, 7000), 0);
        assert_eq!(class.measured, SAMPLES, "of the way that is taken");
        let few = SAMPLES as u32 + SOON;
        assert_eq!(receive(&mut class, few, true, 4500, 7000), few);
        let mut class = Class::default();
        receive(&mut class, FIRST + PATIENCE + 1, false, 4500, 7000);
        assert!(class.measured == 0 && class.left > 0);
    }

    #[test]
    fn a_time_is_that_since_the_message_before_unless_something_else_was_done_between() {
        let [short, long] = [7, 13].map(Duration::from_micros);
        assert_eq!(took(Some(long), short), long);
        assert_eq!(took(Some(long * 2), short), short);
        assert_eq!(took(None, short), short);
    }

    #[test]
    fn whatever_comes_between_them_few_messages_of_a_length_are_tried() {
        let pulling = Pulling::of(Some(1));
        let receive = |len, early| {
            let chosen = pulling.choose(len, early);
            if let Some((way, _)) = chosen {
                pulling.note(len, way);
            }
            chosen.is_some_and(|(way, _)| way.measured.is_some())
        };
        let mut tried = 0;
        for _ in 0..FIRST + SOON {
            tried += usize::from(receive(1 << 16, true));
            assert!(!receive(4 << 20, true));
            receive(1 << 18, false);
        }
        assert_eq!(tried, 2 * SAMPLES);
    }

    #[test]
    fn what_another_thread_measured_of_the_other_way_does_not_count() {
        let mut class = Class::default();
        receive(&mut class, FIRST, true, 1, 1);
        class.note(true, Duration::from_nanos(1));
        assert_eq!(class.measured, 0);
        class.note(false, Duration::from_nanos(1));
        assert_eq!(class.measured, 1);
    }

    #[test]
    fn a_peer_that_is_refused_or_forbidden_is_not_asked() {
        let pulling = Pulling::of(Some(1));
        assert_eq!(pulling.choose(LONGEST_FORCED + 1, true), None);
        pulling.refuse();
        assert_eq!(pulling.choose(1 << 16, true), None);
        assert_eq!(Pulling::of(None).choose(1 << 16, true), None);
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
