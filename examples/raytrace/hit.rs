//! What a ray meets first.

use super::scene::{Scene, Sphere, Surface};
use super::vector::Vector;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Ray {
    pub(crate) from: Vector,
    /// Of length 1.
    pub(crate) along: Vector,
}

/// Where a ray meets a surface.
#[derive(Debug)]
pub(crate) struct Hit {
    pub(crate) distance: f64,
    pub(crate) place: Vector,
    /// Square to the surface, away from what is behind it; of length 1.
    pub(crate) normal: Vector,
    pub(crate) surface: Surface,
    /// Which sphere; `None`: the floor.
    pub(crate) sphere: Option<usize>,
}

/// A ray that leaves a surface does not meet it again so near.
pub(crate) const NEAR: f64 = 1e-6;

impl Ray {
    pub(crate) fn at(&self, distance: f64) -> Vector {
        self.from + self.along * distance
    }

    /// How far a sphere is, in front of the start.
    pub(crate) fn meets(&self, middle: Vector, radius: f64) -> Option<f64> {
        let to = middle - self.from;
        let nearest = to.dot(self.along);
        let away = to - self.along * nearest;
        let depth = radius * radius - away.dot(away);
        if depth < 0.0 {
            return None;
        }
        let half = depth.sqrt();
        [nearest - half, nearest + half]
            .into_iter()
            .find(|distance| *distance > NEAR)
    }

    fn meets_floor(&self) -> Option<f64> {
        let distance = -self.from.1 / self.along.1;
        (self.along.1 < 0.0 && distance > NEAR).then_some(distance)
    }
}

impl Scene {
    pub(crate) fn hit(&self, ray: &Ray) -> Option<Hit> {
        let floor = ray.meets_floor();
        let mut nearest = (floor.unwrap_or(f64::INFINITY), None);
        for (number, Sphere { middle, radius, .. }) in self.spheres.iter().enumerate() {
            if let Some(distance) = ray.meets(*middle, *radius).filter(|at| *at < nearest.0) {
                nearest = (distance, Some(number));
            }
        }
        let (distance, sphere) = nearest;
        if !distance.is_finite() {
            return None;
        }
        let place = ray.at(distance);
        let (normal, surface) = match sphere.map(|number| self.spheres[number]) {
            Some(sphere) => (
                (place - sphere.middle) * (1.0 / sphere.radius),
                sphere.surface,
            ),
            None => (Vector::UP, Surface::Varnished(self.floor(place))),
        };
        Some(Hit {
            distance,
            place,
            normal,
            surface,
            sphere,
        })
    }

    /// How much light comes through on the first part of a ray: glass dims it, everything else stops it.
    pub(crate) fn passes(&self, ray: &Ray, distance: f64) -> f64 {
        let mut through = 1.0;
        for sphere in &self.spheres {
            if ray
                .meets(sphere.middle, sphere.radius)
                .is_none_or(|at| at >= distance)
            {
                continue;
            }
            match sphere.surface {
                Surface::Glass => through *= GLASS_SHADOW,
                _ => return 0.0,
            }
        }
        through
    }

    /// How open the sky is above a surface. A sphere hides a part of it that has a formula, so that this needs no rays.
    pub(crate) fn openness(&self, hit: &Hit) -> f64 {
        let mut open = 1.0;
        for (number, sphere) in self.spheres.iter().enumerate() {
            if hit.sphere == Some(number) {
                continue;
            }
            let to = sphere.middle - hit.place;
            let distance = to.length();
            let facing = (hit.normal.dot(to) / distance).max(0.0);
            let hidden = facing * (sphere.radius / distance).powi(2);
            open *= 1.0 - hidden.min(1.0);
        }
        if hit.sphere.is_some() {
            // The floor hides what lies below, the more the lower the place.
            let low = (1.0 - hit.place.1).clamp(0.0, 1.0);
            open *= 1.0 - 0.5 * low * (0.5 - 0.5 * hit.normal.1);
        }
        open
    }
}

/// Of light that meets a glass sphere, so much comes through, spread over its shadow.
const GLASS_SHADOW: f64 = 0.62;
