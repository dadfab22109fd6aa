//! Short data of members on one host: each shows its own on its slate, and reads those of the others. One phase, no root, and everybody combines in the order of the
//! members, so all have the same bits.

use std::sync::Arc;

use mizzen_core::Plain;
use mizzen_core::service::{Audience, SLATE_WORDS, Shown, Waited};
use mizzen_core::zerocopy::{FromBytes as _, IntoBytes as _};
use mizzen_proto::group::plan::{Operation, Order, Shape, Way, stages};
use mizzen_proto::group::schedule::Member;

use super::error::GroupError;
use super::run::{Blocks, Combine, Work, run as messages};
use super::seat::{Found, LONG, Seat};

/// What a member can show.
const MOST_BYTES: usize = SLATE_WORDS * 8;

/// What one member shows.
type Words = [u64; SLATE_WORDS];

/// Whether an operation on so many bytes of each member goes by slates. The same at all members.
pub(super) fn suit<T>(
    seat: &mut Seat,
    operation: Operation,
    bytes: usize,
) -> Result<bool, GroupError> {
    let is_shown = !matches!(
        operation,
        Operation::Scatter(_) | Operation::AllToAll | Operation::ReduceScatter
    );
    let fits = bytes <= MOST_BYTES && align_of::<T>() <= align_of::<u64>();
    if !(is_shown && fits) {
        return Ok(false);
    }
    if seat.find_slates()? == Found::Now {
        // Nobody leaves before all others have its slate mapped.
        let (layout, me) = (Arc::clone(&seat.roster.layout), seat.me);
        let way = Way {
            shape: Shape::Exchange,
            by_levels: false,
        };
        let meeting = stages(&layout, me, Operation::Barrier, Order::Any, way);
        let mut nothing = Work {
            from: None,
            data: &mut [0_u8; 0],
            blocks: Blocks::None,
        };
        messages(seat, &meeting, &mut nothing, None)?;
    }
    Ok(seat.slates.is_some())
}

/// Does an operation that [suits](suit).
pub(super) fn run<T: Plain>(
    seat: &mut Seat,
    operation: Operation,
    work: &mut Work<'_, T>,
    combine: Option<Combine<'_, T>>,
) -> Result<(), GroupError> {
    let (me, size) = (seat.me, seat.roster.size());
    let own: &[T] = match (operation, work.from) {
        (Operation::Barrier, _) => &[],
        (Operation::Broadcast(root), _) if root != me => &[],
        (Operation::Gather(_) | Operation::AllGather, Some((from, blocks))) => {
            &from[blocks.range(me.0)]
        }
        (Operation::Gather(_) | Operation::AllGather, None) => &work.data[work.blocks.range(me.0)],
        _ => work.data,
    };
    let mut words: Words = [0; SLATE_WORDS];
    let bytes = own.as_bytes();
    words.as_mut_bytes()[..bytes.len()].copy_from_slice(bytes);
    let used = bytes.len().div_ceil(8);
    let audience = match operation {
        Operation::Broadcast(root) if root != me => Audience::Nobody,
        Operation::Reduce(root) | Operation::Gather(root) if root == me => Audience::Nobody,
        Operation::Reduce(root) | Operation::Gather(root) => Audience::One(root.index()),
        _ => Audience::All,
    };
    seat.begin_turn()?;
    seat.show(&words[..used], audience);
    // Whose slates this member reads, and what it does with them.
    match operation {
        Operation::Broadcast(root) if root != me => {
            let shown = seat.look(root)?;
            fill(work.data, &shown.words);
        }
        Operation::Broadcast(_) => (),
        Operation::Reduce(root) | Operation::Gather(root) if root != me => (),
        Operation::Barrier => {
            for member in others(me, size) {
                seat.look(member)?;
            }
        }
        Operation::Gather(_) | Operation::AllGather => {
            for member in others(me, size) {
                let shown = seat.look(member)?;
                fill(&mut work.data[work.blocks.range(member.0)], &shown.words);
            }
        }
        Operation::Scan => combined(seat, 0..me.0 + 1, &words, work.data, combine)?,
        Operation::ExclusiveScan if me == 0 => (),
        Operation::ExclusiveScan => combined(seat, 0..me.0, &words, work.data, combine)?,
        _ => combined(seat, 0..size, &words, work.data, combine)?,
    }
    Ok(())
}

