//! Memory lent to a driver: the parts of a body, and cursors over them.
//!
//! All unsafety of body memory is here. A [`Part`] is an address that nobody may follow yet. Turning a
//! list of them into a [`Gather`] or a [`Scatter`] is the unsafe step, where the promise of
//! [`Driver::send_body`](crate::Driver::send_body) or `recv_body` is passed on; from then on their
//! methods are safe, and dropping them is what "no longer touched" means.
#![allow(unsafe_code)]

use std::io::{IoSlice, IoSliceMut};

/// A run of bytes that a body is sent from.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    start: *const u8,
    len: usize,
}

// SAFETY: a part is an address and a length and cannot be followed without `unsafe`; whoever does so
// relies on the promise given to `send_body`, which does not depend on the thread.
unsafe impl Send for Part {}

impl Part {
    /// The `len` bytes from `start`.
    #[must_use]
    pub const fn new(start: *const u8, len: usize) -> Self {
        Self { start, len }
    }

    /// The bytes of a slice.
    #[must_use]
    pub const fn of(bytes: &[u8]) -> Self {
        Self::new(bytes.as_ptr(), bytes.len())
    }

    /// How many bytes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The first `len` bytes, and the others.
    ///
    /// # Panics
    ///
    /// When there are fewer.
    #[must_use]
    pub const fn split_at(self, len: usize) -> (Self, Self) {
        assert!(len <= self.len, "split inside of the part");
        // Not followed here, so it need not be memory.
        let rest = Self::new(self.start.wrapping_add(len), self.len - len);
        (Self::new(self.start, len), rest)
    }
}

/// A run of bytes that a body is received into.
#[derive(Debug, Clone, Copy)]
pub struct PartMut {
    start: *mut u8,
    len: usize,
}

// SAFETY: as for `Part`, with the promise given to `recv_body`.
unsafe impl Send for PartMut {}

impl PartMut {
    /// The `len` bytes from `start`.
    #[must_use]
    pub const fn new(start: *mut u8, len: usize) -> Self {
        Self { start, len }
    }

    /// The bytes of a slice.
    #[must_use]
    pub const fn of(bytes: &mut [u8]) -> Self {
        Self::new(bytes.as_mut_ptr(), bytes.len())
    }

    /// How many bytes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The first `len` bytes, and the others.
    ///
    /// # Panics
    ///
    /// When there are fewer.
    #[must_use]
    pub const fn split_at(self, len: usize) -> (Self, Self) {
        assert!(len <= self.len, "split inside of the part");
        // Not followed here, so it need not be memory.
        let rest = Self::new(self.start.wrapping_add(len), self.len - len);
        (Self::new(self.start, len), rest)
    }
}

/// What is left to read of a body that is being sent.
#[derive(Debug)]
pub struct Gather {
    parts: Box<[Part]>,
    place: Place,
}

impl Gather {
    /// A cursor at the first byte of `parts`.
    ///
    /// # Safety
    ///
    /// Until the value is dropped, every non-empty part is readable memory that nobody writes.
    #[must_use]
    pub unsafe fn new(parts: &[Part]) -> Self {
        Self {
            parts: parts.into(),
            place: Place::start(parts.iter().map(Part::len).sum()),
        }
    }

