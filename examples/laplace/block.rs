//! Some rows of the plate, and the halos: copies of the rows of others above and below them.
//!
//! Cells are coloured like a chessboard, red where row + column is even. A cell's neighbours all have the other colour, so the
//! cells of one colour can be computed in any order, and the result is the same however the rows are divided. The two colours
//! are kept in separate arrays: what is computed together then lies together.
//!
//! In a row, cell `k` of a colour is in column `2 k + shift`, where the shift is 0 or 1 by colour and row. Above and below
//! it are the cells `k` of the other colour; left and right of it are `k + shift - 1` and `k + shift` of its own row.

use core::ops::Range;

use super::{kernel, plate};

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Colour {
    Red,
    Black,
}

/// Which of `size` rows, from 0, are the share of one of `parts`. The shares of the threads of a process are, together, that
/// process's among all.
pub(crate) fn share(size: usize, part: usize, parts: usize) -> Range<usize> {
    part * size / parts..(part + 1) * size / parts
}

pub(crate) struct Block {
    size: usize,
    /// The plate's number of our halo above; our rows follow it.
    halo_above: usize,
    rows: usize,
    /// Cells of a colour in a row. If the plate has an odd number of columns, one colour of each row has one less.
    half: usize,
    red: Vec<f64>,
    black: Vec<f64>,
}

impl Block {
    /// The share of one of `workers` in a plate of `size` rows, as it is at the start.
    pub(crate) fn new(size: usize, worker: usize, workers: usize) -> Self {
        let share = share(size, worker, workers);
        let half = (size + 2).div_ceil(2);
        let mut block = Self {
            size,
            halo_above: share.start,
            rows: share.len(),
            half,
            red: vec![0.0; (share.len() + 2) * half],
            black: vec![0.0; (share.len() + 2) * half],
        };
        for row in 0..block.rows + 2 {
            for column in 0..size + 2 {
                let temperature = plate::temperature(block.halo_above + row, column, size);
                *block.cell(row, column) = temperature;
            }
        }
        block
    }

    /// Computes one colour of one row (1 is our first).
    pub(crate) fn relax(&mut self, colour: Colour, row: usize, omega: f64) {
        let (cells, [above, same, below]) = self.neighbourhood(colour, row);
        kernel::relax(cells, above, below, same, omega);
    }

    /// As [`relax`](Self::relax), and returns the largest change of a cell.
    pub(crate) fn relax_measured(&mut self, colour: Colour, row: usize, omega: f64) -> f64 {
        let (cells, [above, same, below]) = self.neighbourhood(colour, row);
        kernel::relax_measured(cells, above, below, same, omega)
    }

    /// One colour of a row, edges included.
    pub(crate) fn line(&self, colour: Colour, row: usize) -> &[f64] {
        let cells = match colour {
            Colour::Red => &self.red,
            Colour::Black => &self.black,
        };
        &cells[row * self.half..][..self.half]
    }

    pub(crate) fn line_mut(&mut self, colour: Colour, row: usize) -> &mut [f64] {
        let cells = match colour {
            Colour::Red => &mut self.red,
            Colour::Black => &mut self.black,
        };
        &mut cells[row * self.half..][..self.half]
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Our rows, column by column, edges included.
    pub(crate) fn whole_rows(&self) -> impl Iterator<Item = Vec<f64>> {
        (1..=self.rows).map(|row| {
            let columns = 0..self.size + 2;
            let cells = columns.map(|column| self.line(self.colour(row, column), row)[column / 2]);
            cells.collect()
        })
    }

    /// A number that nearly every difference in a bit of a cell changes. Those of all blocks, added, are the plate's.
    pub(crate) fn fingerprint(&self) -> u64 {
        let mut sum = 0u64;
        for (row, cells) in (self.halo_above + 1..).zip(self.whole_rows()) {
            for (column, cell) in cells.into_iter().enumerate().skip(1).take(self.size) {
                let place = (row * (self.size + 2) + column) as u64;
                sum = sum.wrapping_add(cell.to_bits().wrapping_mul(2 * place + 1));
            }
        }
        sum
    }

    /// The inner cells of one colour of one row, and the lines of the other colour above, beside and below them, of which
    /// the first cell is that of the first inner cell (beside: left of it).
    fn neighbourhood(&mut self, colour: Colour, row: usize) -> (&mut [f64], [&[f64]; 3]) {
        let (own, other) = match colour {
            Colour::Red => (&mut self.red, &self.black),
            Colour::Black => (&mut self.black, &self.red),
        };
        let half = self.half;
        let shift = (self.halo_above + row + colour as usize) % 2;
        // With shift 0 the first cell is one of the edge.
        let (first, count) = (1 - shift, (self.size + shift) / 2);
        let start = row * half;
        let cells = &mut own[start + first..][..count];
        let above = &other[start - half + first..][..count];
        let below = &other[start + half + first..][..count];
        (cells, [above, &other[start..][..=count], below])
    }

    fn cell(&mut self, row: usize, column: usize) -> &mut f64 {
        let colour = self.colour(row, column);
        &mut self.line_mut(colour, row)[column / 2]
    }

    fn colour(&self, row: usize, column: usize) -> Colour {
        match (self.halo_above + row + column) % 2 {
            0 => Colour::Red,
            _ => Colour::Black,
        }
    }
}
