//! What members do together.

use core::panic::Location;

use mizzen_core::{Error, Plain, PostError, Result};
use mizzen_proto::group::plan::{Operation, Order};
use mizzen_proto::group::schedule::Member;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::call::Call;
use super::error::GroupError;
use super::member::Group;
use super::op::Op;
use super::parts::Parts;
use super::plans::Plans;
use super::run::{Blocks, Combine, Work, copy, copy_into, is_only_own, run, zeroed};
use super::seat::Seat;
use super::slates;

impl Group {
    /// Waits until all members have called it.
    ///
    /// # Errors
    ///
    /// [`GroupError`].
    #[track_caller]
    pub fn barrier(&mut self) -> Result<()> {
        let call = Call::new("barrier", Operation::Barrier, Location::caller());
        let (seat, plans) = self.parts();
        Ok(barrier(seat, plans, call)?)
    }

    /// All members get what `root` has. All have data of the same length.
    ///
    /// ```
    /// mizzen::local(3, |deck| {
    ///     let mut group = deck.group()?;
    ///     let mut data = [deck.rank().0; 4];
    ///     group.broadcast(2, &mut data)?;
    ///     assert_eq!(data, [2; 4]);
    ///     Ok(())
    /// }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// [`GroupError`].
    #[track_caller]
    pub fn broadcast<T: Plain>(&mut self, root: impl Into<Member>, data: &mut [T]) -> Result<()> {
        let operation = Operation::Broadcast(root.into());
        let call = Call::new("broadcast", operation, Location::caller()).of::<T>(Some(data.len()));
        self.perform(call, |under| under.whole(data, None))
    }

    /// All members get a serde value that `root` has. The others give `None`.
    ///
    /// ```
    /// mizzen::local(3, |deck| {
    ///     let mut group = deck.group()?;
    ///     let names = (group.member() == 1).then(|| vec!["fore".to_owned(), "aft".to_owned()]);
    ///     assert_eq!(group.broadcast_value(1, names)?.len(), 2);
    ///     Ok(())
    /// }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// [`GroupError`]; or if the value cannot be serialised, or `root` gives none.
    #[track_caller]
    pub fn broadcast_value<V: Serialize + DeserializeOwned>(
        &mut self,
        root: impl Into<Member>,
        value: Option<V>,
    ) -> Result<V> {
        let root = root.into();
        let call = Call::new(
            "broadcast_value",
            Operation::Broadcast(root),
            Location::caller(),
        )
        .of::<V>(None);
        let is_root = self.member() == root;
        let value = value.filter(|_| is_root);
        let encoded = value.as_ref().map(encode).transpose()?;
        let bytes = self.perform(call, |under| {
            if is_root && encoded.is_none() {
                return Err(under.seat.refuse("the root gave no value".to_owned()));
            }
            let mut bytes = encoded.unwrap_or_default();
            let mut len = [bytes.len() as u64];
            under.whole(&mut len, None)?;
            if !is_root {
                bytes = vec![0; under.length(len[0])?];
            }
            under.whole(&mut bytes, None)?;
            Ok(bytes)
        })?;
        match value {
            Some(value) => Ok(value),
            None => self.decode(&bytes),
        }
    }

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
    /// [`GroupError`].
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
    /// [`GroupError`].
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
    /// [`GroupError`]; [`GroupError::Misfit`] if the two are not as long.
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
    /// [`GroupError`].
    #[track_caller]
    pub fn all_reduce_value<T: Plain, O: Op<T>>(&mut self, value: T, op: O) -> Result<T> {
        let call = Call::new("all_reduce", Operation::AllReduce, Location::caller());
        let call = call.of::<T>(Some(1)).with(&op);
        let mut data = [value];
        self.perform(call, |under| under.combined(&mut data, op))?;
        let [value] = data;
        Ok(value)
    }

