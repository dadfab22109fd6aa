//! How lent buffers come back.
//!
//! A lender numbers its buffers and counts the loans of each. Whoever borrowed a buffer writes the loan's number
//! into the buffer's word of a table in its own memory; the lender reads it. One writer per loan, no queue, any
//! order.
//!
//! A long message is one loan, that of its manifest, and its chunks come back before it: the borrower writes how many it has
//! emptied into the same word. The count goes round, because far fewer chunks are at a borrower at once.
//!
//! A block may be handed on. Each time counts as another loan, so that every step of its way has a number of its own, also when it
//! comes to the same holder twice; and each holder says in its own word what it did with it.
//!
//! | bits | what |
//! | --- | --- |
//! | 0 to 14 | of a message: chunks that were emptied, modulo 32,768. Of a block: to whom it was handed on ([`Place`]), if not 0 |
//! | 15 | the loan is over; with bit 0, of a message: its borrower reads the sender's own memory |
//! | 16 to 63 | number of the loan |

use crate::region::Region;
use crate::sync::Ordering;

const LOAN_SHIFT: u32 = 16;
const IS_OVER: u64 = 1 << 15;
const COUNT_MASK: u64 = IS_OVER - 1;
const IS_PULLED: u64 = IS_OVER | 1;

/// More chunks than this are never out at once, so that a count that goes round is clear.
pub(crate) const MOST_CHUNKS: usize = (IS_OVER / 2) as usize;

/// The borrower's table of buffers given back to one lender.
#[derive(Clone, Debug)]
pub struct Returns {
    table: Region,
    buffers: usize,
}

/// What a borrower says of a loan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Nothing yet.
    Unread,
    /// So many chunks were emptied, and the count goes round.
    Emptied(usize),
    /// It reads the message where the sender has it.
    Pulling,
    /// The loan is over.
    Back,
}

/// A process to which blocks may be handed on, as their owner numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place(u16);

impl Place {
    /// The place of this number. `None` if there is no such.
    #[must_use]
    pub fn new(number: u32) -> Option<Self> {
        let is_place = number != 0 && u64::from(number) <= COUNT_MASK;
        is_place.then_some(Self(number as u16))
    }

    /// Its number.
    #[must_use]
    pub fn number(self) -> u32 {
        u32::from(self.0)
    }
}

/// What a holder says of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// It has it.
    Has,
    /// It handed it on.
    HandedOn(Place),
    /// It gave it back.
    Back,
}

impl Returns {
    /// Bytes of memory for a table of `buffers` buffers.
    #[must_use]
    pub const fn bytes(buffers: usize) -> usize {
        buffers * 8
    }

    /// A table in the given memory, zeroed when new.
    ///
    /// # Panics
    ///
    /// If the memory is too small.
    #[must_use]
    pub fn new(table: Region, buffers: usize) -> Self {
        assert!(
            table.len() >= Self::bytes(buffers),
            "the table fits its memory"
        );
        Self { table, buffers }
    }

    /// Gives `buffer` back, which was lent as loan number `loan` (counted from 1). The borrower must not touch the
    /// buffer afterwards. A number beyond the table is ignored: it came from a peer and was never valid.
    ///
    /// # Panics
    ///
    /// If the table is in read-only memory: the lender's view of it.
    pub fn give_back(&self, buffer: u32, loan: u64) {
        self.store(buffer, loan << LOAN_SHIFT | IS_OVER);
    }

    /// So many chunks of the message with this manifest will not be read again. Numbers as in `give_back`.
    pub(crate) fn give_chunks(&self, manifest: u32, loan: u64, emptied: usize) {
        self.store(manifest, loan << LOAN_SHIFT | emptied as u64 & COUNT_MASK);
    }

    /// The message with this manifest is being read where its sender has it, until its chunks or itself are given back.
    pub(crate) fn start_pulling(&self, manifest: u32, loan: u64) {
        self.store(manifest, loan << LOAN_SHIFT | IS_PULLED);
    }

    /// Something will be said of this buffer soon: asks for the line where that is written.
    pub(crate) fn claim(&self, buffer: u32) {
        if (buffer as usize) < self.buffers {
            self.table
                .claim(buffer as usize * size_of::<u64>(), size_of::<u64>());
        }
    }

    fn store(&self, buffer: u32, word: u64) {
        if (buffer as usize) < self.buffers {
            // Release pairs with the acquire in `progress`: the borrower's reads are over. A plain store: a buffer is lent
            // again only after this was seen, so there is no other thread that would write the word now.
            self.table
                .word(buffer as usize)
                .store(word, Ordering::Release);
        }
    }

    /// Whether loan number `loan` of `buffer` has come back.
    #[must_use]
    pub fn is_back(&self, buffer: u32, loan: u64) -> bool {
        self.progress(buffer, loan) == Progress::Back
    }

