//! Lists of parts: of bodies to send, and of the places of those that come.

use std::collections::VecDeque;

use mizzen_driver::{Part, PartMut};

/// Some memory of a body.
pub(super) trait Piece: Copy {
    fn bytes(&self) -> usize;
    fn cut(&self, at: usize) -> (Self, Self);
}

impl Piece for Part {
    fn bytes(&self) -> usize {
        self.len()
    }

    fn cut(&self, at: usize) -> (Self, Self) {
        self.split_at(at)
    }
}

impl Piece for PartMut {
    fn bytes(&self) -> usize {
        self.len()
    }

    fn cut(&self, at: usize) -> (Self, Self) {
        self.split_at(at)
    }
}

/// How many bytes they are.
pub(super) fn len_of<P: Piece>(parts: &[P]) -> u64 {
    parts.iter().map(|part| part.bytes() as u64).sum()
}

/// At most `len` bytes of some parts, from `from` on.
pub(super) fn slice<P: Piece>(parts: &[P], mut from: usize, mut len: usize) -> Vec<P> {
    let mut inside = Vec::new();
    for part in parts {
        let (before, rest) = part.cut(part.bytes().min(from));
        from -= before.bytes();
        let (now, _) = rest.cut(rest.bytes().min(len));
        len -= now.bytes();
        if now.bytes() > 0 {
            inside.push(now);
        }
        if len == 0 {
            break;
        }
    }
    inside
}

/// Nothing is asked for where there is nothing to fill.
pub(super) fn not_empty(parts: Vec<PartMut>) -> VecDeque<PartMut> {
    let parts = parts.into_iter();
    parts.filter(|part| !part.is_empty()).collect()
}

/// The first bytes of some parts, at most `most` of them and in at most `max_parts` parts, and how many.
pub(super) fn front_of(
    parts: &VecDeque<PartMut>,
    most: usize,
    max_parts: usize,
) -> (Vec<PartMut>, usize) {
    let (mut front, mut len) = (Vec::new(), 0);
    for part in parts {
        if len == most || front.len() == max_parts {
            break;
        }
        let (first, _) = part.split_at(part.len().min(most - len));
        len += first.len();
        front.push(first);
    }
    (front, len)
}

/// Drops the first `len` bytes of some parts.
pub(super) fn take_front(parts: &mut VecDeque<PartMut>, mut len: usize) {
    while let Some(part) = parts.pop_front() {
        let (first, rest) = part.split_at(part.len().min(len));
        len -= first.len();
        if !rest.is_empty() {
            parts.push_front(rest);
        }
        if len == 0 {
            return;
        }
    }
}