    /// How many bytes are left.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.place.remaining
    }

    /// Fills `slices` with the next bytes, at most `limit` of them, and says how many slices it used.
    pub fn fill<'a>(&'a self, limit: usize, slices: &mut [IoSlice<'a>]) -> usize {
        let mut used = 0;
        self.place.walk(
            limit,
            slices.len(),
            |index| self.parts[index].len,
            |index, skip, len| {
                // SAFETY: `skip + len` is at most the part's length (`Place::walk`), and the caller of `new`
                // promised that the part is readable and unwritten while `self`, borrowed for 'a, lives.
                let bytes =
                    unsafe { std::slice::from_raw_parts(self.parts[index].start.add(skip), len) };
                slices[used] = IoSlice::new(bytes);
                used += 1;
            },
        );
        used
    }

    /// Appends the next `len` bytes to `out` and moves past them.
    ///
    /// # Panics
    ///
    /// When fewer than `len` bytes are left.
    pub fn copy_to(&mut self, len: usize, out: &mut Vec<u8>) {
        let goal = out.len() + len;
        while out.len() < goal {
            let mut slice = [IoSlice::new(&[])];
            assert!(
                self.fill(goal - out.len(), &mut slice) == 1,
                "a body shorter than was asked of it"
            );
            out.extend_from_slice(&slice[0]);
            let copied = slice[0].len();
            self.advance(copied);
        }
    }

    /// Moves past `len` bytes.
    ///
    /// # Panics
    ///
    /// When fewer than `len` bytes are left.
    pub fn advance(&mut self, len: usize) {
        self.place.advance(len, |index| self.parts[index].len);
    }
}

/// What is left to write of a body that is being received.
#[derive(Debug)]
pub struct Scatter {
    parts: Box<[PartMut]>,
    place: Place,
}

impl Scatter {
    /// A cursor at the first byte of `parts`.
    ///
    /// # Safety
    ///
    /// Until the value is dropped, every non-empty part is initialised, writable memory that overlaps no
    /// other part and that nobody else reads or writes.
    #[must_use]
    pub unsafe fn new(parts: &[PartMut]) -> Self {
        Self {
            parts: parts.into(),
            place: Place::start(parts.iter().map(PartMut::len).sum()),
        }
    }

    /// How many bytes are left.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.place.remaining
    }

    /// How many bytes are in place.
    #[must_use]
    pub fn filled(&self) -> usize {
        let all = self.parts.iter().map(PartMut::len).sum::<usize>();
        all - self.remaining()
    }

    /// Fills `slices` with the next places, at most `limit` bytes, and says how many slices it used.
    pub fn fill<'a>(&'a mut self, limit: usize, slices: &mut [IoSliceMut<'a>]) -> usize {
        let mut used = 0;
        self.place.walk(
            limit,
            slices.len(),
            |index| self.parts[index].len,
            |index, skip, len| {
                // SAFETY: `skip + len` is at most the part's length (`Place::walk`); the caller of `new` promised
                // that the part is writable and ours alone while `self` lives, `self` is borrowed mutably for
                // 'a, and each part is visited once, so no two slices overlap.
                let bytes = unsafe {
                    std::slice::from_raw_parts_mut(self.parts[index].start.add(skip), len)
                };
                slices[used] = IoSliceMut::new(bytes);
                used += 1;
            },
        );
        used
    }

    /// Writes `bytes` into the next places and moves past them.
    ///
    /// # Panics
    ///
    /// When there is less room than `bytes`.
    pub fn copy_from(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let mut slice = [IoSliceMut::new(&mut [])];
            assert!(
                self.fill(bytes.len(), &mut slice) == 1,
                "a body longer than its place"
            );
            let copied = slice[0].len();
            slice[0].copy_from_slice(&bytes[..copied]);
            bytes = &bytes[copied..];
            self.advance(copied);
        }
    }

    /// Moves past `len` bytes.
    ///
    /// # Panics
    ///
    /// When there is less room than `len`.
    pub fn advance(&mut self, len: usize) {
        self.place.advance(len, |index| self.parts[index].len);
    }
}

/// A place in a list of parts. `skip` is at most the length of part `index`, and `remaining` is the sum
/// of what follows.
#[derive(Debug)]
struct Place {
    index: usize,
    skip: usize,
    remaining: usize,
}

impl Place {
    fn start(remaining: usize) -> Self {
        Self {
            index: 0,
            skip: 0,
            remaining,
        }
    }

