//! Pictures against the tiles that they are made of, by any number of processes.

use std::sync::Arc;

use mizzen::Result;

use super::ask::Ask;
use super::options::Options;
use super::place::{Map, Place, TILE};
use super::service;
use super::tiles::Tiles;
use super::view::{Part, View};
use super::viewer::Viewer;
use super::{census, chart, jpeg, scale};

const SMALL: Map = Map { tiles: [3, 2] };

/// The picture that rank 0 makes with so many processes.
fn picture(ranks: u32, view: &View) -> Vec<u8> {
    let shown = mizzen::local(ranks, |deck| {
        let tiles = Arc::new(Tiles::draw(&deck, SMALL)?);
        let _service = service::serve(&deck, &tiles)?;
        let Some(census) = census::take(&deck, &tiles)? else {
            return Ok(Vec::new());
        };
        let (pixels, _) = Viewer::new(&deck)?.show(SMALL, view)?;
        census.dismiss()?;
        Ok(pixels)
    });
    shown.expect("no rank fails").swap_remove(0)
}

fn view(start: [u32; 2], length: [u32; 2], scale: f64) -> View {
    View {
        start,
        length,
        scale,
    }
}

fn decoded(place: Place) -> Result<Vec<u8>> {
    jpeg::decode(&jpeg::encode(&chart::draw(place))?)
}

#[test]
fn at_scale_1_the_picture_is_the_tiles() {
    let (start, length) = ([500, 300], [900, 400]);
    let shown = picture(2, &view(start, length, 1.0));
    let tiles = [[0, 0], [1, 0], [2, 0], [0, 1], [1, 1], [2, 1]]
        .map(|place| decoded(Place(place)).expect("it was drawn"));
    let expected = (0..length[1]).flat_map(|row| (0..length[0]).map(move |column| [column, row]));
    for (pixel, at) in shown.chunks_exact(3).zip(expected) {
        let [x, y] = [0, 1].map(|axis| start[axis] + at[axis]);
        let tile = &tiles[(y / TILE[1] * SMALL.tiles[0] + x / TILE[0]) as usize];
        let inside = (y % TILE[1] * TILE[0] + x % TILE[0]) as usize;
        assert_eq!(pixel, &tile[3 * inside..][..3], "at {x},{y}");
    }
    assert_eq!(shown.len(), 3 * 900 * 400);
}

#[test]
fn the_picture_is_the_same_whatever_the_number_of_processes() {
    for (start, length, scale) in [
        ([0, 0], [1920, 960], 0.1),
        ([17, 33], [1500, 801], 0.37),
        ([630, 470], [30, 30], 3.3),
    ] {
        let view = view(start, length, scale);
        let alone = picture(1, &view);
        for ranks in [2, 3, 5] {
            assert!(picture(ranks, &view) == alone, "{ranks} ranks, {view}");
        }
    }
}

#[test]
fn every_pixel_belongs_to_one_tile() {
    for (start, length, scale) in [
        ([0, 0], [1920, 960], 0.07),
        ([1, 2], [1919, 958], 0.013),
        ([639, 479], [2, 2], 4.0),
        ([1919, 959], [1, 1], 0.5),
    ] {
        let view = view(start, length, scale);
        view.check(SMALL).expect("it is on the map");
        let [width, height] = view.pixels().map(|count| count as usize);
        let mut covered = vec![0; width * height];
        for Part { first, count, .. } in view.parts(SMALL) {
            for row in first[1]..first[1] + count[1] {
                let row = &mut covered[row as usize * width..][..width];
                let inside = row[first[0] as usize..].iter_mut();
                inside.take(count[0] as usize).for_each(|times| *times += 1);
            }
        }
        assert!(covered.iter().all(|times| *times == 1), "{view}");
    }
}

#[test]
fn a_pixel_is_the_mean_of_what_is_under_it() {
    // Half of each pair of columns is 100, the other 200.
    let tile: Vec<u8> = (0..jpeg::PIXELS)
        .map(|byte| if byte / 3 % 2 == 0 { 100 } else { 200 })
        .collect();
    let view = view([0, 0], TILE, 0.5);
    let parts = view.parts(Map { tiles: [1, 1] });
    let scaled = scale::part(&tile, &Ask::new(&view, &parts[0])).expect("it is of this tile");
    assert_eq!(scaled, vec![150; 3 * 320 * 240]);
}

