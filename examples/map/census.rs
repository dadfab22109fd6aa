//! The beginning and the end: rank 0 learns what each process holds, and tells it when it is no longer needed.

use core::fmt;

use mizzen::group::Group;
use mizzen::{Deck, Result};

use super::tiles::Tiles;

/// What all processes hold, as rank 0 heard.
#[derive(Debug)]
pub(crate) struct Census {
    tiles_of: Vec<u64>,
    bytes: u64,
    all: Group,
}

/// Rank 0 returns when all have drawn their tiles. The others tell it, and return `None` when they are dismissed; their workers
/// answer meanwhile.
pub(crate) fn take(deck: &Deck, tiles: &Tiles) -> Result<Option<Census>> {
    let mut all = deck.group()?;
    let ours = [tiles.count() as u64, tiles.bytes() as u64];
    let Some(held) = all.gather(0, &[ours])? else {
        all.barrier()?;
        return Ok(None);
    };
    Ok(Some(Census {
        tiles_of: held.all().iter().map(|[tiles, _]| *tiles).collect(),
        bytes: held.all().iter().map(|[_, bytes]| bytes).sum(),
        all,
    }))
}

impl Census {
    /// Nobody is asked for tiles any more.
    pub(crate) fn dismiss(mut self) -> Result<()> {
        self.all.barrier()
    }
}

impl fmt::Display for Census {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tiles: u64 = self.tiles_of.iter().sum();
        let mega = self.bytes as f64 / 1e6;
        write!(
            f,
            "{tiles} tiles of {mega:.1} MB, by rank {:?}",
            self.tiles_of
        )
    }
}
