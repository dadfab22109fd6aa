//! The camera: a lens, sharp at one distance.

use super::hit::Ray;
use super::options::Options;
use super::random::Random;
use super::vector::Vector;

const PLACE: Vector = Vector(0.6, 2.35, 8.2);
const LOOKS_AT: Vector = Vector(0.0, 0.62, 0.0);
/// Half of the picture's height at distance 1.
const HALF_HEIGHT: f64 = 0.262;
/// Radius of the lens, and where it is sharp: at the spheres in front.
const LENS: f64 = 0.055;
const SHARP: f64 = 7.3;

/// A ray through a place of the picture, counted in pixels from its top left corner.
pub(crate) fn ray(x: f64, y: f64, options: &Options, random: &mut Random) -> Ray {
    let forward = (LOOKS_AT - PLACE).unit();
    let right = forward.cross(Vector::UP).unit();
    let up = right.cross(forward);
    let (width, height) = (f64::from(options.width), f64::from(options.height));
    let step = 2.0 * HALF_HEIGHT / height;
    let through = forward + right * ((x - width / 2.0) * step) - up * ((y - height / 2.0) * step);
    let (across, along) = random.in_circle();
    let aside = right * (across * LENS) + up * (along * LENS);
    Ray {
        from: PLACE + aside,
        along: (through * SHARP - aside).unit(),
    }
}
