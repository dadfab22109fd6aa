//! By which means members do an operation: through memory if they are on one host, otherwise by messages. All choose alike, from what all know alike.

use std::sync::Arc;

use mizzen_core::service::{CoreSet, TRAY_PLACE, TrayPlace, own_cores};
use mizzen_proto::group::plan::{Operation, Order, Shape, Way, stages};

use super::error::GroupError;
use super::run::{Blocks, Work, run};
use super::seat::{Found, Seat};
use super::slates::MOST_BYTES;
use super::trays::places;

/// By which means an operation is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Means {
    /// What each has fits into a line of its slate.
    Lines,
    /// It goes through the trays, in parts.
    Trays,
    Messages,
}

/// By which means an operation is done on so many bytes: of each member's block where each has its own, otherwise of all data.
pub(super) fn choose<T>(
    seat: &mut Seat,
    operation: Operation,
    bytes: usize,
) -> Result<Means, GroupError> {
    if seat.find_slates()? == Found::Now {
        // Nobody leaves before all others have its slate mapped.
        meet(seat)?;
        share_cores(seat)?;
    }
    // Who wants a certain way of messages wants messages.
    if seat.slates.is_none() || seat.choice.forced.is_some() || align_of::<T>() > align_of::<u64>()
    {
        return Ok(Means::Messages);
    }
    let is_for_one = matches!(
        operation,
        Operation::Scatter(_) | Operation::AllToAll | Operation::ReduceScatter
    );
    if bytes <= MOST_BYTES && !is_for_one {
        return Ok(Means::Lines);
    }
    let fits = size_of::<T>() * places(operation, seat.roster.size() as usize) <= TRAY_PLACE;
    if fits && has_trays(seat)? {
        return Ok(Means::Trays);
    }
    Ok(Means::Messages)
}

/// Waits for all, by messages.
#[cold]
fn meet(seat: &mut Seat) -> Result<(), GroupError> {
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
    run(seat, &meeting, &mut nothing, None)
}

/// Members tell each other where they may run: those that are bound do not see each other's cores.
#[cold]
fn share_cores(seat: &mut Seat) -> Result<(), GroupError> {
    let all = seat.shown_by_all(&own_cores())?;
    let either = |set: CoreSet, more: &CoreSet| [0, 1, 2].map(|word| set[word] | more[word]);
    let all = all.iter().fold([0; 3], either);
    if let Some(slates) = seat.slates.as_mut() {
        slates.share_cores(all);
    }
    Ok(())
}

/// Whether all members have trays, which they make when they need them first. The same at all.
fn has_trays(seat: &mut Seat) -> Result<bool, GroupError> {
    if !core::mem::replace(&mut seat.has_looked_for_trays, true) {
        open_trays(seat)?;
    }
    Ok(seat
        .slates
        .as_ref()
        .is_some_and(|slates| slates.have_trays()))
}

/// Members make trays, tell where they are, open those of all, and tell whether they could.
#[cold]
fn open_trays(seat: &mut Seat) -> Result<(), GroupError> {
    let own = seat.slates.as_mut().and_then(|slates| slates.make_tray());
    let told = own.map_or([0; 3], |[slab, offset]| [1, slab, offset]);
    let others = seat.shown_by_all(&told)?;
    let place = |told: &[u64; 3]| -> Option<TrayPlace> {
        let [is_there, slab, offset] = *told;
        (is_there == 1).then_some([slab, offset])
    };
    let places: Vec<_> = others.iter().map(place).collect();
    let slates = seat.slates.as_mut();
    let is_open = slates.is_some_and(|slates| slates.open_trays(&places));
    let are_open = seat.shown_by_all(&[u64::from(is_open), 0, 0])?;
    if let (Some(slates), true) = (
        seat.slates.as_mut(),
        are_open.iter().any(|open| open[0] != 1),
    ) {
        slates.close_trays();
    }
    Ok(())
}