    /// `root` gets the data of each member, of whatever lengths; the others get `None`.
    ///
    /// ```
    /// mizzen::local(3, |deck| {
    ///     let mut group = deck.group()?;
    ///     let mine = vec![deck.rank().0; deck.rank().index()];
    ///     if let Some(parts) = group.gather(0, &mine)? {
    ///         assert_eq!((&parts[0], &parts[1], &parts[2]), (&[][..], &[1][..], &[2, 2][..]));
    ///     }
    ///     Ok(())
    /// }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// [`GroupError`].
    #[track_caller]
    pub fn gather<T: Plain>(
        &mut self,
        root: impl Into<Member>,
        mine: &[T],
    ) -> Result<Option<Parts<T>>> {
        let root = root.into();
        let call = Call::new("gather", Operation::Gather(root), Location::caller()).of::<T>(None);
        self.perform(call, |under| {
            let ends = under.ends(mine.len())?;
            let mut all = Vec::new();
            let is_root = under.seat.me == root;
            if is_root {
                all = zeroed(under.total::<T>(&ends)?);
            }
            let into = is_root.then_some(&mut all[..]);
            under.gathered(mine, into, Blocks::Ends(&ends), longest(&ends))?;
            Ok(is_root.then(|| Parts::of_lengths(all, ends)))
        })
    }

    /// `root` gets the data of each member, one after the other, in `into`, which the others do not give. All have data of the same length.
    ///
    /// ```
    /// mizzen::local(3, |deck| {
    ///     let mut group = deck.group()?;
    ///     let mut all = [0; 6];
    ///     let into = (group.member() == 2).then_some(&mut all[..]);
    ///     group.gather_into(2, &[deck.rank().0; 2], into)?;
    ///     if group.member() == 2 {
    ///         assert_eq!(all, [0, 0, 1, 1, 2, 2]);
    ///     }
    ///     Ok(())
    /// }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// [`GroupError`]; [`GroupError::Misfit`] if `into` is not as long as all together, or `root` gives none.
    #[track_caller]
    pub fn gather_into<T: Plain>(
        &mut self,
        root: impl Into<Member>,
        mine: &[T],
        into: Option<&mut [T]>,
    ) -> Result<()> {
        let root = root.into();
        let call = Call::new("gather_into", Operation::Gather(root), Location::caller());
        let call = call.of::<T>(Some(mine.len()));
        self.perform(call, |under| {
            let into = into.filter(|_| under.seat.me == root);
            if under.seat.me == root {
                let given = into.as_ref().map_or(0, |into| into.len());
                under.fit("the memory for all", given, mine.len() * under.size())?;
            }
            under.gathered(mine, into, Blocks::Even(mine.len()), mine.len())
        })
    }

    /// Each member gets its part of what `root` has, of whatever length. The others give `None`.
    ///
    /// ```
    /// use mizzen::group::Parts;
    ///
    /// mizzen::local(3, |deck| {
    ///     let mut group = deck.group()?;
    ///     let parts = (group.member() == 0).then(|| Parts::from_iter([vec![1], vec![], vec![2, 3]]));
    ///     let mine: Vec<u32> = group.scatter(0, parts.as_ref())?;
    ///     assert_eq!(mine.len(), [1, 0, 2][group.member().index()]);
    ///     Ok(())
    /// }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// [`GroupError`]; [`GroupError::Misfit`] if `root` does not give a part for each member.
    #[track_caller]
    pub fn scatter<T: Plain>(
        &mut self,
        root: impl Into<Member>,
        parts: Option<&Parts<T>>,
    ) -> Result<Vec<T>> {
        let root = root.into();
        let call = Call::new("scatter", Operation::Scatter(root), Location::caller()).of::<T>(None);
        self.perform(call, |under| {
            let parts = parts.filter(|_| under.seat.me == root);
            let mut ends = vec![0_u64; under.size()];
            if under.seat.me == root {
                let given = parts.map_or(0, Parts::len);
                under.fit("the number of parts", given, under.size())?;
            }
            for (end, of) in ends.iter_mut().zip(parts.map_or(&[][..], Parts::ends)) {
                *end = *of as u64;
            }
            under.run(
                Operation::Broadcast(root),
                &mut ends,
                None,
                8 * under.size(),
            )?;
            let ends = ends.into_iter().map(|end| under.length(end));
            let ends: Vec<usize> = ends.collect::<Result<_, _>>()?;
            under.total::<T>(&ends)?;
            let me = under.seat.me.index();
            let mut own = zeroed(super::parts::range(&ends, me).len());
            let from = parts.map(Parts::all);
            under.scattered(from, &mut own, Blocks::Ends(&ends), longest(&ends))?;
            Ok(own)
        })
    }

