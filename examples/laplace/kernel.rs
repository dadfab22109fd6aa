//! The inner loop: one colour of one row.
//!
//! All slices run side by side, so that the compiler checks their lengths once and computes several cells at a time.

/// So many largest changes are kept side by side: one would make each cell wait for the one before.
const LANES: usize = 4;

/// Moves each cell towards the mean of its neighbours, `omega` times as far. `same` are the neighbours in the same row: one
/// more than cells, that left of the first cell first.
pub(crate) fn relax(cells: &mut [f64], above: &[f64], below: &[f64], same: &[f64], omega: f64) {
    let count = cells.len();
    let (above, below) = (&above[..count], &below[..count]);
    let (left, right) = (&same[..count], &same[1..=count]);
    for i in 0..count {
        cells[i] = relaxed(cells[i], above[i] + below[i], left[i] + right[i], omega);
    }
}

/// As [`relax`], and returns the largest change of a cell.
pub(crate) fn relax_measured(
    cells: &mut [f64],
    above: &[f64],
    below: &[f64],
    same: &[f64],
    omega: f64,
) -> f64 {
    let mut largest = [0.0; LANES];
    let mut from = 0;
    // The last turn may be shorter.
    for cells in cells.chunks_mut(LANES) {
        let count = cells.len();
        let (above, below) = (&above[from..from + count], &below[from..from + count]);
        let (left, right) = (&same[from..from + count], &same[from + 1..from + 1 + count]);
        for i in 0..count {
            let new = relaxed(cells[i], above[i] + below[i], left[i] + right[i], omega);
            let change = (new - cells[i]).abs();
            largest[i] = if change > largest[i] {
                change
            } else {
                largest[i]
            };
            cells[i] = new;
        }
        from += count;
    }
    largest.into_iter().fold(0.0, f64::max)
}

/// The order of the sums is part of the result: every program that is to agree bit for bit has the same.
#[inline(always)]
fn relaxed(cell: f64, vertical: f64, horizontal: f64, omega: f64) -> f64 {
    cell + omega * (0.25 * (vertical + horizontal) - cell)
}
