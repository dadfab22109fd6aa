//! The land as a map: colours by height, light from the north-west, contour lines, roads and a grid.

use std::sync::LazyLock;

use super::jpeg;
use super::place::{Place, TILE};
use super::terrain::{Terrain, smooth};

type Colour = [f32; 3];

/// Metres above the sea, and the colour of the land there; below 0 it is water.
const COLOURS: [(f32, Colour); 12] = [
    (-700.0, [38.0, 74.0, 122.0]),
    (-250.0, [72.0, 122.0, 168.0]),
    (-40.0, [128.0, 180.0, 206.0]),
    (-0.5, [168.0, 212.0, 222.0]),
    (0.5, [226.0, 216.0, 176.0]),
    (25.0, [184.0, 204.0, 138.0]),
    (250.0, [140.0, 178.0, 108.0]),
    (600.0, [172.0, 178.0, 116.0]),
    (1000.0, [190.0, 160.0, 112.0]),
    (1450.0, [156.0, 128.0, 106.0]),
    (1800.0, [196.0, 190.0, 188.0]),
    (2050.0, [248.0, 249.0, 252.0]),
];
/// Metres of a pixel's side.
const PIXEL: f32 = 10.0;
/// Where the light comes from: east, south, up.
const LIGHT: Colour = [-0.52, -0.52, 0.68];
/// Slopes are shown steeper than they are, or lowlands would look flat.
const EXAGGERATION: f32 = 2.2;
/// Metres between two contour lines; each fifth is stronger.
const CONTOURS: f32 = 40.0;
const CONTOUR_INK: Colour = [112.0, 78.0, 46.0];
const ROAD: Colour = [255.0, 250.0, 214.0];
const ROAD_EDGE: Colour = [120.0, 84.0, 60.0];
/// Pixels from the middle of a road to its side.
const ROAD_WIDTH: f32 = 3.0;
/// Pixels between two lines of the grid: 10 km.
const GRID: u32 = 1000;
const GRID_INK: Colour = [40.0, 44.0, 60.0];

static LAND: LazyLock<Terrain> = LazyLock::new(Terrain::new);

/// A row, and a pixel more on each side.
const WIDTH: usize = TILE[0] as usize + 2;

/// Three rows, of which the middle one is drawn.
struct Rows([Vec<f32>; 3]);

/// The pixels of a tile, three bytes each.
pub(crate) fn draw(place: Place) -> Vec<u8> {
    let [left, top] = [0, 1].map(|axis| (place.0[axis] * TILE[axis]) as i32);
    let new_rows = |read: fn(&Terrain, i32, i32, &mut [f32])| {
        Rows([-1, 0, 1].map(|step| {
            let mut row = vec![0.0; WIDTH];
            read(&LAND, left - 1, top + step, &mut row);
            row
        }))
    };
    let mut heights = new_rows(Terrain::heights);
    let mut roads = new_rows(Terrain::roads);
    let mut pixels = Vec::with_capacity(jpeg::PIXELS);
    for y in top..top + TILE[1] as i32 {
        for column in 0..TILE[0] as usize {
            let on_grid = on_grid(left as u32 + column as u32) || on_grid(y as u32);
            let colour = pixel(heights.at(column), roads.at(column), on_grid);
            // Not `round`, which is a call into a library where processors may be old.
            pixels.extend(colour.map(|part| (part + 0.5) as u8));
        }
        heights.step(|row| LAND.heights(left - 1, y + 2, row));
        roads.step(|row| LAND.roads(left - 1, y + 2, row));
    }
    pixels
}

impl Rows {
    /// The value in this column of the middle row, and how much it grows to the east and to the south.
    fn at(&self, column: usize) -> [f32; 3] {
        let [above, here, below] = &self.0;
        let east = (here[column + 2] - here[column]) / 2.0;
        let south = (below[column + 1] - above[column + 1]) / 2.0;
        [here[column + 1], east, south]
    }

    fn step(&mut self, read: impl FnOnce(&mut [f32])) {
        self.0.rotate_left(1);
        read(&mut self.0[2]);
    }
}

fn on_grid(at: u32) -> bool {
    at % GRID < 2 && at >= GRID
}

fn pixel([height, east, south]: [f32; 3], road: [f32; 3], on_grid: bool) -> Colour {
    let slope = (east * east + south * south).sqrt();
    let mut colour = tint(height);
    if height > 0.0 {
        colour = colour.map(|part| part * light(east, south));
        let strong = distance_to_multiple(height, 5.0 * CONTOURS)
            < distance_to_multiple(height, CONTOURS) + 1.0;
        let away = distance_to_multiple(height, CONTOURS) / slope.max(1e-3);
        let ink = if strong { 0.62 } else { 0.34 };
        let width = if strong { 1.5 } else { 1.1 };
        colour = mix(colour, CONTOUR_INK, ink * (width - away).clamp(0.0, 1.0));
        colour = pave(colour, height, slope, road);
    } else {
        // A dark line along the shore.
        let away = -height / slope.max(1e-3);
        colour = mix(colour, COLOURS[0].1, 0.5 * (1.8 - away).clamp(0.0, 1.0));
    }
    let ink = if on_grid { 0.3 } else { 0.0 };
    mix(colour, GRID_INK, ink).map(|part| part.clamp(0.0, 255.0))
}

/// The road over the land, where it is low and not steep.
fn pave(colour: Colour, height: f32, slope: f32, [value, east, south]: [f32; 3]) -> Colour {
    let away = value.abs() / (east * east + south * south).sqrt().max(1e-6);
    if away > ROAD_WIDTH + 2.0 {
        return colour;
    }
    let passable =
        smooth((900.0 - height) / 200.0) * smooth((7.0 - slope) / 2.0) * smooth(height / 12.0);
    let cover = |side: f32| passable * (side + 0.5 - away).clamp(0.0, 1.0);
    let edged = mix(colour, ROAD_EDGE, cover(ROAD_WIDTH + 1.2));
    mix(edged, ROAD, cover(ROAD_WIDTH))
}

fn tint(height: f32) -> Colour {
    let after = COLOURS.iter().position(|(stop, _)| *stop > height);
    match after {
        Some(0) => COLOURS[0].1,
        None => COLOURS[COLOURS.len() - 1].1,
        Some(after) => {
            let ((from, before), (to, after)) = (COLOURS[after - 1], COLOURS[after]);
            mix(before, after, (height - from) / (to - from))
        }
    }
}

/// How bright a slope is beside flat land.
fn light(east: f32, south: f32) -> f32 {
    let (east, south) = (EXAGGERATION * east / PIXEL, EXAGGERATION * south / PIXEL);
    let length = (east * east + south * south + 1.0).sqrt();
    let facing = (LIGHT[2] - east * LIGHT[0] - south * LIGHT[1]) / length;
    0.42 + 0.58 * facing.max(0.0) / LIGHT[2]
}

/// How far a value above 0 is from a multiple of `step`.
fn distance_to_multiple(value: f32, step: f32) -> f32 {
    let nearest = (value / step + 0.5) as i32 as f32 * step;
    (value - nearest).abs()
}

fn mix(under: Colour, over: Colour, cover: f32) -> Colour {
    core::array::from_fn(|i| under[i] + (over[i] - under[i]) * cover)
}
