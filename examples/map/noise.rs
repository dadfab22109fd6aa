//! Smooth noise, cheap along a row of pixels.
//!
//! Random values stand on a lattice; between them lies a cubic B-spline, whose slopes are smooth too, so that hills can be
//! shaded. Along a row, what depends on the row is computed once for each column of the lattice, and a pixel costs four
//! multiplications. Positions are of the whole map: neighbouring tiles fit.

/// One octave: waves of about `wavelength` pixels, mostly between -1 and 1.
#[derive(Debug)]
pub(crate) struct Noise {
    wavelength: i32,
    seed: u32,
    /// How much each of four lattice values counts, by the offset from the second.
    weights: Vec<[f32; 4]>,
}

impl Noise {
    pub(crate) fn new(wavelength: i32, seed: u32) -> Self {
        let weights = (0..wavelength)
            .map(|offset| spline(offset as f32 / wavelength as f32))
            .collect();
        Self {
            wavelength,
            seed,
            weights,
        }
    }

    /// The values of row `y` from column `x` on.
    pub(crate) fn row(&self, x: i32, y: i32, values: &mut [f32]) {
        let wave = self.wavelength;
        let (cell, row_cell) = (x.div_euclid(wave), y.div_euclid(wave));
        let down = self.weights[y.rem_euclid(wave) as usize];
        let knot = |column: i32| {
            let at = |step: usize| down[step] * self.lattice(column, row_cell + step as i32 - 1);
            at(0) + at(1) + at(2) + at(3)
        };
        let mut knots = [knot(cell - 1), knot(cell), knot(cell + 1), knot(cell + 2)];
        let (mut rest, mut column, mut offset) = (values, cell, x.rem_euclid(wave) as usize);
        while !rest.is_empty() {
            let here = rest.len().min(wave as usize - offset);
            let (inside, after) = rest.split_at_mut(here);
            for (value, w) in inside.iter_mut().zip(&self.weights[offset..]) {
                *value = knots[0] * w[0] + knots[1] * w[1] + knots[2] * w[2] + knots[3] * w[3];
            }
            column += 1;
            knots = [knots[1], knots[2], knots[3], knot(column + 2)];
            (rest, offset) = (after, 0);
        }
    }

    fn lattice(&self, column: i32, row: i32) -> f32 {
        let mut hash = (column as u32).wrapping_mul(0x9e37_79b1)
            ^ (row as u32).wrapping_mul(0x85eb_ca77)
            ^ self.seed.wrapping_mul(0xc2b2_ae3d);
        hash = (hash ^ hash >> 15).wrapping_mul(0x2c1b_3c6d);
        hash = (hash ^ hash >> 12).wrapping_mul(0x297a_2d39);
        hash ^= hash >> 15;
        // The spline is a mean, which halves what it is made of.
        (hash as f32 / u32::MAX as f32 - 0.5) * 4.0
    }
}

/// The weights of a uniform cubic B-spline at a part of the way from its second value to its third.
fn spline(part: f32) -> [f32; 4] {
    let (square, cube) = (part * part, part * part * part);
    let left = 1.0 - part;
    [
        left * left * left / 6.0,
        (3.0 * cube - 6.0 * square + 4.0) / 6.0,
        (-3.0 * cube + 3.0 * square + 3.0 * part + 1.0) / 6.0,
        cube / 6.0,
    ]
}
