//! The picture, by any number of processes.

use clap::Parser;

use super::options::Options;
use super::slices::Slice;
use super::{compute, fractal, slices};

fn picture(ranks: u32, options: &Options) -> Vec<u8> {
    let computed = mizzen::local(ranks, |deck| {
        Ok(slices::together(&compute(&deck, options)?.results))
    });
    computed.expect("no rank fails").swap_remove(0)
}

fn small() -> Options {
    Options {
        width: 90,
        height: 67,
        iterations: 200,
        ..Options::parse_from(["mandelbrot"])
    }
}

#[test]
fn the_picture_is_the_same_whatever_the_number_of_processes_and_threads() {
    let whole = Slice { first: 0, rows: 67 };
    let expected = fractal::render(whole, &small());
    for (ranks, threads) in [(1, 1), (1, 2), (2, 1), (4, 2)] {
        let options = Options { threads, ..small() };
        assert!(
            picture(ranks, &options) == expected,
            "{ranks} ranks of {threads}"
        );
    }
}

#[test]
fn slices_are_all_of_the_picture() {
    for height in [1, 3, 4, 5, 67, 1200] {
        let mut next = 0;
        for slice in slices::of(height) {
            assert_eq!(slice.first, next);
            assert!(slice.rows > 0);
            next += slice.rows;
        }
        assert_eq!(next, height);
    }
}

#[test]
fn the_set_is_symmetric() {
    let options = Options {
        height: 66,
        ..small()
    };
    let pixels = picture(1, &options);
    let rows: Vec<_> = pixels.chunks_exact(3 * 90).collect();
    assert!((0..33).all(|row| rows[row] == rows[65 - row]));
}

#[test]
fn options_are_read_and_bad_ones_refused_with_sentences() {
    let parse = |line: &str| {
        Options::try_parse_from(["mandelbrot"].into_iter().chain(line.split_whitespace()))
    };
    let options = parse("--width 10 --height 20 --threads 3 --json").expect("they are right");
    assert_eq!(
        (options.width, options.height, options.threads, options.json),
        (10, 20, 3, true)
    );
    assert_eq!(
        options.output(),
        None,
        "programs want figures, unless they name a file"
    );
    assert_eq!(
        parse("").expect("right").output(),
        Some("mandelbrot.png".as_ref())
    );
    for (line, sentence) in [
        (
            "--width 0",
            "error: invalid value '0' for '--width <PIXELS>': not a number from 1 to 32768",
        ),
        (
            "--threads",
            "error: a value is required for '--threads <COUNT>' but none was supplied",
        ),
        ("--depth 3", "error: unexpected argument '--depth' found"),
    ] {
        let refusal = parse(line).expect_err(line).to_string();
        assert!(refusal.starts_with(sentence), "{refusal}");
    }
}
