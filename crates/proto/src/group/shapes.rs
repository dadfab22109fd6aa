//! Schedules for `size` members that are all alike, numbered from 0, as `me` carries them out.
//!
//! Circulant graphs and binomial trees need no power of two: there is no member that is folded in or left out.

use super::schedule::{Fold, Round, Runs, circle, runs};

/// Nobody leaves before all have come: after round k a member has heard, perhaps through others, of the 2ᵏ⁺¹ before it.
#[must_use]
pub fn barrier(me: u32, size: u32) -> Vec<Round> {
    let round = |skip: u32| {
        let (to, from) = ((me + skip) % size, (me + size - skip) % size);
        let round = Round::default().send(to, vec![], Fold::Replace);
        round.receive(from, vec![], Fold::Replace)
    };
    skips(size).map(round).collect()
}

/// Each has its own of `size` blocks, and gets all: ⌈lg size⌉ rounds.
#[must_use]
pub fn all_gather(me: u32, size: u32) -> Vec<Round> {
    let round = |skip: u32| {
        let count = skip.min(size - skip);
        let (to, from) = ((me + size - skip) % size, (me + skip) % size);
        let round = Round::default().send(to, circle(me, count, size), Fold::Replace);
        round.receive(from, circle(from, count, size), Fold::Replace)
    };
    skips(size).map(round).collect()
}

/// The same with one block in each of `size` − 1 rounds, from one neighbour and to the other.
#[must_use]
pub fn all_gather_ring(me: u32, size: u32) -> Vec<Round> {
    let round = |round: u32| {
        let block = |member: u32| circle(member + 2 * size - round, 1, size);
        let before = (me + size - 1) % size;
        let sent = Round::default().send((me + 1) % size, block(me), Fold::Replace);
        sent.receive(before, block(before), Fold::Replace)
    };
    (0..size.saturating_sub(1)).map(round).collect()
}

/// All have `size` blocks; each gets its own, combined of all: [`all_gather`] backwards. In no order that is the members': for operations that commute.
#[must_use]
pub fn reduce_scatter(me: u32, size: u32) -> Vec<Round> {
    let round = |skip: u32| {
        let count = skip.min(size - skip);
        let (to, from) = ((me + skip) % size, (me + size - skip) % size);
        let round = Round::default().send(to, circle(to, count, size), Fold::After);
        round.receive(from, circle(me, count, size), Fold::After)
    };
    let mut rounds: Vec<Round> = skips(size).map(round).collect();
    rounds.reverse();
    rounds
}

/// The same with one block in each of `size` − 1 rounds: [`all_gather_ring`] backwards.
#[must_use]
pub fn reduce_scatter_ring(me: u32, size: u32) -> Vec<Round> {
    let round = |round: u32| {
        let block = |member: u32| circle(member + 2 * size - round, 1, size);
        let before = (me + size - 1) % size;
        let sent = Round::default().send(before, block(before), Fold::After);
        sent.receive((me + 1) % size, block(me), Fold::After)
    };
    let mut rounds: Vec<Round> = (0..size.saturating_sub(1)).map(round).collect();
    rounds.reverse();
    rounds
}

/// `root` has `blocks` blocks, and all get them.
#[must_use]
pub fn broadcast(me: u32, size: u32, root: u32, blocks: u32) -> Vec<Round> {
    let tree = Tree::new(me, size, root);
    let all = || runs(0..blocks);
    let mut rounds = Vec::new();
    if let Some(parent) = tree.parent() {
        rounds.push(Round::default().receive(parent, all(), Fold::Replace));
    }
    let children = tree.children().rev();
    rounds.extend(children.map(|(child, _)| Round::default().send(child, all(), Fold::Replace)));
    rounds
}

/// All have `blocks` blocks; `root` gets them combined. In the order of the members if `root` is 0.
#[must_use]
pub fn reduce(me: u32, size: u32, root: u32, blocks: u32) -> Vec<Round> {
    let tree = Tree::new(me, size, root);
    let all = || runs(0..blocks);
    let children = tree.children();
    let mut rounds: Vec<Round> = children
        .map(|(child, _)| Round::default().receive(child, all(), Fold::After))
        .collect();
    if let Some(parent) = tree.parent() {
        rounds.push(Round::default().send(parent, all(), Fold::After));
    }
    rounds
}

/// Each has its own of `size` blocks, and `root` gets all.
#[must_use]
pub fn gather(me: u32, size: u32, root: u32) -> Vec<Round> {
    let tree = Tree::new(me, size, root);
    let children = tree.children();
    let mut rounds: Vec<Round> = children
        .map(|(child, span)| Round::default().receive(child, span, Fold::Replace))
        .collect();
    if let Some(parent) = tree.parent() {
        rounds.push(Round::default().send(parent, tree.span(), Fold::Replace));
    }
    rounds
}

