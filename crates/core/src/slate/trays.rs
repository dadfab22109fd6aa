//! What does not fit into a line of a slate: each member has a tray, with a place for each line, which the others map and read in place.

use std::sync::Arc;

use mizzen_lane::Tray;

use crate::endpoint::Endpoint;
use crate::link::MemoryLink;
use crate::memory::{Block, Purpose, SlabId};
use crate::rank::SLATE_LINES;

/// Bytes of one place of a tray.
pub const TRAY_PLACE: usize = 128 << 10;

/// Where a member's tray is, as the others are told: slab and offset.
pub type TrayPlace = [u64; 2];

/// The trays of all members, as one of them has them.
#[derive(Debug)]
pub(super) struct Trays {
    /// By member.
    pub(super) all: Vec<Tray>,
    /// The memory of the own one.
    _own: Block,
}

/// Memory for a tray, which the peers behind these links are shown. `None` if there is none left, or one of them is gone.
pub(super) fn make<'l>(
    process: &Endpoint,
    links: impl Iterator<Item = &'l Arc<MemoryLink>>,
) -> Option<(Block, TrayPlace)> {
    let of = &process.links;
    let block = of.try_take_block(TRAY_PLACE * SLATE_LINES, Purpose::Tray);
    let block = block.ok().flatten()?;
    for link in links {
        link.try_show_slab(&of.arena, block.slab()).ok()?;
    }
    let ticket = block.ticket();
    Some((block, [u64::from(ticket.slab), ticket.offset]))
}

impl Trays {
    /// The own tray, and those of the others, each at the place that its owner told and behind its link, if it is of another process. `None` if one is not there.
    pub(super) fn open<'l>(
        process: &Endpoint,
        own: Block,
        me: usize,
        others: impl Iterator<Item = (Option<&'l Arc<MemoryLink>>, Option<TrayPlace>)>,
    ) -> Option<Self> {
        let mut all = Vec::new();
        for (number, (link, place)) in others.enumerate() {
            if number == me {
                all.push(Tray::of(&own, SLATE_LINES, TRAY_PLACE)?);
                continue;
            }
            let [slab, offset] = place?;
            let (slab, offset) = (u32::try_from(slab).ok()?, usize::try_from(offset).ok()?);
            let region = match link {
                Some(link) => link.slab(slab).ok()?,
                None => process.links.arena.slab(SlabId(slab))?.region,
            };
            all.push(Tray::new(region, offset, SLATE_LINES, TRAY_PLACE)?);
        }
        Some(Self { all, _own: own })
    }
}