    /// Each member gets its part of `from`, which `root` gives and the others do not: parts are as long as `into`.
    ///
    /// ```
    /// mizzen::local(3, |deck| {
    ///     let mut group = deck.group()?;
    ///     let (all, mut mine) = ([0, 0, 1, 1, 2, 2], [9; 2]);
    ///     let from = (group.member() == 1).then_some(&all[..]);
    ///     group.scatter_into(1, from, &mut mine)?;
    ///     assert_eq!(mine, [deck.rank().0 as i32; 2]);
    ///     Ok(())
    /// }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// [`GroupError`]; [`GroupError::Misfit`] if `from` is not as long as all together, or `root` gives none.
    #[track_caller]
    pub fn scatter_into<T: Plain>(
        &mut self,
        root: impl Into<Member>,
        from: Option<&[T]>,
        into: &mut [T],
    ) -> Result<()> {
        let root = root.into();
        let call = Call::new("scatter_into", Operation::Scatter(root), Location::caller());
        let call = call.of::<T>(Some(into.len()));
        self.perform(call, |under| {
            let from = from.filter(|_| under.seat.me == root);
            if under.seat.me == root {
                let given = from.map_or(0, <[T]>::len);
                under.fit("what is handed out", given, into.len() * under.size())?;
            }
            let each = into.len();
            under.scattered(from, into, Blocks::Even(each), each)
        })
    }

    /// All members get the data of each, of whatever lengths.
    ///
    /// ```
    /// mizzen::local(3, |deck| {
    ///     let all = deck.group()?.all_gather(&vec![deck.rank().0; deck.rank().index()])?;
    ///     assert_eq!(all.all(), [1, 2, 2]);
    ///     Ok(())
    /// }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// [`GroupError`].
    #[track_caller]
    pub fn all_gather<T: Plain>(&mut self, mine: &[T]) -> Result<Parts<T>> {
        let call = Call::new("all_gather", Operation::AllGather, Location::caller()).of::<T>(None);
        self.all_gather_under(call, mine)
    }

    pub(super) fn all_gather_under<T: Plain>(
        &mut self,
        call: Call,
        mine: &[T],
    ) -> Result<Parts<T>> {
        self.perform(call, |under| under.all_gathered(mine))
    }

    /// All members get the data of each, one after the other, in `into`. All have data of the same length.
    ///
    /// # Errors
    ///
    /// [`GroupError`]; [`GroupError::Misfit`] if `into` is not as long as all together.
    #[track_caller]
    pub fn all_gather_into<T: Plain>(&mut self, mine: &[T], into: &mut [T]) -> Result<()> {
        let call = Call::new("all_gather_into", Operation::AllGather, Location::caller());
        let call = call.of::<T>(Some(mine.len()));
        self.perform(call, |under| {
            under.fit("the memory for all", into.len(), mine.len() * under.size())?;
            let blocks = Blocks::Even(mine.len());
            copy_into(&mut into[blocks.range(under.seat.me.0)], mine);
            under.blocks(into, blocks, None, mine.len())
        })
    }

    /// All members get a serde value of each, in their order.
    ///
    /// ```
    /// mizzen::local(3, |deck| {
    ///     let hosts = deck.group()?.all_gather_values(deck.host())?;
    ///     assert_eq!(hosts.len(), 3);
    ///     # let _: Vec<String> = hosts;
    ///     Ok(())
    /// }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// [`GroupError`]; or if the value cannot be serialised.
    #[track_caller]
    pub fn all_gather_values<W: Serialize + ?Sized, V: DeserializeOwned>(
        &mut self,
        value: &W,
    ) -> Result<Vec<V>> {
        let call = Call::new(
            "all_gather_values",
            Operation::AllGather,
            Location::caller(),
        )
        .of::<V>(None);
        let bytes = encode(value)?;
        let all = self.perform(call, |under| under.all_gathered(&bytes))?;
        all.iter().map(|bytes| self.decode(bytes)).collect()
    }

