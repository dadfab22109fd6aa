//! Lamps: shining spheres, whose shadows have soft edges.

use super::hit::{Hit, Ray};
use super::random::Random;
use super::scene::{Light, Scene};
use super::vector::Vector;

impl Light {
    /// The light that falls on a surface, by one ray to a random place of the lamp's disc.
    fn on(&self, scene: &Scene, hit: &Hit, random: &mut Random) -> Vector {
        let to_middle = self.middle - hit.place;
        let (side, other) = to_middle.unit().sides();
        let (x, y) = random.in_circle();
        let to = to_middle + side * (x * self.radius) + other * (y * self.radius);
        let distance = to.length();
        let along = to * (1.0 / distance);
        let facing = hit.normal.dot(along);
        if facing <= 0.0 {
            return Vector::ZERO;
        }
        let ray = Ray {
            from: hit.place,
            along,
        };
        let seen = (self.radius / distance).powi(2);
        self.colour * (facing * seen * scene.passes(&ray, distance))
    }
}

impl Scene {
    /// All light that falls on a surface straight from lamps and sky.
    pub(crate) fn light_on(&self, hit: &Hit, random: &mut Random) -> Vector {
        let sky = self.skylight(hit.normal) * self.openness(hit);
        self.lights
            .iter()
            .fold(sky, |sum, light| sum + light.on(self, hit, random))
    }

    /// What is seen where no surface is: a lamp or the sky.
    pub(crate) fn beyond(&self, ray: &Ray) -> Vector {
        let lamp = self
            .lights
            .iter()
            .find(|light| ray.meets(light.middle, light.radius).is_some());
        lamp.map_or_else(|| self.sky(ray.along), |light| light.colour * LAMP)
    }
}

/// Lamps in mirrors would outshine everything.
const LAMP: f64 = 0.25;
