//! The land: how high it is, and where roads run.

use super::noise::Noise;

/// The whole land, of which rows can be asked for.
#[derive(Debug)]
pub(crate) struct Terrain {
    continents: Vec<(Noise, f32)>,
    mountains: Vec<(Noise, f32)>,
    hills: Vec<(Noise, f32)>,
    roads: Vec<(Noise, f32)>,
}

/// Metres: what lies between sea and land, mountains and hills at their highest.
const CONTINENT: f32 = 720.0;
const MOUNTAIN: f32 = 3300.0;
const HILL: f32 = 210.0;
/// More land than sea.
const LIFT: f32 = 0.04;
/// Crests are round within so much of the noise: edges would shimmer.
const ROUND: f32 = 0.05;

impl Terrain {
    pub(crate) fn new() -> Self {
        Self {
            continents: octaves(&[3200, 1600, 800, 400], 11, 0.5),
            mountains: octaves(&[1100, 550, 275, 138, 69, 35], 23, 0.5),
            hills: octaves(&[450, 225, 113, 57, 28], 37, 0.52),
            roads: octaves(&[1000, 300], 53, 0.22),
        }
    }

    /// Metres above the sea of row `y`, from column `x` on.
    pub(crate) fn heights(&self, x: i32, y: i32, heights: &mut [f32]) {
        let mut one = vec![0.0; heights.len()];
        let mut land = vec![LIFT; heights.len()];
        add(&self.continents, x, y, &mut one, &mut land);
        heights.fill(0.0);
        add(&self.hills, x, y, &mut one, heights);
        let (mut ridge, mut before) = (vec![0.0; heights.len()], vec![1.0; heights.len()]);
        for (noise, weight) in &self.mountains {
            noise.row(x, y, &mut one);
            for ((ridge, before), value) in ridge.iter_mut().zip(&mut before).zip(&one) {
                // A crest where the noise changes its sign; crests on crests, and smooth valleys.
                let crest = (1.0 - (value * value + ROUND * ROUND).sqrt()).max(0.0);
                let crest = crest * crest * *before;
                *ridge += weight * crest;
                *before = crest.sqrt();
            }
        }
        for ((height, land), ridge) in heights.iter_mut().zip(land).zip(ridge) {
            let inland = smooth((land - 0.05) / 0.75);
            let flat = 0.75 + 0.25 * smooth(land.abs() / 0.4);
            *height = CONTINENT * land + HILL * flat * *height + MOUNTAIN * inland * ridge;
        }
    }

    /// A value that is zero along roads, for the same pixels.
    pub(crate) fn roads(&self, x: i32, y: i32, values: &mut [f32]) {
        let mut one = vec![0.0; values.len()];
        values.fill(0.0);
        add(&self.roads, x, y, &mut one, values);
    }
}

/// From 0 to 1, without edges.
pub(crate) fn smooth(part: f32) -> f32 {
    let part = part.clamp(0.0, 1.0);
    part * part * (3.0 - 2.0 * part)
}

/// Octaves of noise, each with the part `decline` of the weight of the one before; the first has half of all.
fn octaves(wavelengths: &[i32], seed: u32, decline: f32) -> Vec<(Noise, f32)> {
    let weight = |octave: usize| decline.powi(octave as i32) * 0.5;
    let octave = |(number, wavelength): (usize, &i32)| {
        (
            Noise::new(*wavelength, seed + number as u32),
            weight(number),
        )
    };
    wavelengths.iter().enumerate().map(octave).collect()
}

fn add(octaves: &[(Noise, f32)], x: i32, y: i32, one: &mut [f32], sum: &mut [f32]) {
    for (noise, weight) in octaves {
        noise.row(x, y, one);
        for (sum, value) in sum.iter_mut().zip(&*one) {
            *sum += weight * value;
        }
    }
}
