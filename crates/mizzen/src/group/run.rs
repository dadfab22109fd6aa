//! Carrying a schedule out: what `mizzen_proto::group` has planned, with the data of the program and messages between seats.

use core::ops::Range;

use mizzen_core::zerocopy::IntoBytes as _;
use mizzen_core::{Message, Plain, scope};
use mizzen_proto::group::plan::{Space, Stage};
use mizzen_proto::group::schedule::{Fold, Round, Transfer, part};

use super::error::GroupError;
use super::parts;
use super::seat::Seat;

/// How `next` is combined into `data`.
pub(super) type Combine<'c, T> = &'c dyn Fn(&mut [T], &[T]);

/// The data of an operation.
pub(super) struct Work<'w, T> {
    /// What is sent, and its blocks, if what comes goes elsewhere.
    pub(super) from: Option<(&'w [T], Blocks<'w>)>,
    pub(super) data: &'w mut [T],
    pub(super) blocks: Blocks<'w>,
}

/// The blocks of members in the data, where members have blocks.
#[derive(Clone, Copy)]
pub(super) enum Blocks<'w> {
    /// There are none.
    None,
    /// All are so long.
    Even(usize),
    /// They end there.
    Ends(&'w [usize]),
    /// Only that of this member is there, and it is so long.
    Only(u32, usize),
}

impl Blocks<'_> {
    pub(super) fn range(self, block: u32) -> Range<usize> {
        let block = block as usize;
        match self {
            Self::None => 0..0,
            Self::Even(len) => block * len..(block + 1) * len,
            Self::Ends(ends) => parts::range(ends, block),
            Self::Only(own, len) if block == own as usize => 0..len,
            Self::Only(..) => 0..0,
        }
    }
}

/// Where a block is.
type Place<'p> = &'p dyn Fn(u32) -> Range<usize>;

/// What is sent, if what comes goes elsewhere, and where its blocks are.
type From<'f, T> = (&'f [T], Place<'f>);

/// Whether a member has only its own block to do with.
pub(super) fn is_only_own(stages: &[Stage], me: u32) -> bool {
    let rounds = stages.iter().flat_map(|stage| &stage.rounds);
    let mut transfers = rounds.flat_map(|round| round.sends.iter().chain(&round.receives));
    transfers.all(|transfer| transfer.blocks.iter().all(|run| *run == (me..me + 1)))
}

