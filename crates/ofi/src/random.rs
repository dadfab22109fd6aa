//! Numbers that nobody can guess, from the system, fetched some at a time.

use rustix::rand::{GetRandomFlags, getrandom};

#[derive(Debug)]
pub(crate) struct Random {
    bytes: [u8; FETCHED],
    used: usize,
}

impl Random {
    pub(crate) fn new() -> Self {
        Self {
            bytes: [0; FETCHED],
            used: FETCHED,
        }
    }

    /// # Panics
    ///
    /// When the system has no randomness to give, which it promises to have once it is up.
    pub(crate) fn next_u64(&mut self) -> u64 {
        if self.used == FETCHED {
            self.fetch();
        }
        let mut word = [0; 8];
        word.copy_from_slice(&self.bytes[self.used..self.used + 8]);
        // A number is given away once.
        self.bytes[self.used..self.used + 8].fill(0);
        self.used += 8;
        u64::from_ne_bytes(word)
    }

    fn fetch(&mut self) {
        let mut filled = 0;
        while filled < FETCHED {
            match getrandom(&mut self.bytes[filled..], GetRandomFlags::empty()) {
                Ok(count) => filled += count,
                Err(rustix::io::Errno::INTR) => {}
                Err(errno) => panic!("the system gives no random numbers: {errno}"),
            }
        }
        self.used = 0;
    }
}

/// Bytes fetched at a time: the system gives up to 256 without interruption.
const FETCHED: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_do_not_come_twice() {
        let mut random = Random::new();
        let mut numbers: Vec<u64> = (0..200).map(|_| random.next_u64()).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), 200);
    }
}
