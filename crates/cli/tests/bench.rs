//! What `mizzen bench` prints, and that it leaves nothing behind.

mod common;

use std::process::{Command, Output};

use common::{Job, text};
use serde_json::Value;

fn bench(options: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mizzen"));
    command.arg("bench").args(options.split(' '));
    command
}

fn output(options: &str) -> Output {
    bench(options).output().unwrap()
}

/// The lines of a measurement that succeeds.
fn measured(options: &str) -> Vec<Value> {
    let run = output(options);
    assert!(run.status.success(), "{}", text(&run.stderr));
    let parse = |line: &str| serde_json::from_str(line).unwrap();
    text(&run.stdout).lines().map(parse).collect()
}

/// The fields that other programs rely on.
const FIELDS: [&str; 27] = [
    "test",
    "path",
    "variant",
    "operation",
    "size",
    "threads",
    "processes",
    "runs",
    "p50_ns",
    "p99_ns",
    "rate_per_s",
    "bytes_per_s",
    "value",
    "value_min",
    "value_max",
    "unit",
    "floor",
    "floor_min",
    "floor_max",
    "floor_name",
    "ratio",
    "ratio_min",
    "ratio_max",
    "worst",
    "longest_gap_ns",
    "pinned",
    "noisy",
];

fn assert_fields(line: &Value) {
    let fields = line.as_object().unwrap();
    assert_eq!(fields.len(), FIELDS.len(), "{line}");
    for field in FIELDS {
        assert!(fields.contains_key(field), "{field} is missing: {line}");
    }
    assert!(line["value"].as_f64().unwrap() > 0.0, "{line}");
    assert!(line["floor"].as_f64().unwrap() > 0.0, "{line}");
}

#[test]
fn latency_is_told_for_each_path_and_size() {
    let lines = measured("latency --sizes 8,1K --runs 1 --json --path thread,process,tcp");
    let told: Vec<_> = lines
        .iter()
        .map(|line| {
            (
                line["path"].as_str().unwrap(),
                line["size"].as_u64().unwrap(),
            )
        })
        .collect();
    let expected = ["thread", "process", "tcp"].map(|path| [(path, 8), (path, 1024)]);
    assert_eq!(told, expected.as_flattened());
    for line in &lines {
        assert_fields(line);
        assert_eq!(
            (line["unit"].as_str(), line["runs"].as_u64()),
            (Some("ns"), Some(1))
        );
        assert!(line["p50_ns"].as_f64() <= line["p99_ns"].as_f64(), "{line}");
        assert!(line["rate_per_s"].is_null());
    }
}

#[test]
fn variants_are_named() {
    for (options, variant) in [
        ("--post --idle-lanes 2", "post,idle-lanes=2"),
        ("--lent", "lent"),
        ("--separate", "separate"),
        ("--asleep", "asleep"),
    ] {
        let lines = measured(&format!("latency --sizes 8 --runs 1 --json {options}"));
        assert_eq!(lines[0]["variant"], variant);
        assert_fields(&lines[0]);
    }
}

#[test]
fn streams_are_told_by_the_second() {
    let rate = &measured("rate --runs 1 --json")[0];
    assert_fields(rate);
    assert_eq!(rate["unit"], "msg/s");
    assert_eq!(rate["rate_per_s"], rate["value"]);
    let bandwidth = &measured("bandwidth --sizes 64K --runs 1 --json")[0];
    assert_fields(bandwidth);
    assert_eq!(bandwidth["unit"], "B/s");
    assert_eq!(bandwidth["bytes_per_s"], bandwidth["value"]);
}

#[test]
fn pairs_of_threads_are_told_with_the_slowest() {
    let line = &measured("threads --threads 2 --runs 1 --json")[0];
    assert_fields(line);
    assert_eq!(
        (line["threads"].as_u64(), line["pinned"].as_bool()),
        (Some(2), Some(false))
    );
    assert!(line["worst"].as_f64().unwrap() >= 1.0, "{line}");
    assert!(line["longest_gap_ns"].as_f64().unwrap() > 0.0, "{line}");
}

