//! The mathematics: how fast a point escapes.

use super::options::Options;
use super::palette;
use super::slices::Slice;

/// The middle of the picture, and its height in the complex plane.
const CENTRE: (f64, f64) = (-0.6, 0.0);
const HEIGHT: f64 = 2.6;
/// Each pixel is the mean of so many points in each direction: smooth edges.
const SAMPLES: u32 = 2;
/// Far outside, the smooth count is smoother.
const ESCAPE: f64 = 256.0;

/// The pixels of a slice, three bytes each.
pub(crate) fn render(slice: Slice, options: &Options) -> Vec<u8> {
    let mut pixels = Vec::with_capacity(3 * slice.rows as usize * options.width as usize);
    for y in slice.first..slice.first + slice.rows {
        for x in 0..options.width {
            pixels.extend(pixel_at(x, y, options));
        }
    }
    pixels
}

fn pixel_at(x: u32, y: u32, options: &Options) -> [u8; 3] {
    let step = HEIGHT / f64::from(options.height * SAMPLES);
    let mut sum = [0.0; 3];
    for sample in 0..SAMPLES * SAMPLES {
        let right = f64::from(x * SAMPLES + sample % SAMPLES) + 0.5;
        let down = f64::from(y * SAMPLES + sample / SAMPLES) + 0.5;
        let re = CENTRE.0 + (right - f64::from(options.width * SAMPLES) / 2.0) * step;
        let im = CENTRE.1 + (down - f64::from(options.height * SAMPLES) / 2.0) * step;
        let colour = palette::colour(escape(re, im, options.iterations));
        for (sum, part) in sum.iter_mut().zip(colour) {
            *sum += part / f64::from(SAMPLES * SAMPLES);
        }
    }
    sum.map(palette::to_byte)
}

/// After how many steps, with a fraction, the point escapes; `None` if it does not.
///
/// It stays a function of its own: inlined into the loop over the points of a pixel, the compiler keeps `x` and `y` in one
/// register and needs shuffles to multiply them, so that each step takes a third longer.
#[inline(never)]
fn escape(re: f64, im: f64, iterations: u32) -> Option<f64> {
    if in_heart_or_largest_bulb(re, im) {
        return None;
    }
    let (mut x, mut y) = (0.0f64, 0.0f64);
    for step in 0..iterations {
        let (xx, yy) = (x * x, y * y);
        if xx + yy > ESCAPE * ESCAPE {
            let overshoot = ((xx + yy).ln() / 2.0 / ESCAPE.ln()).log2();
            return Some(f64::from(step) - overshoot);
        }
        y = 2.0 * x * y + im;
        x = xx - yy + re;
    }
    None
}

/// Most points that never escape lie in two regions that have formulas.
fn in_heart_or_largest_bulb(re: f64, im: f64) -> bool {
    let q = (re - 0.25).powi(2) + im * im;
    q * (q + re - 0.25) <= 0.25 * im * im || (re + 1.0).powi(2) + im * im <= 0.0625
}