    /// Each member gets from each what that has for it, of whatever lengths.
    ///
    /// ```
    /// use mizzen::group::Parts;
    ///
    /// mizzen::local(3, |deck| {
    ///     let mut group = deck.group()?;
    ///     let me = deck.rank().0;
    ///     // For member 0 nothing, for member 1 one number, and so on.
    ///     let parts: Parts<u32> = (0..3).map(|to| vec![10 * me + to; to as usize]).collect();
    ///     let mine = group.all_to_all(&parts)?;
    ///     assert!(mine.iter().enumerate().all(|(from, part)| part == vec![10 * from as u32 + me; me as usize]));
    ///     Ok(())
    /// }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// [`GroupError`]; [`GroupError::Misfit`] if there is not a part for each member.
    #[track_caller]
    pub fn all_to_all<T: Plain>(&mut self, parts: &Parts<T>) -> Result<Parts<T>> {
        let call = Call::new("all_to_all", Operation::AllToAll, Location::caller()).of::<T>(None);
        self.perform(call, |under| {
            under.fit("the number of parts", parts.len(), under.size())?;
            let lengths: Vec<u64> = parts.iter().map(|part| part.len() as u64).collect();
            let mut theirs = vec![0; lengths.len()];
            under.paired((&lengths, Blocks::Even(1)), &mut theirs, Blocks::Even(1), 8)?;
            let ends = under.ends_of(&theirs)?;
            let mut data = zeroed(under.total::<T>(&ends)?);
            let from = (parts.all(), Blocks::Ends(parts.ends()));
            under.paired(from, &mut data, Blocks::Ends(&ends), 0)?;
            Ok(Parts::of_lengths(data, ends))
        })
    }

    /// Each member gets from each what that has for it: parts of the same length, one for each member, in `from` and in `into`.
    ///
    /// ```
    /// mizzen::local(3, |deck| {
    ///     let me = deck.rank().0;
    ///     let mut into = [0; 3];
    ///     deck.group()?.all_to_all_into(&[10 * me, 10 * me + 1, 10 * me + 2], &mut into)?;
    ///     assert_eq!(into, [me, 10 + me, 20 + me]);
    ///     Ok(())
    /// }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// [`GroupError`]; [`GroupError::Misfit`] if the two are not as long, or not as long as all together.
    #[track_caller]
    pub fn all_to_all_into<T: Plain>(&mut self, from: &[T], into: &mut [T]) -> Result<()> {
        let call = Call::new("all_to_all_into", Operation::AllToAll, Location::caller());
        let call = call.of::<T>(Some(from.len()));
        self.perform(call, |under| {
            under.fit("the memory for the result", into.len(), from.len())?;
            let each = from.len() / under.size();
            under.fit("what is handed out", from.len(), each * under.size())?;
            let blocks = Blocks::Even(each);
            under.paired((from, blocks), into, blocks, each)
        })
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
    /// [`GroupError`]; [`GroupError::Misfit`] if `from` is not as long as all parts together.
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
    /// [`GroupError`].
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
    /// [`GroupError`].
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

    /// Does something under a call.
    fn perform<R>(
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
        seat.end();
        Ok(outcome?)
    }

    fn decode<V: DeserializeOwned>(&mut self, bytes: &[u8]) -> Result<V> {
        let process = &self.parts().0.process;
        Ok(mizzen_core::service::decode(process, bytes)?)
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
    seat.end();
    outcome
}

/// An operation under way.
struct UnderWay<'u> {
    seat: &'u mut Seat,
    plans: &'u mut Plans,
    operation: Operation,
}

impl UnderWay<'_> {
    fn size(&self) -> usize {
        self.seat.roster.size() as usize
    }

    /// What was given is as long as it must be.
    fn fit(&mut self, what: &str, given: usize, wanted: usize) -> Result<(), GroupError> {
        if given == wanted {
            return Ok(());
        }
        Err(self.seat.refuse(format!(
            "{what} has a length of {given} where {wanted} is needed"
        )))
    }

    /// A length that another member told.
    fn length(&mut self, told: u64) -> Result<usize, GroupError> {
        let len = usize::try_from(told)
            .ok()
            .filter(|len| *len <= isize::MAX as usize);
        len.ok_or_else(|| {
            self.seat
                .break_off(format!("a member tells of a length of {told}"))
        })
    }

