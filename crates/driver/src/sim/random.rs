//! A small generator of chance, so that a seed alone replays a run.

/// xorshift64* (Vigna, "An experimental exploration of Marsaglia's xorshift generators, scrambled", 2016).
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The generator of this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        // The state must not be zero, and close seeds should not give close starts.
        Self(seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Any number.
    pub fn next_u64(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `end`, or 0 when `end` is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        // The high half of a wide product: unlike a remainder it uses the good bits.
        ((u128::from(self.next_u64()) * u128::from(end)) >> 64) as u64
    }

    /// An index below `end`, or 0 when `end` is 0.
    pub fn index(&mut self, end: usize) -> usize {
        self.below(end as u64) as usize
    }

    /// True `per_mille` times in a thousand.
    pub fn chance(&mut self, per_mille: u64) -> bool {
        self.below(1000) < per_mille
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers() {
        let (mut a, mut b, mut c) = (Random::new(1), Random::new(1), Random::new(2));
        let first: Vec<u64> = (0..8).map(|_| a.next_u64()).collect();
        assert!(first.iter().all(|&number| number == b.next_u64()));
        assert!(first.iter().any(|&number| number != c.next_u64()));
    }

    #[test]
    fn below_stays_below_and_reaches_every_number() {
        let mut random = Random::new(3);
        let mut seen = [false; 10];
        (0..1000).for_each(|_| seen[random.index(10)] = true);
        assert_eq!(seen, [true; 10]);
        assert_eq!(random.below(0), 0);
    }
}