#[test]
fn operations_of_groups_are_told_for_each_size_and_number_of_members() {
    let lines = measured(
        "collectives --op barrier,all-reduce,scatter --sizes 8,4K --ranks 2,3 --runs 1 --json",
    );
    let told = |line: &Value| {
        let number = |field: &str| line[field].as_u64().unwrap();
        let operation = line["operation"].as_str().unwrap().to_owned();
        (number("processes"), operation, number("size"))
    };
    let told: Vec<_> = lines.iter().map(told).collect();
    let each = [
        ("barrier", 0),
        ("all-reduce", 8),
        ("all-reduce", 4096),
        ("scatter", 8),
        ("scatter", 4096),
    ];
    let of = |ranks| each.map(|(operation, size)| (ranks, operation.to_owned(), size));
    assert_eq!(told, [of(2), of(3)].as_flattened());
    lines.iter().for_each(assert_fields);
    let threads = &measured("collectives --op barrier --ranks 2 --threads 2 --runs 1 --json")[0];
    let members = (threads["processes"].as_u64(), threads["threads"].as_u64());
    assert_eq!(members, (Some(2), Some(2)));
}

#[test]
fn a_grid_tells_the_chosen_way_beside_the_fastest() {
    let options = "collectives --grid --op broadcast,all-to-all --sizes 1K --ranks 3 --runs 1";
    let lines = measured(&format!("{options} --json"));
    let by = |line: &Value| line["variant"].as_str().unwrap().to_owned();
    assert_eq!(lines.len(), 2, "an all-to-all has one way only: {lines:?}");
    assert!(by(&lines[0]).starts_with("measured: "), "{lines:?}");
    assert!(by(&lines[1]).starts_with("assumed: "), "{lines:?}");
    for line in &lines {
        assert_fields(line);
        assert!(line["value"].as_f64() >= line["floor"].as_f64(), "{line}");
    }
    let told = output(options);
    let sentence = "Chosen by what is measured: the fastest or within 15 % of it in ";
    assert!(
        text(&told.stdout).contains(sentence),
        "{}",
        text(&told.stdout)
    );
}

#[test]
fn processes_that_wait_or_start_are_counted() {
    let idle = &measured("idle --processes 2 --runs 1 --json")[0];
    assert_fields(idle);
    assert_eq!(
        (idle["unit"].as_str(), idle["processes"].as_u64()),
        (Some("cpu%"), Some(2))
    );
    let startup = &measured("startup --processes 4 --runs 1 --json")[0];
    assert_fields(startup);
    assert_eq!(
        (startup["unit"].as_str(), startup["size"].as_u64()),
        (Some("s"), None)
    );
}

#[test]
fn people_get_a_table_and_a_picture() {
    let file = std::env::temp_dir().join(format!("mizzen-bench-{}.svg", std::process::id()));
    let options = format!(
        "latency --path thread --sizes 8,1K --runs 1 --svg {}",
        file.display()
    );
    let run = output(&options);
    let picture = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    let stdout = text(&run.stdout);
    assert!(run.status.success(), "{}", text(&run.stderr));
    for words in [
        "core",
        "Linux",
        "ratio",
        "1 KiB",
        "cache line between two cores",
    ] {
        assert!(stdout.contains(words), "{stdout}");
    }
    for words in [
        "Mizzen, thread path",
        "size of a message",
        "8 B",
        "time, lower is better",
    ] {
        assert!(picture.contains(words), "{picture}");
    }
}

#[test]
fn a_picture_that_cannot_be_written_is_refused_before_measuring() {
    let run = output("latency --runs 10000 --svg /nowhere/x.svg");
    let stderr = text(&run.stderr);
    assert!(
        stderr.contains("/nowhere/x.svg cannot be written"),
        "{stderr}"
    );
    assert!(!run.status.success());
}

#[test]
fn a_measurement_whose_front_end_is_killed_leaves_nothing() {
    const KILL: i32 = 9;
    for (path, processes) in [("thread", 2), ("process", 4)] {
        let mut job = Job::start(bench(&format!("latency --runs 10000 --path {path}")));
        while job.processes().len() < processes {
            std::thread::yield_now();
        }
        job.signal(KILL);
        assert_eq!(job.wait(), None);
        job.assert_nothing_is_left();
    }
}

#[test]
fn what_one_core_copies_is_told_once_for_each_size() {
    let run = output("bandwidth --sizes 64K,1M --runs 1 --path thread,process");
    assert!(run.status.success(), "{}", text(&run.stderr));
    let stdout = text(&run.stdout);
    for size in ["64 KiB", "1 MiB"] {
        let sentence = format!("One core copies {size} ");
        assert_eq!(stdout.matches(&sentence).count(), 1, "{stdout}");
    }
}