/// Does what is planned.
pub(super) fn run<T: Plain>(
    seat: &mut Seat,
    stages: &[Stage],
    work: &mut Work<'_, T>,
    combine: Option<Combine<'_, T>>,
) -> Result<(), GroupError> {
    for stage in stages {
        let len = work.data.len();
        if let Space::Copies(count, mine) = stage.space {
            let mut copies = zeroed::<T>(len * count as usize);
            let at = |copy: u32| copy as usize * len..(copy as usize + 1) * len;
            copies[at(mine)].swap_with_slice(work.data);
            run_rounds(seat, &stage.rounds, None, &mut copies, &at, combine)?;
            work.data.swap_with_slice(&mut copies[at(0)]);
            for copy in 1..count {
                if let Some(combine) = combine {
                    combine(work.data, &copies[at(copy)]);
                }
            }
            continue;
        }
        let blocks = work.blocks;
        let place = |block: u32| match stage.space {
            Space::Nothing | Space::Copies(..) => 0..0,
            Space::Whole => 0..len,
            Space::Parts(count) => part(len, count, block),
            Space::Members | Space::Pairs => blocks.range(block),
        };
        let elsewhere = work
            .from
            .map(|(from, blocks)| (from, move |block: u32| blocks.range(block)));
        let from: Option<From<'_, T>> = elsewhere
            .as_ref()
            .map(|(from, place)| (*from, place as Place<'_>));
        run_rounds(seat, &stage.rounds, from, work.data, &place, combine)?;
    }
    Ok(())
}

fn run_rounds<T: Plain>(
    seat: &mut Seat,
    rounds: &[Round],
    from: Option<From<'_, T>>,
    data: &mut [T],
    place: Place<'_>,
    combine: Option<Combine<'_, T>>,
) -> Result<(), GroupError> {
    let _call = seat.caller();
    for round in rounds {
        let came = run_round(seat, round, from, data, place)?;
        for (range, mut values, fold) in came {
            let known = &mut data[range];
            match (fold, combine) {
                (Fold::After, Some(combine)) => combine(known, &values),
                (Fold::Before, Some(combine)) => {
                    combine(&mut values, known);
                    known.swap_with_slice(&mut values);
                }
                _ => known.swap_with_slice(&mut values),
            }
        }
    }
    Ok(())
}

/// What came and does not just take the place of what was there.
type Came<T> = Vec<(Range<usize>, Vec<T>, Fold)>;

fn run_round<T: Plain>(
    seat: &mut Seat,
    round: &Round,
    from: Option<From<'_, T>>,
    data: &mut [T],
    place: Place<'_>,
) -> Result<Came<T>, GroupError> {
    let place_sent = from.map_or(place, |(_, place)| place);
    let sent = round.sends.iter().map(|of| elements(of, place_sent));
    let sent: Vec<Vec<Range<usize>>> = sent.collect();
    let received: Vec<Vec<Range<usize>>> = round
        .receives
        .iter()
        .map(|of| elements(of, place))
        .collect();
    let is_sent = |range: &Range<usize>| {
        let mut sent = sent.iter().flatten();
        from.is_none() && sent.any(|other| other.start < range.end && range.start < other.end)
    };
    let is_direct = |of: &Transfer, ranges: &[Range<usize>]| {
        of.fold == Fold::Replace && !ranges.iter().any(is_sent)
    };
    let directly: Vec<bool> = round
        .receives
        .iter()
        .zip(&received)
        .map(|(of, ranges)| is_direct(of, ranges))
        .collect();
    let wanted = received
        .iter()
        .zip(&directly)
        .filter(|(_, direct)| **direct);
    let wanted: Vec<Range<usize>> = wanted
        .flat_map(|(ranges, _)| ranges.iter().cloned())
        .collect();
    let (kept, mut targets) = carve(data, &wanted);
    let kept = from.map_or(kept, |(from, _)| vec![(0, from)]);
    let mut came = Vec::new();
    let head = seat.head();
    scope(|scope| {
        let mut posted = Vec::with_capacity(round.sends.len());
        for (send, ranges) in round.sends.iter().zip(&sent) {
            let Some(address) = seat.address(send.member)? else {
                continue;
            };
            let mut message = Message::new();
            message.pack_safer(&head);
            for range in ranges {
                message.pack_cheaper(find(&kept, range));
            }
            posted.push((send.member, scope.post(&address, message)));
        }
        for ((receive, ranges), direct) in round.receives.iter().zip(&received).zip(&directly) {
            let mut incoming = seat.receive(receive.member)?;
            for range in ranges {
                let unpacked = if *direct {
                    match targets.iter_mut().find(|(start, _)| *start == range.start) {
                        Some((_, target)) => incoming.unpack_express_into(*target),
                        None => Ok(()),
                    }
                } else {
                    incoming
                        .unpack_vec::<T>()
                        .map(|values| came.push((range.clone(), values, receive.fold)))
                };
                unpacked.map_err(|error| seat.not_unpacked(receive.member, &error))?;
            }
            let finished = incoming.finish();
            finished.map_err(|error| seat.not_unpacked(receive.member, &error))?;
        }
        for (member, posted) in posted {
            if let Err(error) = posted.wait() {
                seat.not_posted(member, &error)?;
            }
        }
        Ok(())
    })?;
    for (range, values, _) in &came {
        if values.len() != range.len() {
            let (has, wants) = (values.len(), range.len());
            return Err(seat.break_off(format!("{has} elements came where {wants} were wanted")));
        }
    }
    Ok(came)
}

/// The elements of a transfer's blocks, runs that follow each other as one; none that are empty.
fn elements(transfer: &Transfer, place: Place<'_>) -> Vec<Range<usize>> {
    let mut all: Vec<Range<usize>> = Vec::new();
    for range in transfer.blocks.iter().cloned().flatten().map(place) {
        match all.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ if range.is_empty() => (),
            _ => all.push(range),
        }
    }
    all
}

/// Slices of the data, each with where it begins: those that stay as they are, and those that are wanted.
type Carved<'d, T> = (Vec<(usize, &'d [T])>, Vec<(usize, &'d mut [T])>);

fn carve<'d, T>(data: &'d mut [T], wanted: &[Range<usize>]) -> Carved<'d, T> {
    let mut wanted: Vec<&Range<usize>> = wanted.iter().collect();
    wanted.sort_unstable_by_key(|range| range.start);
    let (mut kept, mut taken) = (Vec::new(), Vec::new());
    let (mut rest, mut at) = (data, 0);
    for range in wanted {
        let (before, behind) = rest.split_at_mut(range.start - at);
        let (target, behind) = behind.split_at_mut(range.len());
        kept.push((at, &*before));
        taken.push((range.start, target));
        (rest, at) = (behind, range.end);
    }
    kept.push((at, &*rest));
    (kept, taken)
}

/// The slice of a range that stays as it is.
fn find<'d, T>(kept: &[(usize, &'d [T])], range: &Range<usize>) -> &'d [T] {
    let mut kept = kept.iter();
    let holds = |(start, slice): &&(usize, &'d [T])| {
        *start <= range.start && range.end <= start + slice.len()
    };
    let found = kept.find(holds);
    found.map_or(&[], |(start, slice)| {
        &slice[range.start - start..range.end - start]
    })
}

/// So many zeros.
pub(super) fn zeroed<T: Plain>(len: usize) -> Vec<T> {
    let mut values = Vec::with_capacity(len);
    values.resize_with(len, T::new_zeroed);
    values
}

/// A copy of plain data.
pub(super) fn copy<T: Plain>(data: &[T]) -> Vec<T> {
    let mut values = zeroed(data.len());
    copy_into(&mut values, data);
    values
}

/// Copies plain data that are as long.
pub(super) fn copy_into<T: Plain>(into: &mut [T], data: &[T]) {
    into.as_mut_bytes().copy_from_slice(data.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_are_carved_into_what_stays_and_what_comes() {
        let mut data: Vec<u32> = (0..10).collect();
        let (kept, taken) = carve(&mut data, &[6..8, 1..3]);
        assert_eq!(find(&kept, &(3..5)), [3, 4]);
        assert_eq!(find(&kept, &(8..10)), [8, 9]);
        assert_eq!(find(&kept, &(0..1)), [0]);
        let taken: Vec<(usize, Vec<u32>)> = taken
            .into_iter()
            .map(|(at, of)| (at, of.to_vec()))
            .collect();
        assert_eq!(taken, [(1, vec![1, 2]), (6, vec![6, 7])]);
    }
}
