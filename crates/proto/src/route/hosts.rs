//! Sets of hosts as ranges: a cluster of a thousand hosts takes as much as one of two.

use std::ops::Range;

use crate::membership::HostId;

/// Some hosts of a job. Hosts of a cluster have numbers that follow each other, so it is a few ranges.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hosts {
    /// In order, neither empty nor touching each other.
    ranges: Vec<Range<u32>>,
}

impl Hosts {
    /// Whether a host is among them.
    #[must_use]
    pub fn contains(&self, host: HostId) -> bool {
        let after = self.ranges.partition_point(|range| range.end <= host.0);
        self.ranges
            .get(after)
            .is_some_and(|range| range.contains(&host.0))
    }

    /// Those that are in both.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let (mut one, mut two) = (
            self.ranges.iter().peekable(),
            other.ranges.iter().peekable(),
        );
        let mut ranges = Vec::new();
        while let (Some(first), Some(second)) = (one.peek(), two.peek()) {
            let both = first.start.max(second.start)..first.end.min(second.end);
            if !both.is_empty() {
                ranges.push(both);
            }
            if first.end < second.end {
                one.next();
            } else {
                two.next();
            }
        }
        Self { ranges }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The bytes that it takes beside itself.
    pub(super) fn memory(&self) -> usize {
        self.ranges.len() * size_of::<Range<u32>>()
    }

    /// Each of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = HostId> + '_ {
        self.ranges.iter().cloned().flatten().map(HostId)
    }
}

impl From<Range<u32>> for Hosts {
    fn from(range: Range<u32>) -> Self {
        std::iter::once(range).collect()
    }
}

/// Ranges may be in any order, empty, and overlap.
impl FromIterator<Range<u32>> for Hosts {
    fn from_iter<T: IntoIterator<Item = Range<u32>>>(ranges: T) -> Self {
        let mut all: Vec<_> = ranges
            .into_iter()
            .filter(|range| !range.is_empty())
            .collect();
        all.sort_by_key(|range| range.start);
        let mut ranges: Vec<Range<u32>> = Vec::with_capacity(all.len());
        for range in all {
            match ranges.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => ranges.push(range),
            }
        }
        Self { ranges }
    }
}

impl FromIterator<HostId> for Hosts {
    fn from_iter<T: IntoIterator<Item = HostId>>(hosts: T) -> Self {
        hosts
            .into_iter()
            .map(|host| host.0..host.0.saturating_add(1))
            .collect()
    }
}
