//! The plate: what its edges are held at, and how warm it is at the start.
//!
//! Rows and columns 0 and `size + 1` are the edges. They are computed without functions that differ between systems, so that
//! the same plate is heated everywhere, bit for bit.

/// The whole plate's temperature at the start. Not 0: what spreads from the edges then becomes so small before it
/// vanishes that processors compute it a hundred times slower (subnormal numbers).
pub(crate) const START: f64 = 20.0;
/// No temperature of the plate is outside.
pub(crate) const COLDEST: f64 = 0.0;
pub(crate) const HOTTEST: f64 = 100.0;

/// The temperature of a cell at the start; that of a cell of an edge stays.
pub(crate) fn temperature(row: usize, column: usize, size: usize) -> f64 {
    let end = size + 1;
    let along = |place: usize| place as f64 / end as f64;
    if row == 0 {
        HOTTEST * bumps(1.0, along(column))
    } else if column == 0 {
        60.0 * bumps(2.0, along(row))
    } else if column == end {
        80.0 * bumps(3.0, along(row))
    } else if row == end {
        40.0 * bumps(1.0, along(column))
    } else {
        START
    }
}

/// So many equal hills along an edge, from 0 to 1 and back each.
fn bumps(count: f64, along: f64) -> f64 {
    let turn = count * along;
    let part = turn - turn.floor();
    16.0 * (part * (1.0 - part)) * (part * (1.0 - part))
}
