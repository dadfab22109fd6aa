//! Short data of members on one host: each shows its own on its slate, and reads those of the others. One phase, no root, and everybody combines in the order of the
//! members, so all have the same bits.

use mizzen_core::Plain;
use mizzen_core::service::SLATE_WORDS;
use mizzen_core::zerocopy::{FromBytes as _, IntoBytes as _};
use mizzen_proto::group::plan::Operation;
use mizzen_proto::group::schedule::Member;

use super::error::GroupError;
use super::run::{Combine, Work};
use super::seat::Seat;

/// What a member can show.
pub(super) const MOST_BYTES: usize = SLATE_WORDS * 8;

/// What one member shows.
type Words = [u64; SLATE_WORDS];

/// Does an operation whose data fit: one turn.
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
    seat.begin_turn()?;
    seat.show(&words[..used]);
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
pub(super) fn others(me: Member, size: u32) -> impl Iterator<Item = Member> {
    (1..size).map(move |far| Member((me.0 + far) % size))
}
