//! Tiles of the picture: what the pool hands out.

use serde::{Deserialize, Serialize};

use super::options::Options;
use super::random::Random;
use super::scene::Scene;
use super::vector::Vector;
use super::{camera, trace};

/// Pixels of a tile's side. A tile of sky takes a hundredth of one of glass: small ones even out.
const SIDE: u32 = 32;

/// A part of the picture.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Tile {
    pub(crate) x: u32,
    pub(crate) y: u32,
    pub(crate) width: u32,
    pub(crate) height: u32,
}

impl Tile {
    /// All tiles of a picture, from the top.
    pub(crate) fn all(options: &Options) -> Vec<Self> {
        let tile = |x: u32, y: u32| Self {
            x,
            y,
            width: SIDE.min(options.width - x),
            height: SIDE.min(options.height - y),
        };
        let columns = || (0..options.width).step_by(SIDE as usize);
        let rows = (0..options.height).step_by(SIDE as usize);
        rows.flat_map(|y| columns().map(move |x| tile(x, y)))
            .collect()
    }

    /// Its pixels, three bytes each.
    pub(crate) fn render(self, scene: &Scene, options: &Options) -> Vec<u8> {
        let rows = self.y..self.y + self.height;
        let places = rows.flat_map(|y| (self.x..self.x + self.width).map(move |x| (x, y)));
        places
            .flat_map(|(x, y)| shown(pixel(x, y, scene, options)))
            .collect()
    }
}

/// The whole picture, three bytes a pixel, of the pixels of [all](Tile::all) its tiles.
pub(crate) fn assemble(options: &Options, tiles: &[impl AsRef<[u8]>]) -> Vec<u8> {
    let row_bytes = 3 * options.width as usize;
    let mut pixels = vec![0; row_bytes * options.height as usize];
    for (tile, part) in Tile::all(options).iter().zip(tiles) {
        let rows = pixels.chunks_exact_mut(row_bytes).skip(tile.y as usize);
        for (row, part) in rows.zip(part.as_ref().chunks_exact(3 * tile.width as usize)) {
            row[3 * tile.x as usize..][..part.len()].copy_from_slice(part);
        }
    }
    pixels
}

/// The mean of the rays through a pixel, each in a field of its own of a grid as far as they fill one.
fn pixel(x: u32, y: u32, scene: &Scene, options: &Options) -> Vector {
    let mut random = Random::of_pixel(x, y);
    let fields = options.samples.isqrt();
    let mut sum = Vector::ZERO;
    for sample in 0..options.samples {
        let mut inside = [random.next(), random.next()];
        if sample < fields * fields {
            let field = [sample % fields, sample / fields].map(f64::from);
            inside = [0, 1].map(|axis| (field[axis] + inside[axis]) / f64::from(fields));
        }
        let place = [f64::from(x) + inside[0], f64::from(y) + inside[1]];
        let ray = camera::ray(place[0], place[1], options, &mut random);
        // A lamp in a mirror may be a hundred times brighter than a screen: one ray shall not decide a pixel.
        sum = sum + trace::trace(scene, &ray, &mut random).at_most(BRIGHTEST);
    }
    sum * (1.0 / f64::from(options.samples))
}

const BRIGHTEST: f64 = 6.0;

/// Light as bytes of a picture: bright light is compressed as film does (Narkowicz's fit of ACES), and all is brighter in the
/// dark, as screens expect it.
fn shown(light: Vector) -> [u8; 3] {
    [light.0, light.1, light.2].map(|light| {
        let film = light * (2.51 * light + 0.03) / (light * (2.43 * light + 0.59) + 0.14);
        (255.0 * film.clamp(0.0, 1.0).powf(1.0 / 2.2)).round() as u8
    })
}