    /// What the borrower says of loan number `loan` of `buffer`.
    pub(crate) fn progress(&self, buffer: u32, loan: u64) -> Progress {
        if buffer as usize >= self.buffers {
            return Progress::Unread;
        }
        let word = self.table.load(buffer as usize, Ordering::Acquire);
        if word >> LOAN_SHIFT != loan << LOAN_SHIFT >> LOAN_SHIFT {
            return Progress::Unread;
        }
        match word & (IS_OVER | COUNT_MASK) {
            IS_OVER => Progress::Back,
            IS_PULLED => Progress::Pulling,
            count if count & IS_OVER == 0 => Progress::Emptied(count as usize),
            _ => Progress::Unread,
        }
    }

    /// The last loan of `block` of which the holder said anything, and what. Loan 0, if nothing.
    pub(crate) fn said(&self, block: u32) -> (u64, Said) {
        if block as usize >= self.buffers {
            return (0, Said::Has);
        }
        let word = self.table.load(block as usize, Ordering::Acquire);
        let said = match Place::new((word & COUNT_MASK) as u32) {
            _ if word & IS_OVER != 0 => Said::Back,
            Some(place) => Said::HandedOn(place),
            None => Said::Has,
        };
        (word >> LOAN_SHIFT, said)
    }

    /// The holder has taken over a block that was handed on to it as this loan. `false`: it has said something of it before, or
    /// of a later one.
    pub(crate) fn take_over(&self, block: u32, loan: u64) -> bool {
        self.say_if(block, loan, 0, |said, loan| said < loan)
    }

    /// The holder hands on the block that it has by this loan.
    pub(crate) fn hand_on(&self, block: u32, loan: u64, to: Place) -> bool {
        self.say(block, loan, u64::from(to.0))
    }

    /// The holder did not hand on the block after all. `false`: it said something else meanwhile.
    pub(crate) fn keep(&self, block: u32, loan: u64, to: Place) -> bool {
        if block as usize >= self.buffers {
            return false;
        }
        let (handed_on, has) = (loan << LOAN_SHIFT | u64::from(to.0), loan << LOAN_SHIFT);
        let word = self.table.word(block as usize);
        let changed = word.compare_exchange(handed_on, has, Ordering::AcqRel, Ordering::Relaxed);
        changed.is_ok()
    }

    /// Gives back a block that was handed on, by or to the holder. Nothing is said if something was said of a later loan: the
    /// owner may have taken this one back, and lent the block again.
    pub(crate) fn give_back_late(&self, block: u32, loan: u64) {
        self.say(block, loan, IS_OVER);
    }

    /// Says something of a loan, unless something was said of a later one.
    fn say(&self, block: u32, loan: u64, what: u64) -> bool {
        self.say_if(block, loan, what, |said, loan| said <= loan)
    }

    /// The same, if what was said last allows it: of two threads with the same ticket, one takes over.
    fn say_if(
        &self,
        block: u32,
        loan: u64,
        what: u64,
        may_follow: impl Fn(u64, u64) -> bool,
    ) -> bool {
        if block as usize >= self.buffers {
            return false;
        }
        let word = loan << LOAN_SHIFT | what;
        let is_later = |old: u64| may_follow(old >> LOAN_SHIFT, word >> LOAN_SHIFT).then_some(word);
        // Release pairs with the acquire in `said`: what the holder read of the block was read before.
        self.table
            .word(block as usize)
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, is_later)
            .is_ok()
    }

    /// How many more chunks were emptied, of `out` that are at the borrower, if it said `before` and now says `now`. A count
    /// that cannot be is taken for none.
    pub(crate) fn newly_emptied(before: usize, now: usize, out: usize) -> usize {
        let more = now.wrapping_sub(before) & COUNT_MASK as usize;
        if more <= out { more } else { 0 }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_loan_comes_back_in_parts_and_then_as_a_whole() {
        let returns = Returns::new(Region::heap(64), 8);
        assert_eq!(returns.progress(3, 1), Progress::Unread);
        returns.give_chunks(3, 1, 5);
        assert_eq!(returns.progress(3, 1), Progress::Emptied(5));
        assert_eq!(returns.progress(3, 2), Progress::Unread);
        assert!(!returns.is_back(3, 1));
        returns.give_back(3, 1);
        assert!(returns.is_back(3, 1) && !returns.is_back(3, 2));
        // Numbers that were never given out.
        returns.give_back(8, 1);
        assert_eq!(returns.progress(8, 1), Progress::Unread);
    }

    #[test]
    fn a_count_of_chunks_goes_round_and_one_that_cannot_be_is_none() {
        let returns = Returns::new(Region::heap(64), 8);
        returns.give_chunks(0, 1, (1 << 20) + 2);
        let Progress::Emptied(now) = returns.progress(0, 1) else {
            panic!("{:?}", returns.progress(0, 1));
        };
        assert_eq!(Returns::newly_emptied((1 << 20) - 3, now, 9), 5);
        assert_eq!(Returns::newly_emptied((1 << 20) - 3, now, 4), 0);
        assert_eq!(Returns::newly_emptied((1 << 20) + 3, now, MOST_CHUNKS), 0);
    }
}
