//! Calls to a service: an empty one through typed functions, or with a body whose size only the message tells, there and back; or with lent
//! buffers both ways.

use super::alternate::{self, Pattern};
use super::found::Found;
use super::messages::floor;
use crate::bench::carrier::Carrier;
use crate::bench::figures::quantile;
use crate::bench::ours::calls::{Bodies, Buffers, Calling, Empty};
use crate::bench::side::Side;

/// The floor of an empty call, and of one whose buffers are lent: a line with eight bytes, there and back.
const LINE: usize = 8;

pub(crate) fn measure(side: &mut Side, size: usize) -> anyhow::Result<Found> {
    let lent = side.plan.variant.lent;
    let (mut floor, floor_name) = floor(side, if size == 0 || lent { LINE } else { size })?;
    let (inbox, other) = side.mailboxes()?;
    let in_flight = side.plan.variant.in_flight;
    let deck = &side.deck;
    let mut ours: Box<dyn Carrier> = match (side.is_first(), size, lent) {
        (true, 0, _) => Box::new(Calling::new(Empty::calling(deck, in_flight)?, other)),
        (true, _, true) => Box::new(Calling::new(Buffers::calling(deck, size)?, other)),
        (true, _, false) => Box::new(Calling::new(Bodies::calling(deck, size)?, other)),
        (false, 0, _) => Box::new(Empty::serving(deck, inbox)?),
        (false, _, true) => Box::new(Buffers::serving(deck, inbox, size)?),
        (false, _, false) => Box::new(Bodies::serving(deck, inbox, size)?),
    };
    let alternated = alternate::alternate(side, Pattern::PingPong, &mut *floor, &mut *ours)?;
    side.meeting.meet();
    // Both are told as round trips: that is what a caller waits for.
    let runs = alternated.runs.map(|one_way| 2.0 * one_way);
    let mut figures = runs.figures(&side.plan, "ns", floor_name);
    figures.size = Some(size);
    figures.rate_per_s = Some(1e9 / figures.value);
    if in_flight == 0 {
        figures.p50_ns = Some(2.0 * quantile(&alternated.times, 0.5));
        figures.p99_ns = Some(2.0 * quantile(&alternated.times, 0.99));
    }
    Ok(Found { runs, figures })
}
