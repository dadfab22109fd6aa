//! What was planned before.

use std::collections::HashMap;
use std::sync::Arc;

use mizzen_proto::group::cost::choose;
use mizzen_proto::group::plan::{Operation, Order, Stage, stages, ways};

use super::error::GroupError;
use super::probing::costs_for;
use super::seat::Seat;

/// What was planned before.
#[derive(Default)]
pub(super) struct Plans(HashMap<(Operation, Order, u32), Arc<[Stage]>>);

impl Plans {
    /// More are not remembered.
    const MOST: usize = 256;

    /// How a member goes about an operation on so many bytes.
    pub(super) fn stages(
        &mut self,
        seat: &mut Seat,
        operation: Operation,
        order: Order,
        bytes: usize,
    ) -> Result<Arc<[Stage]>, GroupError> {
        // All members plan for the same length: that of a power of two.
        let magnitude = bytes.max(1).next_power_of_two().trailing_zeros();
        let key = (operation, order, magnitude);
        if let Some(known) = self.0.get(&key) {
            return Ok(Arc::clone(known));
        }
        let layout = Arc::clone(&seat.roster.layout);
        let way = match ways(&layout, operation, order)[..] {
            [only] => Some(only),
            ref several => match seat.choice.forced.filter(|way| several.contains(way)) {
                Some(forced) => Some(forced),
                None => {
                    let costs = costs_for(seat, operation)?;
                    choose(&layout, operation, order, 1 << magnitude, &costs)
                }
            },
        };
        let layout = &layout;
        let planned = way.map(|way| stages(layout, seat.me, operation, order, way));
        let planned: Arc<[Stage]> = planned.unwrap_or_default().into();
        if self.0.len() >= Self::MOST {
            self.0.clear();
        }
        self.0.insert(key, Arc::clone(&planned));
        Ok(planned)
    }

    /// What counts has changed.
    pub(super) fn forget(&mut self) {
        self.0.clear();
    }
}
