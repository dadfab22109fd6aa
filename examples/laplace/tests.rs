//! The parallel program against a serial one that is written as the textbook has it.

use clap::Parser;

use super::block::Block;
use super::options::Options;
use super::solve::{Outcome, solve};
use super::{gather, plate};

/// The options of a plate of this size.
fn sized(size: usize) -> Options {
    Options::parse_from(["laplace", "--size", &size.to_string()])
}

/// Rows, edges included, after so many iterations one cell at a time, and the largest change of the last.
fn serial(options: &Options, iterations: usize) -> (Vec<Vec<f64>>, f64) {
    let size = options.size;
    let row_at = |row| (0..size + 2).map(move |column| plate::temperature(row, column, size));
    let mut rows: Vec<Vec<f64>> = (0..size + 2).map(|row| row_at(row).collect()).collect();
    let mut largest = 0.0f64;
    for _ in 0..iterations {
        largest = 0.0;
        for colour in [0, 1] {
            for row in 1..=size {
                for column in (1..=size).filter(|column| (row + column) % 2 == colour) {
                    let vertical = rows[row - 1][column] + rows[row + 1][column];
                    let horizontal = rows[row][column - 1] + rows[row][column + 1];
                    let old = rows[row][column];
                    let new = old + options.omega() * (0.25 * (vertical + horizontal) - old);
                    largest = largest.max((new - old).abs());
                    rows[row][column] = new;
                }
            }
        }
    }
    (rows, largest)
}

/// Rows, edges left and right included, of the program with so many ranks.
fn parallel(options: &Options, ranks: u32) -> (Vec<Vec<f64>>, Outcome) {
    let solved = mizzen::local(ranks, |deck| {
        let (blocks, outcome) = solve(&deck, options)?;
        Ok((gather::gather(&deck, &blocks, options.size)?, outcome))
    });
    solved.expect("no rank fails").swap_remove(0)
}

fn assert_same(options: &Options, ranks: u32) {
    let (rows, outcome) = parallel(options, ranks);
    let (iterations, change) = outcome.last();
    let (expected, expected_change) = serial(options, iterations);
    let inner = &expected[1..=options.size];
    assert!(rows == inner, "{ranks} ranks, {options:?}: another plate");
    assert!(
        change == expected_change,
        "{ranks} ranks, {options:?}: another change"
    );
}

#[test]
fn any_division_gives_the_serial_plate_bit_for_bit() {
    for size in [13, 24] {
        for (ranks, threads) in [
            (1, 1),
            (2, 1),
            (1, 2),
            (3, 1),
            (2, 2),
            (1, 5),
            (4, 3),
            (13, 1),
        ] {
            let options = Options {
                iterations: 35,
                check_every: 10,
                threads,
                ..sized(size)
            };
            assert_same(&options, ranks);
        }
    }
}

#[test]
fn tiny_plates_are_plates() {
    for size in 1..=4 {
        for ranks in 1..=size as u32 {
            assert_same(
                &Options {
                    iterations: 7,
                    ..sized(size)
                },
                ranks,
            );
        }
    }
}

#[test]
fn it_stops_at_the_first_check_below_the_tolerance() {
    let options = Options {
        check_every: 5,
        tolerance: 1e-2,
        ..sized(20)
    };
    let (_, outcome) = parallel(&options, 2);
    let (last, before) = outcome.changes.split_last().expect("it was checked");
    assert!(last.1 < 1e-2 && before.iter().all(|(_, change)| *change >= 1e-2));
    assert!(
        last.0 < 200,
        "over-relaxation needs few iterations, not {}",
        last.0
    );
}

#[test]
fn a_plate_at_rest_is_the_mean_of_its_surroundings() {
    let options = Options {
        tolerance: 1e-11,
        ..sized(30)
    };
    let (rows, _) = parallel(&options, 2);
    for row in 1..29 {
        for column in 1..=30 {
            let around = rows[row - 1][column]
                + rows[row + 1][column]
                + rows[row][column - 1]
                + rows[row][column + 1];
            assert!((around / 4.0 - rows[row][column]).abs() < 1e-9);
        }
    }
}

#[test]
fn fingerprints_of_blocks_add_up_and_tell_plates_apart() {
    let of = |workers| {
        (0..workers).fold(0u64, |sum, worker| {
            sum.wrapping_add(Block::new(9, worker, workers).fingerprint())
        })
    };
    assert_eq!(of(1), of(4));
    assert_ne!(of(1), Block::new(10, 0, 1).fingerprint());
}

#[test]
fn more_workers_than_rows_are_refused_with_a_sentence() {
    let options = Options {
        threads: 3,
        ..sized(5)
    };
    assert!(options.clone().checked(1).is_ok());
    let refusal = options
        .checked(2)
        .expect_err("6 workers have 5 rows")
        .to_string();
    assert_eq!(
        refusal,
        "a plate of 5 rows cannot be divided among 6 workers (2 processes, --threads 3): give --size 6 or more, or start fewer"
    );
}

#[test]
fn options_are_read_and_bad_ones_refused_with_sentences() {
    let parse = |line: &str| {
        Options::try_parse_from(["laplace"].into_iter().chain(line.split_whitespace()))
    };
    let options = parse("--size 100 --omega 1 --threads 2 --json").expect("they are right");
    assert_eq!(
        (options.size, options.omega(), options.threads, options.json),
        (100, 1.0, 2, true)
    );
    assert_eq!(
        parse("--size 1").expect("right").omega(),
        1.0,
        "one cell has nothing to relax"
    );
    for (line, sentence) in [
        (
            "--size 0",
            "error: invalid value '0' for '--size <CELLS>': not a number from 1 to 16000",
        ),
        (
            "--omega 2",
            "error: invalid value '2' for '--omega <FACTOR>': not a number from 0.01 to 1.9999",
        ),
        (
            "--tolerance NaN",
            "error: invalid value 'NaN' for '--tolerance <CHANGE>': not a number from 0 to 100",
        ),
        (
            "--threads",
            "error: a value is required for '--threads <COUNT>' but none was supplied",
        ),
        (
            "--colour red",
            "error: unexpected argument '--colour' found",
        ),
    ] {
        let refusal = parse(line).expect_err(line).to_string();
        assert!(refusal.starts_with(sentence), "{refusal}");
    }
}