#[test]
fn a_part_of_another_tile_is_refused() {
    let ask = Ask {
        scale: 1.0,
        start: [0, 0],
        tile: [1, 0],
        first: [0, 0],
        count: [10, 10],
    };
    assert_eq!(scale::part(&vec![0; jpeg::PIXELS], &ask), None);
}

#[test]
fn tiles_fit_their_neighbours() {
    let [left, right] = [[0, 0], [1, 0]].map(|place| chart::draw(Place(place)));
    let last = 3 * (TILE[0] as usize - 1);
    let row = 3 * TILE[0] as usize;
    let (mut largest, mut sum) = (0, 0);
    for (left, right) in left.chunks_exact(row).zip(right.chunks_exact(row)) {
        let difference = left[last].abs_diff(right[0]);
        (largest, sum) = (difference.max(largest), sum + u32::from(difference));
    }
    // Neighbouring pixels differ a little, but for lines between them.
    assert!(
        sum / TILE[1] < 8,
        "{sum} over {} rows, at most {largest}",
        TILE[1]
    );
}

#[test]
fn all_processes_hold_about_as_many_tiles() {
    for ranks in [2, 4, 7] {
        let mut held = vec![0; ranks as usize];
        for row in 0..20 {
            for column in 0..15 {
                held[Place([column, row]).owner(ranks).0 as usize] += 1;
            }
        }
        let even = 300 / ranks;
        assert!(
            held.iter()
                .all(|tiles| (even / 2..2 * even).contains(tiles)),
            "{held:?}"
        );
    }
}

#[test]
fn options_name_pictures_and_bad_ones_are_refused_with_sentences() {
    let parse = |line: &str| {
        Options::read(
            ["map"].into_iter().chain(line.split_whitespace()),
            Map::WHOLE,
        )
    };
    let views = parse("--scale 0.05 --region 1,2,300,400 --output a.png")
        .expect("right")
        .views;
    assert_eq!(views[0].view, view([0, 0], [9600, 9600], 0.05));
    assert_eq!(views[1].view, view([1, 2], [300, 400], 1.0));
    assert_eq!(views[0].output, Some("map.png".into()));
    assert_eq!(views[1].output, Some("a.png".into()));
    let for_programs = parse("--region 1,2,300,400 --json --repeat 5").expect("right");
    assert_eq!((for_programs.repeat, for_programs.json), (5, true));
    assert_eq!(
        for_programs.views[0].output, None,
        "programs want figures, unless they name a file"
    );
    assert_eq!(parse("").expect("right").views.len(), 2);
    for (line, sentence) in [
        (
            "--region 9000,0,601,10",
            "the region 9000,0,601,10 is not on the map, which has 9600 × 9600 pixels",
        ),
        (
            "--region 4294967295,0,4294967295,1",
            "the region 4294967295,0,4294967295,1 is not on the map",
        ),
        ("--region 0,0,0,5", "the region 0,0,0,5 is not on the map"),
        (
            "--region 1,2,3",
            "error: invalid value '1,2,3' for '--region <X,Y,WIDTH,HEIGHT>': not X,Y,WIDTH,HEIGHT in pixels",
        ),
        (
            "--region 0,0,10,10 --scale 0.01",
            "at a scale of 0.01 nothing is left of 10 × 10 pixels",
        ),
        (
            "--scale 4",
            "a picture of 38400 × 38400 pixels is too large",
        ),
        (
            "--scale 0",
            "error: invalid value '0' for '--scale <FACTOR>': not a number from 0.01 to 4",
        ),
        (
            "--scale",
            "error: a value is required for '--scale <FACTOR>' but none was supplied",
        ),
        ("--zoom 2", "error: unexpected argument '--zoom' found"),
    ] {
        let refusal = parse(line).expect_err(line).to_string();
        assert!(refusal.starts_with(sentence), "{refusal}");
    }
}