/// What some members show, combined in their order.
fn combined<T: Plain>(
    seat: &mut Seat,
    members: core::ops::Range<u32>,
    own: &Words,
    data: &mut [T],
    combine: Option<Combine<'_, T>>,
) -> Result<(), GroupError> {
    let bytes = size_of_val(data);
    for member in members.clone() {
        let shown;
        let words = if seat.me == member {
            own
        } else {
            shown = seat.look(Member(member))?;
            &shown.words
        };
        if member == members.start {
            fill(data, words);
        } else if let (Some(combine), Ok(next)) =
            (combine, <[T]>::ref_from_bytes(&words.as_bytes()[..bytes]))
        {
            combine(data, next);
        }
    }
    Ok(())
}

fn fill<T: Plain>(data: &mut [T], words: &Words) {
    let data = data.as_mut_bytes();
    data.copy_from_slice(&words.as_bytes()[..data.len()]);
}

/// All but one, those behind it first.
fn others(me: Member, size: u32) -> impl Iterator<Item = Member> {
    (1..size).map(move |far| Member((me.0 + far) % size))
}

impl Seat {
    /// Begins a turn of the slates: waits for those that still read what this member showed some turns ago.
    #[inline]
    fn begin_turn(&mut self) -> Result<(), GroupError> {
        if let Some(slates) = self.slates.as_mut() {
            slates.begin();
        }
        while let Some((member, turn)) = self.slates.as_mut().and_then(|slates| slates.behind()) {
            self.wait_for_slate(Member(member as u32), Some(turn))?;
        }
        Ok(())
    }

    #[inline]
    fn show(&self, words: &[u64], audience: Audience) {
        if let Some(slates) = &self.slates {
            slates.show(self.print(), words, audience);
        }
    }

    /// What a member shows in this turn.
    #[inline]
    fn look(&mut self, member: Member) -> Result<Shown, GroupError> {
        if let Some(shown) = self.glance(member) {
            return self.check_print(member, shown);
        }
        self.wait_for_slate(member, None)?;
        match self.glance(member) {
            Some(shown) => self.check_print(member, shown),
            None => Err(self.break_off(format!("member {member} has gone on without this one"))),
        }
    }

    #[inline]
    fn glance(&mut self, member: Member) -> Option<Shown> {
        let slates = self.slates.as_mut()?;
        slates.read(member.index())
    }

    /// Members that do different things show different prints.
    #[inline]
    fn check_print(&mut self, member: Member, shown: Shown) -> Result<Shown, GroupError> {
        if shown.print == self.print() {
            return Ok(shown);
        }
        Err(self.differ(member))
    }

    /// Waits until a member has shown a turn: this one, if none is said.
    #[inline]
    fn wait_for_slate(&mut self, member: Member, turn: Option<u64>) -> Result<(), GroupError> {
        let waited = self.wait_once(member, turn);
        if waited == Waited::There {
            return Ok(());
        }
        self.wait_long(member, turn, waited)
    }

    #[inline]
    fn wait_once(&self, member: Member, turn: Option<u64>) -> Waited {
        let Some(slates) = &self.slates else {
            return Waited::Long;
        };
        match turn {
            Some(turn) => slates.wait_for(member.index(), turn, &self.inbox, LONG),
            None => slates.wait(member.index(), &self.inbox, LONG),
        }
    }

    #[cold]
    fn wait_long(
        &mut self,
        member: Member,
        turn: Option<u64>,
        first: Waited,
    ) -> Result<(), GroupError> {
        let (mut waited, mut naps) = (first, 0);
        loop {
            match waited {
                Waited::There => return Ok(()),
                Waited::Message => self.take_word()?,
                Waited::Long => {
                    naps += 1;
                    self.ask_once_more(member, naps);
                }
            }
            // What a member had shown before it was gone is still there.
            let gone = self.has_gone(member);
            waited = self.wait_once(member, turn);
            if let (Some(gone), false) = (gone, waited == Waited::There) {
                return Err(self.lose(member, gone));
            }
        }
    }
}
