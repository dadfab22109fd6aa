//! What members combine: numbers of all into one result, or one for each.

use core::panic::Location;

use mizzen_core::{Plain, Result};
use mizzen_proto::group::plan::Operation;
use mizzen_proto::group::schedule::Member;

use super::call::Call;
use super::member::Group;
use super::op::Op;
use super::run::{Blocks, copy, copy_into};

impl Group {
    /// `root` gets the data of all members, combined by `op`; those of the others stay as they are. All have data of the same length.
    ///
    /// ```
    /// use mizzen::group::Sum;
    ///
    /// mizzen::local(3, |deck| {
    ///     let mut group = deck.group()?;
    ///     let mut data = [deck.rank().0, 1];
    ///     group.reduce(0, &mut data, Sum)?;
    ///     if group.member() == 0 {
    ///         assert_eq!(data, [3, 3]);
    ///     }
    ///     Ok(())
    /// }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// [`GroupError`](super::GroupError).
    #[track_caller]
    pub fn reduce<T: Plain, O: Op<T>>(
        &mut self,
        root: impl Into<Member>,
        data: &mut [T],
        op: O,
    ) -> Result<()> {
        let root = root.into();
        let call = Call::new("reduce", Operation::Reduce(root), Location::caller());
        let call = call.of::<T>(Some(data.len())).with(&op);
        let is_root = self.member() == root;
        self.perform(call, |under| {
            if is_root {
                return under.combined(data, op);
            }
            under.combined(&mut copy(data), op)
        })
    }

    /// All members get the data of all, combined by `op`: the same bits everywhere. All have data of the same length.
    ///
    /// ```
    /// use mizzen::group::Sum;
    ///
    /// mizzen::local(3, |deck| {
    ///     let mut residual = [0.25, f64::from(deck.rank().0)];
    ///     deck.group()?.all_reduce(&mut residual, Sum)?;
    ///     assert_eq!(residual, [0.75, 3.0]);
    ///     Ok(())
    /// }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// [`GroupError`](super::GroupError).
    #[track_caller]
    pub fn all_reduce<T: Plain, O: Op<T>>(&mut self, data: &mut [T], op: O) -> Result<()> {
        let call = Call::new("all_reduce", Operation::AllReduce, Location::caller());
        let call = call.of::<T>(Some(data.len())).with(&op);
        self.perform(call, |under| under.combined(data, op))
    }

    /// As [`all_reduce`](Self::all_reduce), from `mine` into other memory.
    ///
    /// # Errors
    ///
    /// [`GroupError`](super::GroupError); [`GroupError::Misfit`](super::GroupError::Misfit) if the two are not as long.
    #[track_caller]
    pub fn all_reduce_into<T: Plain, O: Op<T>>(
        &mut self,
        mine: &[T],
        into: &mut [T],
        op: O,
    ) -> Result<()> {
        let call = Call::new("all_reduce", Operation::AllReduce, Location::caller());
        let call = call.of::<T>(Some(mine.len())).with(&op);
        self.perform(call, |under| {
            under.fit("the memory for the result", into.len(), mine.len())?;
            copy_into(into, mine);
            under.combined(into, op)
        })
    }

    /// As [`all_reduce`](Self::all_reduce), for one value.
    ///
    /// # Errors
    ///
    /// [`GroupError`](super::GroupError).
    #[track_caller]
    pub fn all_reduce_value<T: Plain, O: Op<T>>(&mut self, value: T, op: O) -> Result<T> {
        let call = Call::new("all_reduce", Operation::AllReduce, Location::caller());
        let call = call.of::<T>(Some(1)).with(&op);
        let mut data = [value];
        self.perform(call, |under| under.combined(&mut data, op))?;
        let [value] = data;
        Ok(value)
    }

    /// Each member gets its part of the data of all, combined by `op`: parts are as long as `into`.
    ///
    /// ```
    /// use mizzen::group::Sum;
    ///
    /// mizzen::local(3, |deck| {
    ///     let mut mine = [0];
    ///     deck.group()?.reduce_scatter_into(&[1, 10, deck.rank().0], &mut mine, Sum)?;
    ///     assert_eq!(mine, [[3, 30, 3][deck.rank().index()]]);
    ///     Ok(())
    /// }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// [`GroupError`](super::GroupError); [`GroupError::Misfit`](super::GroupError::Misfit) if `from` is not as long as all parts together.
    #[track_caller]
    pub fn reduce_scatter_into<T: Plain, O: Op<T>>(
        &mut self,
        from: &[T],
        into: &mut [T],
        op: O,
    ) -> Result<()> {
        let call = Call::new(
            "reduce_scatter_into",
            Operation::ReduceScatter,
            Location::caller(),
        );
        let call = call.of::<T>(Some(into.len())).with(&op);
        self.perform(call, |under| {
            under.fit("what is combined", from.len(), into.len() * under.size())?;
            let blocks = Blocks::Even(into.len());
            let mut data = copy(from);
            under.combined_blocks(&mut data, blocks, op, into.len())?;
            into.swap_with_slice(&mut data[blocks.range(under.seat.me.0)]);
            Ok(())
        })
    }

    /// Each member gets the data of all members up to itself, combined by `op` in their order. All have data of the same length.
    ///
    /// ```
    /// use mizzen::group::Sum;
    ///
    /// mizzen::local(4, |deck| {
    ///     let mut group = deck.group()?;
    ///     let mut count = [deck.rank().0 + 1];
    ///     group.scan(&mut count, Sum)?;
    ///     assert_eq!(count, [[1, 3, 6, 10][deck.rank().index()]]);
    ///     Ok(())
    /// }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// [`GroupError`](super::GroupError).
    #[track_caller]
    pub fn scan<T: Plain, O: Op<T>>(&mut self, data: &mut [T], op: O) -> Result<()> {
        let call = Call::new("scan", Operation::Scan, Location::caller());
        let call = call.of::<T>(Some(data.len())).with(&op);
        self.perform(call, |under| under.combined(data, op))
    }

    /// Each member gets the data of all members before it, combined by `op` in their order; the first keeps what it has. All have data of the same length.
    ///
    /// ```
    /// use mizzen::group::Sum;
    ///
    /// mizzen::local(4, |deck| {
    ///     // Where each begins, if all write one after the other.
    ///     let mut group = deck.group()?;
    ///     let mut start = [10u64];
    ///     group.exclusive_scan(&mut start, Sum)?;
    ///     if group.member() == 0 {
    ///         start = [0];
    ///     }
    ///     assert_eq!(start[0], 10 * u64::from(deck.rank()));
    ///     Ok(())
    /// }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// [`GroupError`](super::GroupError).
    #[track_caller]
    pub fn exclusive_scan<T: Plain, O: Op<T>>(&mut self, data: &mut [T], op: O) -> Result<()> {
        let call = Call::new(
            "exclusive_scan",
            Operation::ExclusiveScan,
            Location::caller(),
        );
        let call = call.of::<T>(Some(data.len())).with(&op);
        self.perform(call, |under| {
            if under.seat.me != Member(0) {
                return under.combined(data, op);
            }
            under.combined(&mut copy(data), op)
        })
    }
}