    /// How many elements there are in all: no more than memory can hold.
    fn total<T>(&mut self, ends: &[usize]) -> Result<usize, GroupError> {
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
    fn whole<T: Plain>(
        &mut self,
        data: &mut [T],
        combine: Option<Combine<'_, T>>,
    ) -> Result<(), GroupError> {
        let (operation, bytes) = (self.operation, size_of_val(data));
        self.run(operation, data, combine, bytes)
    }

    fn run<T: Plain>(
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
    fn combined<T: Plain, O: Op<T>>(&mut self, data: &mut [T], op: O) -> Result<(), GroupError> {
        let bytes = size_of_val(data);
        self.combined_in(data, Blocks::None, op, bytes)
    }

    /// Each member has a block of `each` elements, and they are combined.
    fn combined_blocks<T: Plain, O: Op<T>>(
        &mut self,
        data: &mut [T],
        blocks: Blocks<'_>,
        op: O,
        each: usize,
    ) -> Result<(), GroupError> {
        self.combined_in(data, blocks, op, each * size_of::<T>())
    }

    fn combined_in<T: Plain, O: Op<T>>(
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

    /// By slates if that suits, otherwise by messages.
    fn carry_out<T: Plain>(
        &mut self,
        operation: Operation,
        order: Order,
        work: &mut Work<'_, T>,
        combine: Option<Combine<'_, T>>,
        bytes: usize,
    ) -> Result<(), GroupError> {
        if slates::suit::<T>(self.seat, operation, bytes)? {
            return slates::run(self.seat, operation, work, combine);
        }
        let stages = self.plans.stages(self.seat, operation, order, bytes);
        run(self.seat, &stages, work, combine)
    }

    /// Each member has a block, the longest of which has `each` elements.
    fn blocks<T: Plain>(
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
    fn ends(&mut self, own: usize) -> Result<Vec<usize>, GroupError> {
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
    fn ends_of(&mut self, lengths: &[u64]) -> Result<Vec<usize>, GroupError> {
        let mut end = 0_usize;
        let mut ends = Vec::with_capacity(lengths.len());
        for length in lengths {
            let length = self.length(*length)?;
            end = end.saturating_add(length);
            ends.push(end);
        }
        Ok(ends)
    }

    fn all_gathered<T: Plain>(&mut self, mine: &[T]) -> Result<Parts<T>, GroupError> {
        let ends = self.ends(mine.len())?;
        let mut all = zeroed(self.total::<T>(&ends)?);
        let blocks = Blocks::Ends(&ends);
        copy_into(&mut all[blocks.range(self.seat.me.0)], mine);
        self.blocks(&mut all, blocks, None, longest(&ends))?;
        Ok(Parts::of_lengths(all, ends))
    }

    /// The blocks of all go to the one that gives `into`.
    fn gathered<T: Plain>(
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
        let bytes = each * size_of::<T>();
        let stages = self
            .plans
            .stages(self.seat, self.operation, Order::Any, bytes);
        if is_only_own(&stages, me) || slates::suit::<T>(self.seat, self.operation, bytes)? {
            let only = Blocks::Only(me, mine.len());
            return self.blocks(&mut [], only, Some((mine, only)), each);
        }
        let size = self.size() as u32;
        let mut all = zeroed(blocks.range(size - 1).end);
        copy_into(&mut all[blocks.range(me)], mine);
        self.blocks(&mut all, blocks, None, each)
    }

    /// The blocks of the one that gives `from` go to all.
    fn scattered<T: Plain>(
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
        let bytes = each * size_of::<T>();
        let stages = self
            .plans
            .stages(self.seat, self.operation, Order::Any, bytes);
        if is_only_own(&stages, me) {
            let only = Blocks::Only(me, own.len());
            return self.blocks(own, only, None, each);
        }
        let size = self.size() as u32;
        let mut all = zeroed(blocks.range(size - 1).end);
        self.blocks(&mut all, blocks, None, each)?;
        own.swap_with_slice(&mut all[blocks.range(me)]);
        Ok(())
    }

    /// Each member has a block for each.
    fn paired<T: Plain>(
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
fn longest(ends: &[usize]) -> usize {
    let lengths = (0..ends.len()).map(|index| super::parts::range(ends, index).len());
    lengths.max().unwrap_or(0)
}

fn encode<V: Serialize + ?Sized>(value: &V) -> Result<Vec<u8>> {
    let encoded = postcard::to_extend(value, Vec::new());
    encoded.map_err(|error| Error::from(PostError::encode(error)))
}
