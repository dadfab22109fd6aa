//! Numbers that look random and are the same everywhere: splitmix64.

/// A generator for one pixel: who renders it, and when, does not matter.
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn of_pixel(x: u32, y: u32) -> Self {
        Self(u64::from(y) << 32 | u64::from(x))
    }

    /// From 0 up to 1.
    pub(crate) fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^= bits >> 31;
        // The 53 bits that a number has.
        (bits >> 11) as f64 / (1u64 << 53) as f64
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
