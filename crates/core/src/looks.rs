//! How many quick looks a waiting thread takes between two full ones.
//!
//! Between two looks it tells the processor that it spins. How long that pauses depends on the processor: 5 ns on one, 40 on another. What
//! has to be right is the time of all looks together, so a pause is timed once.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// The time between two full looks: with what these take, four of them cover a round trip between two cores (1 to 2 µs).
const BETWEEN: Duration = Duration::from_nanos(440);
/// What a look takes besides its pause, at least.
const LOOK: Duration = Duration::from_nanos(1);
/// Bounds for a clock that stands still, or a thread that lost its core each time.
const FEWEST: u32 = 8;
const MOST: u32 = 256;

/// 0 until it is known.
static LOOKS: AtomicU32 = AtomicU32::new(0);

/// How many quick looks, a pause apart, are due between two full ones.
#[inline]
pub fn quick_looks() -> u32 {
    match LOOKS.load(Ordering::Relaxed) {
        0 => measured(),
        looks => looks,
    }
}

#[cold]
fn measured() -> u32 {
    let looks = looks_of(pause());
    LOOKS.store(looks, Ordering::Relaxed);
    looks
}

fn looks_of(pause: Duration) -> u32 {
    let looks = BETWEEN.as_nanos() / (pause + LOOK).as_nanos();
    u32::try_from(looks).map_or(MOST, |looks| looks.clamp(FEWEST, MOST))
}

/// How long the processor pauses. The shortest of several times counts: the thread may have lost its core in the others.
fn pause() -> Duration {
    const TRIES: u32 = 5;
    const PAUSES: u32 = 64;
    let timed = |_| {
        let before = Instant::now();
        (0..PAUSES).for_each(|_| spin_loop());
        before.elapsed() / PAUSES
    };
    (0..TRIES).map(timed).min().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_take_about_as_long_on_every_processor() {
        for nanoseconds in [4, 18, 43] {
            let looks = looks_of(Duration::from_nanos(nanoseconds));
            let all = Duration::from_nanos(nanoseconds + 1) * looks;
            assert!(
                all > BETWEEN - Duration::from_nanos(50) && all <= BETWEEN,
                "{all:?}"
            );
        }
        assert_eq!(looks_of(Duration::ZERO), MOST);
        assert_eq!(looks_of(Duration::from_millis(4)), FEWEST);
        assert_eq!(quick_looks(), quick_looks());
    }
}
