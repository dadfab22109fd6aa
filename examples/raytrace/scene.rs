//! What there is to see: spheres on a chequered floor under an evening sky.

use super::vector::Vector;

/// What a surface does with light.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Surface {
    /// Scatters its colour, and mirrors a little as varnish does.
    Varnished(Vector),
    /// Mirrors, tinted.
    Metal(Vector),
    Glass,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Sphere {
    pub(crate) middle: Vector,
    pub(crate) radius: f64,
    pub(crate) surface: Surface,
}

/// A lamp: a sphere that shines.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Light {
    pub(crate) middle: Vector,
    pub(crate) radius: f64,
    /// How bright it looks.
    pub(crate) colour: Vector,
}

#[derive(Debug)]
pub(crate) struct Scene {
    pub(crate) spheres: Vec<Sphere>,
    pub(crate) lights: [Light; 2],
}

const FLOOR: [Vector; 2] = [Vector(0.72, 0.70, 0.66), Vector(0.055, 0.07, 0.105)];
const HORIZON: Vector = Vector(0.86, 0.50, 0.30);
const ZENITH: Vector = Vector(0.08, 0.17, 0.42);
const SILVER: Vector = Vector(0.93, 0.94, 0.96);
const GOLD: Vector = Vector(1.00, 0.74, 0.34);
/// Small spheres that are tried; those that touch another are left out.
const SMALL: u32 = 110;
/// Turned by this each, no two small spheres stand in line: the golden angle.
const TURN: f64 = 2.399_963_229_728_653;

impl Scene {
    pub(crate) fn new() -> Self {
        let mut scene = Self {
            spheres: Vec::new(),
            lights: [
                Light {
                    middle: Vector(-6.0, 8.5, 5.0),
                    radius: 1.3,
                    colour: Vector(1.0, 0.84, 0.64) * 26.0,
                },
                Light {
                    middle: Vector(7.5, 5.0, 3.5),
                    radius: 0.9,
                    colour: Vector(0.50, 0.68, 1.0) * 13.0,
                },
            ],
        };
        scene.stand(0.0, -0.3, 1.25, Surface::Metal(SILVER));
        scene.stand(-1.75, 1.35, 0.62, Surface::Glass);
        scene.stand(1.65, 1.30, 0.62, Surface::Metal(GOLD));
        scene.stand(
            -2.75,
            -0.75,
            0.80,
            Surface::Varnished(Vector(0.72, 0.07, 0.06)),
        );
        scene.stand(
            2.75,
            -0.95,
            0.85,
            Surface::Varnished(Vector(0.05, 0.30, 0.34)),
        );
        for number in 0..SMALL {
            let angle = f64::from(number) * TURN;
            let far = 1.1 + 0.52 * f64::from(number).sqrt();
            let radius = 0.15 + 0.11 * (0.5 + 0.5 * (f64::from(number) * 1.7).sin());
            let surface = match number % 7 {
                3 => Surface::Glass,
                5 => Surface::Metal(SILVER),
                _ => Surface::Varnished(hue(f64::from(number) * 0.137)),
            };
            scene.stand(far * angle.cos(), far * angle.sin(), radius, surface);
        }
        scene
    }

    /// The colour of the sky in a direction.
    pub(crate) fn sky(&self, direction: Vector) -> Vector {
        let up = direction.1.clamp(0.0, 1.0);
        HORIZON.mix(ZENITH, 1.0 - (1.0 - up).powi(7))
    }

    /// The light that the whole sky sheds on a surface that looks in a direction.
    pub(crate) fn skylight(&self, normal: Vector) -> Vector {
        let up = 0.5 + 0.5 * normal.1;
        (HORIZON * 0.5).mix(ZENITH.mix(HORIZON, 0.35), up) * (0.35 + 0.45 * up)
    }

    /// The colour of the floor at a place of it.
    pub(crate) fn floor(&self, place: Vector) -> Vector {
        let field = (place.0.floor() + place.2.floor()) as i64;
        FLOOR[field.rem_euclid(2) as usize]
    }

    /// Puts a sphere on the floor, if there is room.
    fn stand(&mut self, x: f64, z: f64, radius: f64, surface: Surface) {
        let middle = Vector(x, radius, z);
        let touches =
            |other: &Sphere| (other.middle - middle).length() < other.radius + radius + 0.03;
        if !self.spheres.iter().any(touches) {
            self.spheres.push(Sphere {
                middle,
                radius,
                surface,
            });
        }
    }
}

/// Colours around the wheel, none of them loud.
fn hue(turn: f64) -> Vector {
    let part = |shift: f64| {
        let wave = 0.5 + 0.5 * (core::f64::consts::TAU * (turn + shift)).cos();
        0.04 + 0.70 * wave * wave
    };
    Vector(part(0.0), part(0.33), part(0.67))
}
