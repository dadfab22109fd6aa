//! What members do together without combining anything: wait, and hand data around.

use core::panic::Location;

use mizzen_core::{Error, Plain, PostError, Result};
use mizzen_proto::group::plan::Operation;
use mizzen_proto::group::schedule::Member;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::call::Call;
use super::member::Group;
use super::parts::{Parts, range};
use super::run::{Blocks, copy_into, zeroed};
use super::under_way::{barrier, longest};

impl Group {
    /// Waits until all members have called it.
    ///
    /// # Errors
    ///
    /// [`GroupError`](super::GroupError).
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
    /// [`GroupError`](super::GroupError).
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
    /// [`GroupError`](super::GroupError); or if the value cannot be serialised, or `root` gives none.
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
    /// [`GroupError`](super::GroupError).
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
    /// [`GroupError`](super::GroupError); [`GroupError::Misfit`](super::GroupError::Misfit) if `into` is not as long as all together, or `root` gives none.
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
    /// [`GroupError`](super::GroupError); [`GroupError::Misfit`](super::GroupError::Misfit) if `root` does not give a part for each member.
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
            let mut own = zeroed(range(&ends, me).len());
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
    /// [`GroupError`](super::GroupError); [`GroupError::Misfit`](super::GroupError::Misfit) if `from` is not as long as all together, or `root` gives none.
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
    /// [`GroupError`](super::GroupError).
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
    /// [`GroupError`](super::GroupError); [`GroupError::Misfit`](super::GroupError::Misfit) if `into` is not as long as all together.
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
    /// [`GroupError`](super::GroupError); or if the value cannot be serialised.
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
    /// [`GroupError`](super::GroupError); [`GroupError::Misfit`](super::GroupError::Misfit) if there is not a part for each member.
    #[track_caller]
    pub fn all_to_all<T: Plain>(&mut self, parts: &Parts<T>) -> Result<Parts<T>> {
        let call = Call::new("all_to_all", Operation::AllToAll, Location::caller()).of::<T>(None);
        self.perform(call, |under| {
            under.fit("the number of parts", parts.len(), under.size())?;
            let lengths: Vec<u64> = parts.iter().map(|part| part.len() as u64).collect();
            let mut theirs = vec![0; lengths.len()];
            under.paired((&lengths, Blocks::Even(1)), &mut theirs, Blocks::Even(1), 1)?;
            let ends = under.ends_of(&theirs)?;
            let mut data = zeroed(under.total::<T>(&ends)?);
            let from = (parts.all(), Blocks::Ends(parts.ends()));
            let each = under.longest_of_all::<T>(longest(parts.ends()))?;
            under.paired(from, &mut data, Blocks::Ends(&ends), each)?;
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
    /// [`GroupError`](super::GroupError); [`GroupError::Misfit`](super::GroupError::Misfit) if the two are not as long, or not as long as all together.
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

    fn decode<V: DeserializeOwned>(&mut self, bytes: &[u8]) -> Result<V> {
        let process = &self.parts().0.process;
        Ok(mizzen_core::service::decode(process, bytes)?)
    }
}

fn encode<V: Serialize + ?Sized>(value: &V) -> Result<Vec<u8>> {
    let encoded = postcard::to_extend(value, Vec::new());
    encoded.map_err(|error| Error::from(PostError::encode(error)))
}
