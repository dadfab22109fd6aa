//! The picture, by any number of processes, and the physics behind it.

use clap::Parser;

use super::hit::Ray;
use super::options::Options;
use super::random::Random;
use super::render;
use super::scene::Scene;
use super::tile::{self, Tile};
use super::vector::Vector;

fn small() -> Options {
    Options {
        width: 70,
        height: 45,
        samples: 3,
        ..Options::parse_from(["raytrace"])
    }
}

fn picture(ranks: u32, options: &Options) -> Vec<u8> {
    let rendered = mizzen::local(ranks, |deck| {
        Ok(tile::assemble(options, &render(&deck, options)?.results))
    });
    rendered.expect("no rank fails").swap_remove(0)
}

#[test]
fn the_picture_is_the_same_whatever_the_number_of_processes_and_threads() {
    let expected = picture(1, &small());
    for (ranks, threads) in [(1, 2), (2, 1), (3, 2)] {
        let options = Options { threads, ..small() };
        assert!(
            picture(ranks, &options) == expected,
            "{ranks} ranks of {threads}"
        );
    }
}

#[test]
fn a_picture_is_its_tiles() {
    let (options, scene) = (small(), Scene::new());
    let whole = Tile {
        x: 0,
        y: 0,
        width: options.width,
        height: options.height,
    };
    let tiles = Tile::all(&options);
    assert_eq!(tiles.len(), 3 * 2);
    let parts: Vec<_> = tiles
        .iter()
        .map(|tile| tile.render(&scene, &options))
        .collect();
    assert!(tile::assemble(&options, &parts) == whole.render(&scene, &options));
}

#[test]
fn a_ray_meets_what_is_nearest() {
    let scene = Scene::new();
    let ray = Ray {
        from: Vector(0.0, 1.25, 50.0),
        along: Vector(0.0, 0.0, -1.0),
    };
    let hit = scene.hit(&ray).expect("the large sphere is there");
    assert_eq!(hit.sphere, Some(0));
    assert!((hit.distance - (50.3 - 1.25)).abs() < 1e-9);
    assert!((hit.normal - Vector(0.0, 0.0, 1.0)).length() < 1e-9);
    let up = Ray {
        along: Vector::UP,
        ..ray
    };
    assert!(scene.hit(&up).is_none());
}

#[test]
fn shadows_are_where_spheres_stand_in_the_light() {
    let scene = Scene::new();
    let ray = Ray {
        from: Vector(0.0, 1.25, 50.0),
        along: Vector(0.0, 0.0, -1.0),
    };
    assert_eq!(scene.passes(&ray, 40.0), 1.0);
    assert_eq!(scene.passes(&ray, 60.0), 0.0);
}

#[test]
fn random_numbers_are_spread_and_the_same_for_the_same_pixel() {
    let mean = |x| {
        let mut random = Random::of_pixel(x, 7);
        (0..10_000).map(|_| random.next()).sum::<f64>() / 10_000.0
    };
    assert!((mean(1) - 0.5).abs() < 0.01);
    assert_eq!(mean(2), mean(2));
    assert_ne!(mean(2), mean(3));
}

#[test]
fn options_are_read_and_bad_ones_refused_with_sentences() {
    let parse = |line: &str| {
        Options::try_parse_from(["raytrace"].into_iter().chain(line.split_whitespace()))
    };
    let options =
        parse("--width 10 --height 20 --samples 4 --output a.png").expect("they are right");
    assert_eq!(
        (options.width, options.height, options.samples),
        (10, 20, 4)
    );
    assert_eq!(options.output(), Some("a.png".as_ref()));
    assert_eq!(
        parse("--json").expect("right").output(),
        None,
        "programs want figures, unless they name a file"
    );
    for (line, sentence) in [
        (
            "--samples 0",
            "error: invalid value '0' for '--samples <COUNT>': not a number from 1 to 65536",
        ),
        (
            "--height",
            "error: a value is required for '--height <PIXELS>' but none was supplied",
        ),
        ("--blur 3", "error: unexpected argument '--blur' found"),
    ] {
        let refusal = parse(line).expect_err(line).to_string();
        assert!(refusal.starts_with(sentence), "{refusal}");
    }
}
