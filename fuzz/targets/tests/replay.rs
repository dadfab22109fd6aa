//! Everything that was worth keeping, once more: the seeds, `fuzz/corpus/<target>` and `fuzz/regressions/<target>`.

use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

use mizzen_fuzz_targets::TARGETS;

/// Runs all inputs of one target, and says which of them fail.
fn replay(name: &str) {
    let target = TARGETS.iter().find(|target| target.name == name).unwrap();
    let mut inputs: Vec<(PathBuf, Vec<u8>)> = Vec::new();
    for (number, seed) in (target.seeds)().into_iter().enumerate() {
        inputs.push((format!("seed {number}").into(), seed));
    }
    for kind in ["corpus", "regressions"] {
        for path in files(&fuzz().join(kind).join(name)) {
            let bytes = fs::read(&path).unwrap();
            inputs.push((path, bytes));
        }
    }
    inputs.push(("nothing".into(), Vec::new()));
    let breaks = |bytes: &Vec<u8>| catch_unwind(|| (target.run)(bytes)).is_err();
    let failed: Vec<_> = inputs
        .iter()
        .filter(|(_, bytes)| breaks(bytes))
        .map(|(path, _)| path)
        .collect();
    assert!(failed.is_empty(), "{failed:?}");
}

fn fuzz() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn frames_do_no_harm() {
    replay("frames");
}

#[test]
fn a_hostile_link_does_no_harm() {
    replay("link");
}

#[test]
fn boot_messages_do_no_harm() {
    replay("boot");
}

#[test]
fn headers_do_no_harm() {
    replay("headers");
}

#[test]
fn a_hostile_connection_does_no_harm() {
    replay("tcp");
}

#[test]
fn files_do_no_harm() {
    replay("config");
}

#[test]
fn the_memory_of_a_lane_does_no_harm() {
    replay("lane");
}

#[test]
fn hostile_messages_do_no_harm() {
    replay("message");
}

#[test]
fn what_a_doctor_hears_does_no_harm() {
    replay("doctor");
}

#[test]
fn every_target_is_replayed_and_has_a_program() {
    let tests = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/replay.rs"));
    let tests = tests.unwrap();
    for target in TARGETS {
        assert!(tests.contains(&format!("replay(\"{}\")", target.name)));
        let program = format!("fuzz_targets/{}.rs", target.name);
        assert!(fuzz().join(&program).is_file(), "{program}");
    }
    let known = |path: &PathBuf| {
        let name = path.file_name().unwrap();
        TARGETS.iter().any(|target| name == target.name)
    };
    for kind in ["corpus", "regressions"] {
        let folders = files(&fuzz().join(kind));
        assert!(folders.iter().all(known), "{folders:?}");
    }
}

#[test]
fn the_corpora_stay_small() {
    let (mut count, mut bytes) = (0, 0);
    for target in TARGETS {
        for path in files(&fuzz().join("corpus").join(target.name)) {
            count += 1;
            bytes += fs::metadata(path).unwrap().len();
        }
    }
    assert!(
        count <= 250 && bytes <= 300_000,
        "{count} files, {bytes} bytes"
    );
}

#[test]
fn names_and_requests_do_no_harm() {
    replay("identity");
}

#[test]
fn frames_about_who_lives_do_no_harm() {
    replay("membership");
}

#[test]
fn frames_about_names_do_no_harm() {
    replay("registry");
}

#[test]
fn frames_of_gateways_do_no_harm() {
    replay("relay");
}

#[test]
fn hostile_sessions_do_no_harm() {
    replay("session");
}

#[test]
fn gateways_of_sites_do_no_harm() {
    replay("site");
}
