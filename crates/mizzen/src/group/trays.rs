//! Long data of members on one host: each puts its own on its tray, part by part, and reads what it needs of the others' in place.
//!
//! What is combined takes two turns for each part: each member combines its share of it, and shows the result. If that is little, all combine all, in one.

use core::ops::Range;

use mizzen_core::Plain;
use mizzen_core::service::TRAY_PLACE;
use mizzen_core::zerocopy::{FromBytes as _, IntoBytes as _};
use mizzen_proto::group::plan::{Operation, Order};
use mizzen_proto::group::schedule::{Member, part};

use super::error::GroupError;
use super::run::{Combine, Work, copy, copy_into};
use super::seat::Seat;
use super::slates::others;

/// Bytes of a part that one member has and the others copy: they begin when it is there, while the next is written.
const COPIED: usize = 32 << 10;
/// Up to so many bytes of all others together, each member combines them itself.
const COMBINED_BY_ALL: usize = 8 << 10;

/// How many members' data share a place of a tray.
pub(super) fn places(operation: Operation, size: usize) -> usize {
    match operation {
        Operation::Scatter(_) | Operation::AllToAll | Operation::ReduceScatter => size,
        _ => 1,
    }
}

/// Does an operation on blocks or data of `bytes` bytes: the same number at all members, of the longest block.
pub(super) fn run<T: Plain>(
    seat: &mut Seat,
    operation: Operation,
    order: Order,
    work: &mut Work<'_, T>,
    combine: Option<Combine<'_, T>>,
    bytes: usize,
) -> Result<(), GroupError> {
    let (me, size) = (seat.me, seat.roster.size());
    let room = TRAY_PLACE / places(operation, size as usize) / size_of::<T>();
    let len = bytes / size_of::<T>();
    match operation {
        Operation::Barrier => Ok(()),
        Operation::Broadcast(root) => {
            for range in parts(len, COPIED / size_of::<T>()) {
                seat.turn(|seat| {
                    if root == me {
                        seat.fill(0, &work.data[range.clone()]);
                    }
                })?;
                if root != me {
                    copy_into(
                        &mut work.data[range.clone()],
                        seat.view(root, 0, range.len())?,
                    );
                }
            }
            Ok(())
        }
        Operation::Gather(_) | Operation::AllGather => {
            let gathers = !matches!(operation, Operation::Gather(root) if root != me);
            for range in parts(len, room) {
                let own: &[T] = match work.from {
                    Some((from, blocks)) => &from[blocks.range(me.0)],
                    None => &work.data[work.blocks.range(me.0)],
                };
                seat.turn(|seat| seat.fill(0, &own[within(&range, &(0..own.len()))]))?;
                for member in others(me, size).filter(|_| gathers) {
                    let block = work.blocks.range(member.0);
                    let target = &mut work.data[within(&range, &block)];
                    copy_into(target, seat.view(member, 0, target.len())?);
                }
            }
            Ok(())
        }
        Operation::Scatter(_) | Operation::AllToAll => {
            let root = match operation {
                Operation::Scatter(root) => Some(root),
                _ => None,
            };
            for range in parts(len, room) {
                seat.turn(|seat| {
                    let Some((from, blocks)) =
                        work.from.filter(|_| root.is_none_or(|root| root == me))
                    else {
                        return;
                    };
                    for member in others(me, size) {
                        let block = blocks.range(member.0);
                        seat.fill(member.index() * room, &from[within(&range, &block)]);
                    }
                })?;
                for member in others(me, size).filter(|of| root.is_none_or(|root| root == *of)) {
                    let block = match operation {
                        Operation::Scatter(_) => work.blocks.range(me.0),
                        _ => work.blocks.range(member.0),
                    };
                    let target = &mut work.data[within(&range, &block)];
                    copy_into(target, seat.view(member, me.index() * room, target.len())?);
                }
            }
            Ok(())
        }
        Operation::ReduceScatter => {
            for range in parts(len, room) {
                seat.turn(|seat| {
                    for member in others(me, size) {
                        let block = &work.data[work.blocks.range(member.0)];
                        seat.fill(member.index() * room, &block[range.clone()]);
                    }
                })?;
                let own = &mut work.data[work.blocks.range(me.0)][range.clone()];
                combined(seat, order, 0..size, me.index() * room, own, combine)?;
            }
            Ok(())
        }
        Operation::Scan | Operation::ExclusiveScan => {
            let end = me.0 + u32::from(operation == Operation::Scan);
            for range in parts(len, room) {
                seat.turn(|seat| seat.fill(0, &work.data[range.clone()]))?;
                let data = &mut work.data[range];
                combined(seat, Order::Members, 0..end, 0, data, combine)?;
            }
            Ok(())
        }
        Operation::Reduce(_) | Operation::AllReduce => {
            let is_wanted = !matches!(operation, Operation::Reduce(root) if root != me);
            if bytes * (size as usize - 1) <= COMBINED_BY_ALL {
                seat.turn(|seat| seat.fill(0, work.data))?;
                if is_wanted {
                    combined(seat, Order::Members, 0..size, 0, work.data, combine)?;
                }
                return Ok(());
            }
            for range in parts(len, room) {
                let data = &mut work.data[range];
                let of = |len: usize, member: Member| part(len, size, member.0);
                let own = of(data.len(), me);
                seat.turn(|seat| {
                    seat.fill(0, &data[..own.start]);
                    seat.fill(own.end, &data[own.end..]);
                })?;
                combined(
                    seat,
                    order,
                    0..size,
                    own.start,
                    &mut data[own.clone()],
                    combine,
                )?;
                seat.turn(|seat| seat.fill(0, &data[own]))?;
                for member in others(me, size).filter(|_| is_wanted) {
                    let share = of(data.len(), member);
                    let len = share.len();
                    copy_into(&mut data[share], seat.view(member, 0, len)?);
                }
            }
            Ok(())
        }
    }
}

