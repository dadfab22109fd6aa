//! Memory of frames that were acknowledged, for those that are kept next. Fresh memory of a long frame costs more than what is copied into
//! it: the system clears each page first. That of a short one costs a tenth of its way through the library, as acknowledgements come for
//! many at once.

/// Frames without contents, of all links of an engine.
#[derive(Debug, Default)]
pub(super) struct Spares {
    short: Vec<Vec<u8>>,
    long: Vec<Vec<u8>>,
    /// What the long ones are together.
    bytes: usize,
}

/// The longest of the short ones.
const SHORT: usize = 256;
/// How many short ones there may be: those of a peer that acknowledges late.
const MOST_SHORT: usize = 512;
/// What the long ones may be together: as much as one link keeps, so that a stream finds its own again.
const MOST: usize = 1 << 20;
/// By how much one may be longer than what it is for, which keeps it until the peer has that.
const LONGER: usize = 4;
/// At how many of the last a frame looks for one that fits.
const LOOKED_AT: usize = 8;

impl Spares {
    /// Takes in a frame that nobody needs any more.
    #[inline]
    pub(super) fn put(&mut self, frame: Vec<u8>) {
        if frame.capacity() <= SHORT {
            if self.short.len() < MOST_SHORT {
                self.short.push(frame);
            }
        } else if self.bytes + frame.capacity() <= MOST {
            self.bytes += frame.capacity();
            self.long.push(frame);
        }
    }

    /// One that was put in of about this length, or an empty one.
    #[inline]
    pub(super) fn take(&mut self, len: usize) -> Vec<u8> {
        if len <= SHORT {
            return self.short.pop().unwrap_or_default();
        }
        let fits = |frame: &Vec<u8>| (len..=len * LONGER).contains(&frame.capacity());
        let last = self.long.len().saturating_sub(LOOKED_AT);
        let found = self.long[last..].iter().rposition(fits);
        let frame = found.map(|at| self.long.swap_remove(last + at));
        let frame = frame.unwrap_or_default();
        self.bytes -= frame.capacity();
        frame
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_in_comes_out_and_there_is_a_bound() {
        let mut spares = Spares::default();
        for (len, most) in [(64 << 10, MOST / (64 << 10)), (SHORT, MOST_SHORT)] {
            assert_eq!(spares.take(len).capacity(), 0, "{len}");
            for _ in 0..MOST_SHORT + 1 {
                spares.put(Vec::with_capacity(len));
            }
            let taken = std::iter::repeat_with(|| spares.take(len));
            let taken = taken.take_while(|frame| frame.capacity() == len);
            assert_eq!(taken.count(), most);
        }
        assert_eq!(spares.bytes, 0);
    }

    #[test]
    fn what_is_far_too_long_or_too_short_is_left_to_others() {
        let mut spares = Spares::default();
        spares.put(Vec::with_capacity(96 << 10));
        assert_eq!(spares.take(300).capacity(), 0);
        assert_eq!(spares.take((96 << 10) + 1).capacity(), 0);
        assert_eq!(spares.take(50 << 10).capacity(), 96 << 10);
        assert_eq!(spares.bytes, 0);
    }
}
