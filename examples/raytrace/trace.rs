//! The colour that a ray brings back.

use super::hit::{Hit, Ray};
use super::random::Random;
use super::scene::{Scene, Surface};
use super::vector::Vector;

/// How often a ray may be mirrored or bent: a glass sphere before a mirror needs six.
const MOST_TURNS: u32 = 7;
/// What brings less than this is left out.
const FAINT: f64 = 0.008;
/// How much a surface mirrors that is looked at from the front: varnish and glass.
const FRONT: f64 = 0.04;
const GLASS: f64 = 1.5;
/// How far one sees on the floor before it fades into the horizon.
const HAZE: f64 = 26.0;

pub(crate) fn trace(scene: &Scene, ray: &Ray, random: &mut Random) -> Vector {
    follow(scene, ray, 1.0, 0, random)
}

/// `weight`: how much this ray counts in its pixel.
fn follow(scene: &Scene, ray: &Ray, weight: f64, turns: u32, random: &mut Random) -> Vector {
    if weight < FAINT || turns > MOST_TURNS {
        return Vector::ZERO;
    }
    let Some(hit) = scene.hit(ray) else {
        return scene.beyond(ray);
    };
    let mut next = |along: Vector, part: f64| {
        let ray = Ray {
            from: hit.place,
            along,
        };
        follow(scene, &ray, weight * part, turns + 1, random) * part
    };
    match hit.surface {
        Surface::Metal(tint) => {
            let edge = mirrored_part(-ray.along.dot(hit.normal), 0.0);
            next(mirror(ray.along, hit.normal), 1.0).filter(tint.mix(Vector::ONE, edge))
        }
        Surface::Glass => {
            let (bent, mirrored) = refract(ray.along, hit.normal);
            let through = bent.map_or(Vector::ZERO, |bent| next(bent, 1.0 - mirrored));
            let normal = facing(ray.along, hit.normal);
            through + next(mirror(ray.along, normal), mirrored)
        }
        Surface::Varnished(colour) => {
            let mirrored = mirrored_part(-ray.along.dot(hit.normal), FRONT);
            let gloss = next(mirror(ray.along, hit.normal), mirrored);
            let matt = scene.light_on(&hit, random).filter(colour) * (1.0 - mirrored);
            hazy(scene, ray, &hit, matt + gloss)
        }
    }
}

/// The floor, fading with the distance.
fn hazy(scene: &Scene, ray: &Ray, hit: &Hit, colour: Vector) -> Vector {
    if hit.sphere.is_some() {
        return colour;
    }
    let part = hit.distance / HAZE;
    let flat = Vector(ray.along.0, 0.0, ray.along.2);
    colour.mix(scene.sky(flat), 1.0 - 1.0 / (1.0 + part * part * part))
}

fn mirror(along: Vector, normal: Vector) -> Vector {
    along - normal * (2.0 * along.dot(normal))
}

/// The normal on the side that the ray comes from.
fn facing(along: Vector, normal: Vector) -> Vector {
    if along.dot(normal) > 0.0 {
        -normal
    } else {
        normal
    }
}

/// Fresnel's equations as Schlick approximated them.
fn mirrored_part(cosine: f64, front: f64) -> f64 {
    front + (1.0 - front) * (1.0 - cosine.clamp(0.0, 1.0)).powi(5)
}

/// The direction into glass or out of it, and how much is mirrored instead; all of it if there is no such direction.
fn refract(along: Vector, normal: Vector) -> (Option<Vector>, f64) {
    let leaves = along.dot(normal) > 0.0;
    let ratio = if leaves { GLASS } else { 1.0 / GLASS };
    let normal = facing(along, normal);
    let cosine = -along.dot(normal);
    let rest = 1.0 - ratio * ratio * (1.0 - cosine * cosine);
    if rest < 0.0 {
        return (None, 1.0);
    }
    let bent = along * ratio + normal * (ratio * cosine - rest.sqrt());
    // Schlick's formula is about the angle in the thinner medium.
    let outside = if leaves { rest.sqrt() } else { cosine };
    (Some(bent.unit()), mirrored_part(outside, FRONT))
}
