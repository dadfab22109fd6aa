//! What the members of a group on one host show each other: each writes lines of its own, and all read those of all.
//!
//! In each *turn* a member fills one of its lines: what it shows, then, with release, the number of the turn. Who looks for that turn loads the number with acquire,
//! and finds what belongs to it. Nothing goes through a root, and a line has one writer.
//!
//! Lines are used again, the first after the last. A member may show turn t when all others have shown turn t + 1 − n, for n lines: they are done with turn t − n
//! then, whose line it overwrites. (Who shows a turn is done with the one before.)
//!
//! A slate serves one group after another: each *use* has a number. Behind the lines stands which use its owner has left: a member that has left reads no more of
//! what the others showed.

use crate::region::Region;
use crate::sync::Ordering;

/// The words of a line that a member may fill.
pub const SLATE_WORDS: usize = 6;

/// The lines of one member.
#[derive(Clone, Debug)]
pub struct Slate {
    region: Region,
    first: usize,
    lines: usize,
}

/// What a member shows in a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown {
    /// What the turn is for: those who do the same show the same.
    pub print: u64,
    /// What it has to show.
    pub words: [u64; SLATE_WORDS],
}

impl Slate {
    /// The slate that has `lines` lines of a region for turns, from the line `first` on, and one more behind them. Everybody takes the same number of lines.
    ///
    /// # Panics
    ///
    /// If there are no such lines.
    #[must_use]
    pub fn new(region: Region, first: usize, lines: usize) -> Self {
        assert!(lines > 0 && (first + lines + 1) * 64 <= region.len());
        Self {
            region,
            first,
            lines,
        }
    }

    /// Owner: no turn has been shown. Before anybody else knows of the slate.
    pub fn clear(&self) {
        self.region.assert_writable();
        for line in 0..self.lines {
            let words = self.region.line(self.first + line);
            words[0].store(0, Ordering::Release);
        }
    }

    /// Owner: has done with everything that others show in this use of the slate.
    pub fn leave(&self, number: u32) {
        self.region.assert_writable();
        let [left, ..] = self.region.line(self.first + self.lines);
        left.store(u64::from(number), Ordering::Release);
    }

    /// Whether the owner has left a use of the slate, or one that came later. Uses are counted from 1.
    #[must_use]
    pub fn has_left(&self, number: u32) -> bool {
        let [left, ..] = self.region.line(self.first + self.lines);
        left.load(Ordering::Acquire) >= u64::from(number)
    }

    /// Owner: shows something in a turn; turns are counted from 1.
    #[inline]
    pub fn show(&self, turn: u64, print: u64, words: &[u64]) {
        self.region.assert_writable();
        let [number, prints, line @ ..] = self.line(turn);
        prints.store(print, Ordering::Relaxed);
        for (word, value) in line.iter().zip(words) {
            word.store(*value, Ordering::Relaxed);
        }
        number.store(turn, Ordering::Release);
    }

    /// Whether a turn has been shown. It may be over, and its line used again.
    #[inline]
    #[must_use]
    pub fn has_shown(&self, turn: u64) -> bool {
        self.line(turn)[0].load(Ordering::Acquire) >= turn
    }

    /// What was shown in a turn, if it was, and its line is not used again yet.
    #[inline]
    #[must_use]
    pub fn read(&self, turn: u64) -> Option<Shown> {
        let [number, prints, line @ ..] = self.line(turn);
        if number.load(Ordering::Acquire) != turn {
            return None;
        }
        let mut words = [0; SLATE_WORDS];
        for (word, shown) in words.iter_mut().zip(line) {
            *word = shown.load(Ordering::Relaxed);
        }
        let print = prints.load(Ordering::Relaxed);
        Some(Shown { print, words })
    }

    #[inline]
    fn line(&self, turn: u64) -> &[crate::sync::AtomicU64; 8] {
        self.region
            .line(self.first + (turn % self.lines as u64) as usize)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_shown_until_its_line_is_used_again() {
        let slate = Slate::new(Region::heap(640), 3, 4);
        assert!(!slate.has_shown(1) && slate.read(1).is_none());
        for turn in 1..=5 {
            slate.show(turn, 10 * turn, &[turn, turn + 1]);
        }
        let shown = slate.read(5).unwrap();
        assert_eq!((shown.print, &shown.words[..2]), (50, &[5, 6][..]));
        assert!(slate.read(2).is_some() && slate.read(1).is_none());
        assert!(slate.has_shown(2) && slate.has_shown(1) && !slate.has_shown(6));
        slate.clear();
        assert!(!slate.has_shown(5));
    }

    #[test]
    fn who_has_left_a_use_has_left_those_before() {
        let slate = Slate::new(Region::heap(320), 0, 4);
        assert!(!slate.has_left(1));
        slate.leave(2);
        assert!(slate.has_left(1) && slate.has_left(2) && !slate.has_left(3));
    }

    #[test]
    #[should_panic(expected = "lines")]
    fn a_slate_lies_inside_its_region() {
        let _ = Slate::new(Region::heap(256), 1, 4);
    }
}