/// `root` has `size` blocks, and each gets its own: [`gather`] backwards.
#[must_use]
pub fn scatter(me: u32, size: u32, root: u32) -> Vec<Round> {
    let mut rounds = gather(me, size, root);
    rounds.reverse();
    rounds.iter_mut().for_each(turn);
    rounds
}

/// As [`gather`], but each block goes straight to `root`: for long ones.
#[must_use]
pub fn gather_flat(me: u32, size: u32, root: u32) -> Vec<Round> {
    if size < 2 {
        return Vec::new();
    }
    let own = |member: u32| circle(member, 1, size);
    if me != root {
        return vec![Round::default().send(root, own(me), Fold::Replace)];
    }
    let others = (1..size).map(|far| (root + far) % size);
    vec![others.fold(Round::default(), |round, member| {
        round.receive(member, own(member), Fold::Replace)
    })]
}

/// As [`scatter`], but each block goes straight to its member: for long ones.
#[must_use]
pub fn scatter_flat(me: u32, size: u32, root: u32) -> Vec<Round> {
    let mut rounds = gather_flat(me, size, root);
    rounds.iter_mut().for_each(turn);
    rounds
}

/// Each has a block for every member, and gets one of every member: with one other at a time. What is sent is where it was, what comes goes elsewhere.
#[must_use]
pub fn all_to_all(me: u32, size: u32) -> Vec<Round> {
    let round = |far: u32| {
        let (to, from) = ((me + far) % size, (me + size - far) % size);
        let round = Round::default().send(to, circle(to, 1, size), Fold::Replace);
        round.receive(from, circle(from, 1, size), Fold::Replace)
    };
    (1..size).map(round).collect()
}

/// Each has `blocks` blocks, and gets them combined of all members up to itself, in their order.
#[must_use]
pub fn scan(me: u32, size: u32, blocks: u32) -> Vec<Round> {
    let all = || runs(0..blocks);
    let round = |skip: u32| {
        let mut round = Round::default();
        if me + skip < size {
            round = round.send(me + skip, all(), Fold::Before);
        }
        if me >= skip {
            round = round.receive(me - skip, all(), Fold::Before);
        }
        round
    };
    skips(size).map(round).collect()
}

/// Each gets what the one before it has; the first keeps what it has.
#[must_use]
pub fn shift(me: u32, size: u32, blocks: u32) -> Vec<Round> {
    let all = || runs(0..blocks);
    let mut round = Round::default();
    if me + 1 < size {
        round = round.send(me + 1, all(), Fold::Replace);
    }
    if me > 0 {
        round = round.receive(me - 1, all(), Fold::Replace);
    }
    vec![round]
}

/// Each has its own of `size` blocks, and gets all, straight from each other: one round.
#[must_use]
pub fn exchange_flat(me: u32, size: u32) -> Vec<Round> {
    let own = |member: u32| circle(member, 1, size);
    let others = (1..size).map(|far| ((me + far) % size, (me + size - far) % size));
    let round = others.fold(Round::default(), |round, (to, from)| {
        let round = round.send(to, own(me), Fold::Replace);
        round.receive(from, own(from), Fold::Replace)
    });
    vec![round]
}

/// 1, 2, 4 and so on, below `size`.
fn skips(size: u32) -> impl Iterator<Item = u32> {
    (0..32)
        .map(|power| 1 << power)
        .take_while(move |skip| *skip < size)
}

/// What was sent is received, and the other way round.
fn turn(round: &mut Round) {
    core::mem::swap(&mut round.sends, &mut round.receives);
}

/// A binomial tree. Counted from the root, member v has the children v + 1, v + 2, v + 4 and so on, below its own lowest bit: what is below it are those behind it.
struct Tree {
    size: u32,
    root: u32,
    /// Counted from the root.
    place: u32,
}

impl Tree {
    fn new(me: u32, size: u32, root: u32) -> Self {
        let place = (me + size - root % size) % size;
        Self { size, root, place }
    }

    fn member(&self, place: u32) -> u32 {
        (place + self.root) % self.size
    }

    /// How many are below a place, itself among them.
    fn below(&self, place: u32) -> u32 {
        let span = if place == 0 {
            self.size
        } else {
            place & place.wrapping_neg()
        };
        span.min(self.size - place)
    }

    fn parent(&self) -> Option<u32> {
        let lowest = self.place & self.place.wrapping_neg();
        (self.place > 0).then(|| self.member(self.place - lowest))
    }

    /// The nearest first, with the blocks below each.
    fn children(&self) -> impl DoubleEndedIterator<Item = (u32, Runs)> + '_ {
        let nearest: Vec<u32> = skips(self.below(self.place)).collect();
        nearest.into_iter().map(|skip| {
            let child = self.place + skip;
            let blocks = circle(self.member(child), self.below(child), self.size);
            (self.member(child), blocks)
        })
    }

    /// The blocks of all that are below, and its own.
    fn span(&self) -> Runs {
        circle(self.member(self.place), self.below(self.place), self.size)
    }
}
