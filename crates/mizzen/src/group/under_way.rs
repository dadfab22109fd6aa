//! An operation under way: begun and ended, and what the operations are made of.

use mizzen_core::{Plain, Result};
use mizzen_proto::group::plan::{Operation, Order};

use super::call::Call;
use super::error::GroupError;
use super::means::{Means, choose};
use super::member::Group;
use super::op::Op;
use super::parts::{Parts, range};
use super::plans::Plans;
use super::run::{Blocks, Combine, Work, copy_into, is_only_own, run, zeroed};
use super::seat::Seat;
use super::{slates, trays};

impl Group {
    /// Does something under a call.
    pub(super) fn perform<R>(
        &mut self,
        call: Call,
        body: impl FnOnce(&mut UnderWay<'_>) -> Result<R, GroupError>,
    ) -> Result<R> {
        let (seat, plans) = self.parts();
        seat.begin(call)?;
        let operation = call.operation;
        let outcome = body(&mut UnderWay {
            seat,
            plans,
            operation,
        });
        seat.end(outcome.is_ok());
        Ok(outcome?)
    }
}

/// Waits until all members have called it.
pub(super) fn barrier(seat: &mut Seat, plans: &mut Plans, call: Call) -> Result<(), GroupError> {
    seat.begin(call)?;
    let operation = Operation::Barrier;
    let outcome = UnderWay {
        seat,
        plans,
        operation,
    }
    .whole::<u8>(&mut [], None);
    seat.end(outcome.is_ok());
    outcome
}

/// An operation under way.
pub(super) struct UnderWay<'u> {
    pub(super) seat: &'u mut Seat,
    pub(super) plans: &'u mut Plans,
    pub(super) operation: Operation,
}

