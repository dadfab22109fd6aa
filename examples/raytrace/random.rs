//! Numbers that look random and are the same everywhere.

use fastrand::Rng;

/// A generator for one pixel: who renders it, and when, does not matter.
#[derive(Debug)]
pub(crate) struct Random(Rng);

impl Random {
    pub(crate) fn of_pixel(x: u32, y: u32) -> Self {
        Self(Rng::with_seed(u64::from(y) << 32 | u64::from(x)))
    }

    /// From 0 up to 1.
    pub(crate) fn next(&mut self) -> f64 {
        self.0.f64()
    }

    /// A place in the circle of radius 1, all equally likely.
    pub(crate) fn in_circle(&mut self) -> (f64, f64) {
        loop {
            let (x, y) = (2.0 * self.next() - 1.0, 2.0 * self.next() - 1.0);
            if x * x + y * y < 1.0 {
                return (x, y);
            }
        }
    }
}
