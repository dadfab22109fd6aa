//! Operations on lent buffers: members on one host read each other's in place, and nothing is copied that is not changed.

use core::panic::Location;

use mizzen_core::service::TrayPlace;
use mizzen_core::zerocopy::FromBytes as _;
use mizzen_core::{Lent, Plain, Result};
use mizzen_proto::group::plan::{Operation, Order};
use mizzen_proto::group::schedule::{Member, part};

use super::call::Call;
use super::error::GroupError;
use super::means::{Means, choose};
use super::member::Group;
use super::op::Op;
use super::run::{Combine, copy, copy_into};
use super::seat::Seat;
use super::slates::others;

impl Group {
    /// As [`broadcast`](Self::broadcast), of a lent buffer: more than two members on one host copy it from where it is. What is broadcast again and again is best kept in one.
    ///
    /// ```
    /// mizzen::local(2, |deck| {
    ///     let mut data = deck.lend::<u32>(1000)?;
    ///     data.fill(deck.rank().0);
    ///     deck.group()?.broadcast_lent(1, &mut data)?;
    ///     assert_eq!(data[999], 1);
    ///     Ok(())
    /// }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// [`GroupError`].
    #[track_caller]
    pub fn broadcast_lent<T: Plain>(
        &mut self,
        root: impl Into<Member>,
        data: &mut Lent<T>,
    ) -> Result<()> {
        let root = root.into();
        let call = Call::new(
            "broadcast_lent",
            Operation::Broadcast(root),
            Location::caller(),
        );
        let call = call.of::<T>(Some(data.len()));
        self.perform(call, |under| {
            if !reads_in_place::<T>(under.seat, call.operation, data.len())? {
                return under.whole(data, None);
            }
            let places = under.seat.show_lent(data, |member| member == root)?;
            let (me, size) = (under.seat.me, under.seat.roster.size());
            if me != root {
                let place = places[root.index()];
                let len = data.len();
                copy_into(data, under.seat.view_lent(root, place, 0, len)?);
            }
            // Nobody changes its own before all have read it.
            under.seat.begin_turn()?;
            under.seat.show(&[]);
            for member in others(me, size).filter(|_| me == root) {
                under.seat.look(member)?;
            }
            Ok(())
        })
    }

    /// As [`all_reduce`](Self::all_reduce), of a lent buffer: more than two members on one host read each other's in place. What is combined again and again is best kept in one.
    ///
    /// ```
    /// use mizzen::group::Sum;
    ///
    /// mizzen::local(3, |deck| {
    ///     let mut data = deck.lend::<u32>(1000)?;
    ///     data.fill(deck.rank().0);
    ///     deck.group()?.all_reduce_lent(&mut data, Sum)?;
    ///     assert_eq!(data[999], 3);
    ///     Ok(())
    /// }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// [`GroupError`].
    #[track_caller]
    pub fn all_reduce_lent<T: Plain, O: Op<T>>(&mut self, data: &mut Lent<T>, op: O) -> Result<()> {
        let call = Call::new("all_reduce_lent", Operation::AllReduce, Location::caller());
        let call = call.of::<T>(Some(data.len())).with(&op);
        self.perform(call, |under| {
            if !reads_in_place::<T>(under.seat, call.operation, data.len())? {
                return under.combined(data, op);
            }
            let order = if O::COMMUTES {
                Order::Any
            } else {
                Order::Members
            };
            all_reduce(under.seat, order, data, &|data: &mut [T], next: &[T]| {
                op.combine(data, next);
            })
        })
    }
}