impl UnderWay<'_> {
    pub(super) fn size(&self) -> usize {
        self.seat.roster.size() as usize
    }

    /// What was given is as long as it must be.
    pub(super) fn fit(
        &mut self,
        what: &str,
        given: usize,
        wanted: usize,
    ) -> Result<(), GroupError> {
        if given == wanted {
            return Ok(());
        }
        Err(self.seat.refuse(format!(
            "{what} has a length of {given} where {wanted} is needed"
        )))
    }

    /// A length that another member told.
    pub(super) fn length(&mut self, told: u64) -> Result<usize, GroupError> {
        let len = usize::try_from(told)
            .ok()
            .filter(|len| *len <= isize::MAX as usize);
        len.ok_or_else(|| {
            self.seat
                .break_off(format!("a member tells of a length of {told}"))
        })
    }

    /// How many elements there are in all: no more than memory can hold.
    pub(super) fn total<T>(&mut self, ends: &[usize]) -> Result<usize, GroupError> {
        let total = ends.last().copied().unwrap_or(0);
        let bytes = total.checked_mul(size_of::<T>().max(1));
        let in_order = ends.is_sorted() && bytes.is_some_and(|bytes| bytes <= isize::MAX as usize);
        if in_order {
            return Ok(total);
        }
        Err(self
            .seat
            .break_off(format!("members tell of {total} elements in all")))
    }

    /// The data is one, and all have as much.
    pub(super) fn whole<T: Plain>(
        &mut self,
        data: &mut [T],
        combine: Option<Combine<'_, T>>,
    ) -> Result<(), GroupError> {
        let (operation, bytes) = (self.operation, size_of_val(data));
        self.run(operation, data, combine, bytes)
    }

    pub(super) fn run<T: Plain>(
        &mut self,
        operation: Operation,
        data: &mut [T],
        combine: Option<Combine<'_, T>>,
        bytes: usize,
    ) -> Result<(), GroupError> {
        let mut work = Work {
            from: None,
            data,
            blocks: Blocks::None,
        };
        self.carry_out(operation, Order::Any, &mut work, combine, bytes)
    }

    /// The data is one, and is combined.
    pub(super) fn combined<T: Plain, O: Op<T>>(
        &mut self,
        data: &mut [T],
        op: O,
    ) -> Result<(), GroupError> {
        let bytes = size_of_val(data);
        self.combined_in(data, Blocks::None, op, bytes)
    }

    /// Each member has a block of `each` elements, and they are combined.
    pub(super) fn combined_blocks<T: Plain, O: Op<T>>(
        &mut self,
        data: &mut [T],
        blocks: Blocks<'_>,
        op: O,
        each: usize,
    ) -> Result<(), GroupError> {
        self.combined_in(data, blocks, op, each * size_of::<T>())
    }

    pub(super) fn combined_in<T: Plain, O: Op<T>>(
        &mut self,
        data: &mut [T],
        blocks: Blocks<'_>,
        op: O,
        bytes: usize,
    ) -> Result<(), GroupError> {
        let order = if O::COMMUTES {
            Order::Any
        } else {
            Order::Members
        };
        let mut work = Work {
            from: None,
            data,
            blocks,
        };
        let combine = |data: &mut [T], next: &[T]| op.combine(data, next);
        self.carry_out(self.operation, order, &mut work, Some(&combine), bytes)
    }

    /// By the means that suit.
    pub(super) fn carry_out<T: Plain>(
        &mut self,
        operation: Operation,
        order: Order,
        work: &mut Work<'_, T>,
        combine: Option<Combine<'_, T>>,
        bytes: usize,
    ) -> Result<(), GroupError> {
        match choose::<T>(self.seat, operation, bytes)? {
            Means::Lines => slates::run(self.seat, operation, work, combine),
            Means::Trays => trays::run(self.seat, operation, order, work, combine, bytes),
            Means::Messages => {
                let stages = self.plans.stages(self.seat, operation, order, bytes)?;
                run(self.seat, &stages, work, combine)
            }
        }
    }

    /// Each member has a block, the longest of which has `each` elements.
    pub(super) fn blocks<T: Plain>(
        &mut self,
        data: &mut [T],
        blocks: Blocks<'_>,
        from: Option<(&[T], Blocks<'_>)>,
        each: usize,
    ) -> Result<(), GroupError> {
        let bytes = each * size_of::<T>();
        let mut work = Work { from, data, blocks };
        self.carry_out(self.operation, Order::Any, &mut work, None, bytes)
    }

    /// Where the blocks of all members end, of which this one's is so long.
    pub(super) fn ends(&mut self, own: usize) -> Result<Vec<usize>, GroupError> {
        let mut lengths = vec![0_u64; self.size()];
        lengths[self.seat.me.index()] = own as u64;
        let mut work = Work {
            from: None,
            data: &mut lengths,
            blocks: Blocks::Even(1),
        };
        self.carry_out(Operation::AllGather, Order::Any, &mut work, None, 8)?;
        self.ends_of(&lengths)
    }

    /// Where blocks of such lengths end.
    pub(super) fn ends_of(&mut self, lengths: &[u64]) -> Result<Vec<usize>, GroupError> {
        let mut end = 0_usize;
        let mut ends = Vec::with_capacity(lengths.len());
        for length in lengths {
            let length = self.length(*length)?;
            end = end.saturating_add(length);
            ends.push(end);
        }
        Ok(ends)
    }

    pub(super) fn all_gathered<T: Plain>(&mut self, mine: &[T]) -> Result<Parts<T>, GroupError> {
        let ends = self.ends(mine.len())?;
        let mut all = zeroed(self.total::<T>(&ends)?);
        let blocks = Blocks::Ends(&ends);
        copy_into(&mut all[blocks.range(self.seat.me.0)], mine);
        self.blocks(&mut all, blocks, None, longest(&ends))?;
        Ok(Parts::of_lengths(all, ends))
    }

    /// The blocks of all go to the one that gives `into`.
    pub(super) fn gathered<T: Plain>(
        &mut self,
        mine: &[T],
        into: Option<&mut [T]>,
        blocks: Blocks<'_>,
        each: usize,
    ) -> Result<(), GroupError> {
        let me = self.seat.me.0;
        if let Some(into) = into {
            copy_into(&mut into[blocks.range(me)], mine);
            return self.blocks(into, blocks, None, each);
        }
        if self.has_only_own::<T>(each)? {
            let only = Blocks::Only(me, mine.len());
            return self.blocks(&mut [], only, Some((mine, only)), each);
        }
        let size = self.size() as u32;
        let mut all = zeroed(blocks.range(size - 1).end);
        copy_into(&mut all[blocks.range(me)], mine);
        self.blocks(&mut all, blocks, None, each)
    }

    /// The blocks of the one that gives `from` go to all.
    pub(super) fn scattered<T: Plain>(
        &mut self,
        from: Option<&[T]>,
        own: &mut [T],
        blocks: Blocks<'_>,
        each: usize,
    ) -> Result<(), GroupError> {
        let me = self.seat.me.0;
        if let Some(from) = from {
            copy_into(own, &from[blocks.range(me)]);
            return self.blocks(&mut [], blocks, Some((from, blocks)), each);
        }
        if self.has_only_own::<T>(each)? {
            let only = Blocks::Only(me, own.len());
            return self.blocks(own, only, None, each);
        }
        let size = self.size() as u32;
        let mut all = zeroed(blocks.range(size - 1).end);
        self.blocks(&mut all, blocks, None, each)?;
        own.swap_with_slice(&mut all[blocks.range(me)]);
        Ok(())
    }

    /// Whether this member has only its own block to do with, of blocks of up to `each` elements.
    pub(super) fn has_only_own<T>(&mut self, each: usize) -> Result<bool, GroupError> {
        let bytes = each * size_of::<T>();
        if choose::<T>(self.seat, self.operation, bytes)? != Means::Messages {
            return Ok(true);
        }
        let order = Order::Any;
        let stages = self.plans.stages(self.seat, self.operation, order, bytes)?;
        Ok(is_only_own(&stages, self.seat.me.0))
    }

    /// The longest of all members' longest blocks, where that matters.
    pub(super) fn longest_of_all<T>(&mut self, own: usize) -> Result<usize, GroupError> {
        if choose::<T>(self.seat, self.operation, size_of::<T>())? == Means::Messages {
            return Ok(0);
        }
        let longest = self.seat.shown_by_all(&[own as u64, 0, 0])?;
        let longest = longest.iter().map(|[of, ..]| *of).max();
        self.length(longest.unwrap_or(0))
    }

    /// Each member has a block for each.
    pub(super) fn paired<T: Plain>(
        &mut self,
        from: (&[T], Blocks<'_>),
        into: &mut [T],
        blocks: Blocks<'_>,
        each: usize,
    ) -> Result<(), GroupError> {
        let me = self.seat.me.0;
        copy_into(&mut into[blocks.range(me)], &from.0[from.1.range(me)]);
        self.blocks(into, blocks, Some(from), each)
    }
}

/// The longest of blocks that end there.
pub(super) fn longest(ends: &[usize]) -> usize {
    let lengths = (0..ends.len()).map(|index| range(ends, index).len());
    lengths.max().unwrap_or(0)
}
