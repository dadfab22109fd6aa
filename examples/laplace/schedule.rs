//! In which order a worker computes its rows and talks to its neighbours.
//!
//! Red cells need the black ones around them from the iteration before, black ones the red ones of this iteration. The rows at the
//! borders come early, so that what is sent travels while the others are computed:
//!
//! 1. receive the black halos, which were sent half an iteration ago;
//! 2. red border rows, send them;
//! 3. a wave through the other rows: red of row r, then black of row r - 1, all of which the cache still holds;
//! 4. in the middle of the wave: receive the red halos, black border rows, send them.

use super::block::Colour::{self, Black, Red};

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Step {
    /// Compute one colour of one row.
    Relax(Colour, usize),
    /// Send one colour of the border rows to the neighbours.
    Send(Colour),
    /// Receive one colour of the halos.
    Receive(Colour),
}

/// The steps of one iteration of a worker that has so many rows, at least one.
pub(crate) fn iteration(rows: usize) -> Vec<Step> {
    let borders = |colour| {
        let last = (rows > 1).then_some(Step::Relax(colour, rows));
        [Step::Relax(colour, 1)].into_iter().chain(last)
    };
    let mut steps = vec![Step::Receive(Black)];
    steps.extend(borders(Red));
    steps.push(Step::Send(Red));
    if rows > 2 {
        // The wave comes here last, but the black border row below needs it in the middle.
        steps.push(Step::Relax(Red, rows - 1));
    }
    let wave = wave(rows);
    // The black border row above needs the first row of the wave.
    let middle = wave.len().div_ceil(2);
    steps.extend(&wave[..middle]);
    steps.push(Step::Receive(Red));
    steps.extend(borders(Black));
    steps.push(Step::Send(Black));
    steps.extend(&wave[middle..]);
    steps
}

/// Red of rows 2 to `rows - 2`, black of rows 2 to `rows - 1`.
fn wave(rows: usize) -> Vec<Step> {
    let red = (2..rows.saturating_sub(1)).map(|row| (row, Step::Relax(Red, row)));
    let black = (2..rows).map(|row| (row + 1, Step::Relax(Black, row)));
    let mut wave: Vec<_> = red.chain(black).collect();
    wave.sort_by_key(|(when, _)| *when);
    wave.into_iter().map(|(_, step)| step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_is_computed_once_from_neighbours_of_the_right_age() {
        for rows in 1..=12 {
            // How often the lines 0 (halo) to rows + 1 (halo) of each colour were computed or received.
            let mut age = [vec![0; rows + 2], vec![0; rows + 2]];
            for step in iteration(rows) {
                match step {
                    Step::Receive(Black) => assert_eq!(age[0], vec![0; rows + 2]),
                    Step::Receive(Red) => (age[0][0], age[0][rows + 1]) = (1, 1),
                    Step::Send(colour) => {
                        let age = &age[colour as usize];
                        assert_eq!((age[1], age[rows]), (1, 1), "{rows} rows, {step:?}");
                    }
                    Step::Relax(colour, row) => {
                        let other = &age[1 - colour as usize];
                        let needed = colour as usize;
                        assert_eq!(
                            other[row - 1..=row + 1],
                            [needed; 3],
                            "{rows} rows, {step:?}"
                        );
                        age[colour as usize][row] += 1;
                    }
                }
            }
            assert_eq!(age[0][1..=rows], vec![1; rows], "{rows} rows");
            assert_eq!(age[1][1..=rows], vec![1; rows], "{rows} rows");
        }
    }
}
