//! Which tiles there are, and who holds which.

use mizzen::Rank;

/// Columns and rows of pixels of a tile.
pub(crate) const TILE: [u32; 2] = [640, 480];

/// How many columns and rows of tiles a map has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Map {
    pub(crate) tiles: [u32; 2],
}

/// The column and row of a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Place(pub(crate) [u32; 2]);

impl Map {
    /// 9,600 × 9,600 pixels.
    pub(crate) const WHOLE: Self = Self { tiles: [15, 20] };

    /// Columns and rows of pixels.
    pub(crate) fn size(self) -> [u32; 2] {
        [0, 1].map(|axis| self.tiles[axis] * TILE[axis])
    }

    /// All tiles, row by row.
    pub(crate) fn places(self) -> impl Iterator<Item = Place> {
        let [columns, rows] = self.tiles;
        (0..rows).flat_map(move |row| (0..columns).map(move |column| Place([column, row])))
    }
}

impl Place {
    /// Who holds the tile. Neighbours are with different processes, so that any region is work for all of them.
    pub(crate) fn owner(self, ranks: u32) -> Rank {
        let [column, row] = self.0;
        let mut hash = (u64::from(row) << 32 | u64::from(column)).wrapping_add(SPREAD);
        // The last steps of splitmix64: each bit of the position changes half of the bits.
        hash = (hash ^ hash >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash = (hash ^ hash >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        Rank(((hash ^ hash >> 31) % u64::from(ranks)) as u32)
    }
}

/// The position 0, 0 has no bits to spread.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
