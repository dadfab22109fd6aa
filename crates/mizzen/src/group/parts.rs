//! Data of which each member has a part.

use core::ops::{Index, Range};

use mizzen_proto::group::schedule::Member;

/// One part for each member, of any lengths, one after the other in memory.
///
/// ```
/// use mizzen::group::Parts;
///
/// let parts: Parts<u32> = [vec![1, 2], vec![], vec![3]].into_iter().collect();
/// assert_eq!(parts.len(), 3);
/// assert_eq!(parts[0], [1, 2]);
/// assert_eq!(parts.all(), [1, 2, 3]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parts<T> {
    data: Vec<T>,
    /// Where each ends.
    ends: Vec<usize>,
}

impl<T> Parts<T> {
    /// Parts of these lengths.
    pub(super) fn of_lengths(data: Vec<T>, ends: Vec<usize>) -> Self {
        Self { data, ends }
    }

    /// How many parts there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The part of a member. `None` if there is no such one.
    #[must_use]
    pub fn get(&self, member: impl Into<Member>) -> Option<&[T]> {
        let index = member.into().index();
        (index < self.len()).then(|| &self.data[range(&self.ends, index)])
    }

    /// The parts, in the order of the members.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[T]> + '_ {
        (0..self.len()).map(|index| &self.data[range(&self.ends, index)])
    }

    /// All data, one part after the other.
    #[must_use]
    pub fn all(&self) -> &[T] {
        &self.data
    }

    /// The same, without the parts.
    #[must_use]
    pub fn into_all(self) -> Vec<T> {
        self.data
    }

    pub(super) fn ends(&self) -> &[usize] {
        &self.ends
    }
}

impl<T> Index<usize> for Parts<T> {
    type Output = [T];

    fn index(&self, index: usize) -> &[T] {
        &self.data[range(&self.ends, index)]
    }
}

impl<T, P: IntoIterator<Item = T>> FromIterator<P> for Parts<T> {
    fn from_iter<I: IntoIterator<Item = P>>(parts: I) -> Self {
        let (mut data, mut ends) = (Vec::new(), Vec::new());
        for part in parts {
            data.extend(part);
            ends.push(data.len());
        }
        Self { data, ends }
    }
}

/// Where a part is, of those that end there.
pub(super) fn range(ends: &[usize], index: usize) -> Range<usize> {
    let start = index.checked_sub(1).map_or(0, |before| ends[before]);
    start..ends[index]
}