/// Each member combines its share of the data in place: others read their own shares of its buffer. Then it copies the shares of the others.
fn all_reduce<T: Plain>(
    seat: &mut Seat,
    order: Order,
    data: &mut Lent<T>,
    combine: Combine<'_, T>,
) -> Result<(), GroupError> {
    let (me, size, len) = (seat.me, seat.roster.size(), data.len());
    let share = |member: Member| part(len, size, member.0);
    let places = seat.show_lent(data, |_| true)?;
    let own = share(me);
    if order == Order::Any {
        for member in others(me, size) {
            let theirs = seat.view_lent(member, places[member.index()], own.start, own.len())?;
            combine(&mut data[own.clone()], theirs);
        }
    } else {
        let mine = copy(&data[own.clone()]);
        for member in seat.roster.members() {
            let next = if member == me {
                &mine
            } else {
                seat.view_lent(member, places[member.index()], own.start, own.len())?
            };
            if member == 0 {
                copy_into(&mut data[own.clone()], next);
            } else {
                combine(&mut data[own.clone()], next);
            }
        }
    }
    seat.begin_turn()?;
    seat.show(&[]);
    for member in others(me, size) {
        // It has done with this member's buffer, but for what this one has combined.
        seat.look(member)?;
        let share = share(member);
        let (place, start) = (places[member.index()], share.start);
        let theirs = seat.view_lent(member, place, start, share.len())?;
        copy_into(&mut data[share], theirs);
    }
    seat.begin_turn()?;
    seat.show(&[]);
    for member in others(me, size) {
        seat.look(member)?;
    }
    Ok(())
}

/// Two members are not slower through their trays: one copies in while the other copies out.
const FEWEST_IN_PLACE: u32 = 3;

/// Whether all members read each other's buffers in place. The same at all.
fn reads_in_place<T>(
    seat: &mut Seat,
    operation: Operation,
    len: usize,
) -> Result<bool, GroupError> {
    let means = choose::<T>(seat, operation, len * size_of::<T>())?;
    if seat.roster.size() < FEWEST_IN_PLACE {
        return Ok(false);
    }
    let mut ranks: Vec<_> = seat
        .roster
        .members()
        .map(|of| seat.roster.rank(of))
        .collect();
    ranks.dedup();
    let are_processes = ranks.len() == seat.roster.size() as usize;
    let slates = seat.slates.as_ref();
    Ok(means == Means::Trays && are_processes && slates.is_some_and(|of| of.are_shared()))
}

impl Seat {
    /// Shows where this member's buffer is, and sees where those of the others are that are wanted.
    fn show_lent<T: Plain>(
        &mut self,
        data: &Lent<T>,
        is_wanted: impl Fn(Member) -> bool,
    ) -> Result<Vec<TrayPlace>, GroupError> {
        self.begin_turn()?;
        let place = self.slates.as_ref().and_then(|slates| slates.lend(data));
        // A place that nobody has: others find that there is nothing.
        self.show(&place.unwrap_or([u64::MAX; 2]));
        let mut places = vec![[u64::MAX; 2]; self.roster.size() as usize];
        for member in others(self.me, self.roster.size()) {
            if is_wanted(member) {
                let [slab, offset, ..] = self.look(member)?.words;
                places[member.index()] = [slab, offset];
            }
        }
        Ok(places)
    }

    /// Elements of a member's buffer, from element `at` on.
    fn view_lent<T: Plain>(
        &mut self,
        member: Member,
        place: TrayPlace,
        at: usize,
        len: usize,
    ) -> Result<&[T], GroupError> {
        let (at, len) = (at * size_of::<T>(), len * size_of::<T>());
        let slates = self.slates.as_mut();
        let is_there = slates.is_some_and(|slates| slates.find_lent(member.index(), place));
        if !is_there || self.lent_bytes::<T>(member, at, len).is_none() {
            return Err(self.break_off(format!("the buffer of member {member} is not there")));
        }
        Ok(self.lent_bytes(member, at, len).unwrap_or_default())
    }

    fn lent_bytes<T: Plain>(&self, member: Member, at: usize, len: usize) -> Option<&[T]> {
        let bytes = self.slates.as_ref()?.view_lent(member.index(), at, len)?;
        <[T]>::ref_from_bytes(bytes).ok()
    }
}