    /// Visits at most `max_runs` non-empty runs with at most `limit` bytes together, as (part, skip, len)
    /// with `skip + len` within the part.
    fn walk(
        &self,
        limit: usize,
        max_runs: usize,
        len_of: impl Fn(usize) -> usize,
        mut visit: impl FnMut(usize, usize, usize),
    ) {
        let (mut index, mut skip) = (self.index, self.skip);
        let mut left = limit.min(self.remaining);
        let mut runs = 0;
        while left > 0 && runs < max_runs {
            let len = (len_of(index) - skip).min(left);
            if len > 0 {
                visit(index, skip, len);
                runs += 1;
                left -= len;
            }
            index += 1;
            skip = 0;
        }
    }

    fn advance(&mut self, mut len: usize, len_of: impl Fn(usize) -> usize) {
        assert!(len <= self.remaining, "moved past the end of a body");
        self.remaining -= len;
        while len > 0 {
            let step = (len_of(self.index) - self.skip).min(len);
            len -= step;
            self.skip += step;
            if self.skip == len_of(self.index) {
                self.index += 1;
                self.skip = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gather(parts: &[&[u8]]) -> Gather {
        let parts: Vec<Part> = parts.iter().map(|bytes| Part::of(bytes)).collect();
        // SAFETY: the tests keep the slices borrowed, hence readable and unwritten, while they use it.
        unsafe { Gather::new(&parts) }
    }

    #[test]
    fn a_gather_reads_its_parts_in_order_and_skips_empty_ones() {
        let (a, b) = ([1, 2, 3], [4, 5]);
        let mut gather = gather(&[&[], &a, &[], &b, &[]]);
        let mut out = Vec::new();
        gather.copy_to(1, &mut out);
        gather.copy_to(3, &mut out);
        assert_eq!((out.as_slice(), gather.remaining()), (&[1, 2, 3, 4][..], 1));
    }

    #[test]
    fn filling_stops_at_the_limit_and_at_the_last_slice() {
        let (a, b, c) = ([1, 2, 3], [4, 5], [6]);
        let gather = gather(&[&a, &b, &c]);
        let mut slices = [IoSlice::new(&[]); 2];
        assert_eq!(gather.fill(100, &mut slices), 2);
        assert_eq!(&*slices[1], [4, 5]);
        assert_eq!(gather.fill(4, &mut slices), 2);
        assert_eq!(&*slices[1], [4]);
        assert_eq!(gather.fill(0, &mut slices), 0);
    }

    #[test]
    fn a_scatter_writes_each_byte_once_in_order() {
        let (mut a, mut b) = ([0; 3], [0; 2]);
        let parts = [
            PartMut::of(&mut a),
            PartMut::of(&mut []),
            PartMut::of(&mut b),
        ];
        // SAFETY: `a` and `b` are not used again before the scatter is dropped.
        let mut scatter = unsafe { Scatter::new(&parts) };
        scatter.copy_from(&[1]);
        scatter.copy_from(&[2, 3, 4]);
        assert_eq!(scatter.remaining(), 1);
        drop(scatter);
        assert_eq!((a, b), ([1, 2, 3], [4, 0]));
    }

    #[test]
    fn a_part_that_was_split_is_all_of_it() {
        let bytes = [1, 2, 3, 4];
        let (first, rest) = Part::of(&bytes).split_at(1);
        // SAFETY: `bytes` is readable and unwritten until the end of the test.
        let mut gather = unsafe { Gather::new(&[rest, first]) };
        let mut out = Vec::new();
        gather.copy_to(4, &mut out);
        assert_eq!(out, [2, 3, 4, 1]);
    }

    #[test]
    #[should_panic(expected = "longer than its place")]
    fn a_scatter_never_writes_past_its_parts() {
        let mut a = [0; 3];
        // SAFETY: `a` is not used before the scatter is dropped.
        let mut scatter = unsafe { Scatter::new(&[PartMut::of(&mut a)]) };
        scatter.copy_from(&[0; 4]);
    }
}