/// What some members show from element `at` on, and this one has in `data`, combined: in their order, or each beginning with its own, always the same way.
fn combined<T: Plain>(
    seat: &mut Seat,
    order: Order,
    members: Range<u32>,
    at: usize,
    data: &mut [T],
    combine: Option<Combine<'_, T>>,
) -> Result<(), GroupError> {
    let (me, len) = (seat.me, data.len());
    let Some(combine) = combine else {
        return Ok(());
    };
    if order == Order::Any {
        for member in others(me, members.end) {
            combine(data, seat.view(member, at, len)?);
        }
        return Ok(());
    }
    let own = copy(data);
    for member in members.clone().map(Member) {
        let next = if member == me {
            &own
        } else {
            seat.view(member, at, len)?
        };
        if member == members.start {
            copy_into(data, next);
        } else {
            combine(data, next);
        }
    }
    Ok(())
}

/// Elements in parts of so many, at least one.
fn parts(len: usize, each: usize) -> impl Iterator<Item = Range<usize>> {
    let each = each.max(1);
    (0..len)
        .step_by(each)
        .map(move |start| start..(start + each).min(len))
}

/// The elements of a block that a part of it has: fewer if the block ends there.
fn within(part: &Range<usize>, block: &Range<usize>) -> Range<usize> {
    let at = |place: usize| block.start.saturating_add(place).min(block.end);
    at(part.start)..at(part.end)
}

impl Seat {
    /// A turn in which something is put on the tray.
    fn turn(&mut self, put: impl FnOnce(&mut Self)) -> Result<(), GroupError> {
        self.begin_turn()?;
        put(self);
        self.show(&[]);
        Ok(())
    }

    /// Puts elements on the tray, `at` elements behind its beginning.
    fn fill<T: Plain>(&mut self, at: usize, elements: &[T]) {
        if let Some(slates) = self.slates.as_mut() {
            slates.fill(at * size_of::<T>(), elements.as_bytes());
        }
    }

    /// Elements that a member shows in this turn, from element `at` of its tray on.
    fn view<T: Plain>(
        &mut self,
        member: Member,
        at: usize,
        len: usize,
    ) -> Result<&[T], GroupError> {
        self.look(member)?;
        let (at, len) = (at * size_of::<T>(), len * size_of::<T>());
        if self.view_bytes::<T>(member, at, len).is_none() {
            return Err(self.break_off(format!("the tray of member {member} is not there")));
        }
        let elements = self.view_bytes(member, at, len);
        Ok(elements.unwrap_or_default())
    }

    fn view_bytes<T: Plain>(&self, member: Member, at: usize, len: usize) -> Option<&[T]> {
        let bytes = self.slates.as_ref()?.view(member.index(), at, len)?;
        <[T]>::ref_from_bytes(bytes).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_everything() {
        let all: Vec<_> = parts(10, 4).collect();
        assert_eq!(all, [0..4, 4..8, 8..10]);
        assert_eq!(parts(2, 0).count(), 2);
        assert_eq!(parts(0, 4).count(), 0);
        assert_eq!(within(&(4..8), &(10..16)), 14..16);
        assert_eq!(within(&(8..12), &(10..16)), 16..16);
    }
}
