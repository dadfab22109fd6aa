//! A list of which the first two need no memory of their own: most messages have as few pieces.
//!
//! It has no destructor of its own, as a `Vec` has not for the compiler: what refers to a caller's memory may be in it when that memory
//! goes, or every `?` after a piece was unpacked would be an error.

use core::iter::{Chain, Flatten};
use core::{array, slice};
use std::vec;

/// How many need none.
const FEW: usize = 2;

/// A list of which the first two need no memory of their own.
pub(crate) struct Few<T> {
    /// Those that are there come first.
    first: [Option<T>; FEW],
    rest: Vec<T>,
}

/// All of them, in their order.
type Iter<'a, T> = Chain<Flatten<slice::Iter<'a, Option<T>>>, slice::Iter<'a, T>>;
type IterMut<'a, T> = Chain<Flatten<slice::IterMut<'a, Option<T>>>, slice::IterMut<'a, T>>;
type IntoIter<T> = Chain<Flatten<array::IntoIter<Option<T>, FEW>>, vec::IntoIter<T>>;

impl<T> Few<T> {
    pub(crate) const fn new() -> Self {
        Self {
            first: [const { None }; FEW],
            rest: Vec::new(),
        }
    }

    pub(crate) fn push(&mut self, item: T) {
        match self.first.iter_mut().find(|place| place.is_none()) {
            Some(place) => *place = Some(item),
            None => self.rest.push(item),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.first.iter().flatten().count() + self.rest.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.first[0].is_none()
    }

    /// The only one there is.
    pub(crate) fn only(&self) -> Option<&T> {
        match &self.first {
            [Some(item), None] => Some(item),
            _ => None,
        }
    }

    pub(crate) fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        match self.first.get_mut(index) {
            Some(place) => place.as_mut(),
            None => self.rest.get_mut(index - FEW),
        }
    }

    /// Empties it, and keeps its memory.
    pub(crate) fn clear(&mut self) {
        self.first = [const { None }; FEW];
        self.rest.clear();
    }

    pub(crate) fn shrink_to_fit(&mut self) {
        self.rest.shrink_to_fit();
    }

    /// Calls `act` with each of them, in their order. Quicker than to iterate.
    #[inline(always)]
    pub(crate) fn each<'a>(&'a self, mut act: impl FnMut(&'a T)) {
        for place in &self.first {
            match place {
                Some(item) => act(item),
                None => return,
            }
        }
        self.rest.iter().for_each(act);
    }

    /// The same, to be changed.
    #[inline(always)]
    pub(crate) fn each_mut(&mut self, mut act: impl FnMut(&mut T)) {
        for place in &mut self.first {
            match place {
                Some(item) => act(item),
                None => return,
            }
        }
        self.rest.iter_mut().for_each(act);
    }

    pub(crate) fn iter(&self) -> Iter<'_, T> {
        self.first.iter().flatten().chain(self.rest.iter())
    }

    pub(crate) fn iter_mut(&mut self) -> IterMut<'_, T> {
        self.first.iter_mut().flatten().chain(self.rest.iter_mut())
    }
}

impl<T> Default for Few<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<'a, T> IntoIterator for &'a Few<T> {
    type Item = &'a T;
    type IntoIter = Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<T> IntoIterator for Few<T> {
    type Item = T;
    type IntoIter = IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.first.into_iter().flatten().chain(self.rest)
    }
}

#[cfg(test)]
mod tests {
    use super::Few;

    #[test]
    fn it_is_a_list_whatever_its_length() {
        for count in 0..6usize {
            let mut few = Few::new();
            (0..count).for_each(|item| few.push(item));
            let all: Vec<usize> = (0..count).collect();
            assert_eq!((few.len(), few.is_empty()), (count, count == 0));
            assert_eq!(few.iter().copied().collect::<Vec<_>>(), all);
            assert_eq!(few.only(), (count == 1).then_some(&0));
            (0..6)
                .for_each(|index| assert_eq!(few.get_mut(index).copied(), all.get(index).copied()));
            let mut seen = Vec::new();
            few.each(|item| seen.push(*item));
            assert_eq!(seen, all);
            few.each_mut(|item| *item += 1);
            few.iter_mut().for_each(|item| *item += 1);
            let sum: usize = few.into_iter().sum();
            assert_eq!(sum, count * (count + 3) / 2);
        }
        let mut few = Few::new();
        (0..5).for_each(|item| few.push(item));
        few.clear();
        assert!(few.is_empty() && few.iter().next().is_none());
    }
}
