//! What `mizzen run` prints and returns.

mod common;

use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::time::Instant;

use common::{Job, Script, mizzen, output, sorted_lines, text};

#[test]
fn lines_are_labelled_by_rank_and_go_where_they_were_written() {
    let run = output(["-n", "3", "sh", "-c", "echo out; echo err >&2"]);
    assert_eq!(sorted_lines(&run.stdout), ["[0] out", "[1] out", "[2] out"]);
    assert_eq!(sorted_lines(&run.stderr), ["[0] err", "[1] err", "[2] err"]);
    assert_eq!(run.status.code(), Some(0));
}

#[test]
fn a_last_line_without_an_end_gets_one() {
    let run = output(["-n", "2", "printf", "one\\ntwo"]);
    assert_eq!(
        sorted_lines(&run.stdout),
        ["[0] one", "[0] two", "[1] one", "[1] two"]
    );
    assert!(run.stdout.ends_with(b"\n"));
}

#[test]
fn without_labels_bytes_come_through_unchanged() {
    // No line end for more than a frame holds, and bytes that are no text.
    let mut bytes: Vec<u8> = (0..3_000_000_u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect();
    bytes[1000..1_500_000]
        .iter_mut()
        .filter(|byte| **byte == b'\n')
        .for_each(|byte| *byte = 0);
    let mut child = mizzen(["--no-label", "cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut received = Vec::new();
    std::thread::scope(|s| {
        s.spawn(|| {
            stdin.write_all(&bytes).unwrap();
            drop(stdin);
        });
        child
            .stdout
            .take()
            .unwrap()
            .read_to_end(&mut received)
            .unwrap();
    });
    assert!(child.wait().unwrap().success());
    assert!(
        received == bytes,
        "{} of {} bytes",
        received.len(),
        bytes.len()
    );
}

#[test]
fn lines_of_many_processes_are_never_mixed() {
    let script = "i=0; while [ $i -lt 400 ]; do echo line-$i-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-end; i=$((i+1)); done";
    let run = output(["-n", "8", "sh", "-c", script]);
    let stdout = text(&run.stdout);
    let mut next = [0; 8];
    for line in stdout.lines() {
        let (label, rest) = line
            .split_once("] line-")
            .unwrap_or_else(|| panic!("{line:?}"));
        let rank: usize = label[1..].parse().unwrap();
        let number = rest
            .strip_suffix(&format!("-{}-end", "a".repeat(50)))
            .unwrap_or_else(|| panic!("{line:?}"));
        assert_eq!(
            number,
            next[rank].to_string(),
            "in the order they were written"
        );
        next[rank] += 1;
    }
    assert_eq!(next, [400; 8]);
}

#[test]
fn only_the_first_process_reads_standard_input() {
    let mut child = mizzen(["-n", "3", "sh", "-c", "cat; echo done"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"hello\n").unwrap();
    let run = child.wait_with_output().unwrap();
    assert_eq!(
        sorted_lines(&run.stdout),
        ["[0] done", "[0] hello", "[1] done", "[2] done"]
    );
}

#[test]
fn the_exit_code_is_that_of_the_process_that_failed() {
    for code in [1, 42, 255] {
        let run = output(["-n", "2", "sh", "-c", &format!("exit {code}")]);
        assert_eq!(run.status.code(), Some(code));
    }
}

#[test]
fn a_failure_is_one_sentence_and_ends_the_others() {
    let script = "read line && { echo $$ >&2; kill -9 $$; }; exec sleep 1000";
    let mut command = mizzen(["-n", "4", "sh", "-c", script]);
    command.stdin(Stdio::piped());
    let mut job = Job::start(command);
    job.child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    let stderr = job.stderr();
    assert_eq!(job.wait(), Some(137));
    let lines: Vec<&str> = stderr.lines().collect();
    let [said, sentence] = lines[..] else {
        panic!("{stderr}")
    };
    let pid = said.strip_prefix("[0] ").unwrap();
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let expected = format!(
        "mizzen: rank 0 on {} (pid {pid}) was killed by signal 9 (SIGKILL); ended the other 3 processes.",
        host.trim()
    );
    assert_eq!(sentence, expected);
    job.assert_nothing_is_left();
}

#[test]
fn a_job_that_continues_ends_with_the_first_failure() {
    let script = "read line && exit 5; exit 0";
    let mut command = mizzen(["-n", "3", "--on-death", "continue", "sh", "-c", script]);
    let mut child = command
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    let run = child.wait_with_output().unwrap();
    assert_eq!(run.status.code(), Some(5));
    let stderr = text(&run.stderr);
    assert!(
        stderr.contains("rank 0 on ") && stderr.contains(" exited with code 5"),
        "{stderr}"
    );
}

#[test]
fn a_process_is_started_again_until_the_limit() {
    let run = output([
        "-n",
        "1",
        "--on-death",
        "restart",
        "--max-restarts",
        "3",
        "sh",
        "-c",
        "echo life; exit 9",
    ]);
    assert_eq!(run.status.code(), Some(9));
    assert_eq!(sorted_lines(&run.stdout), ["[0] life"; 4]);
    let stderr = text(&run.stderr);
    assert!(
        stderr.contains("started it again (incarnation 3)."),
        "{stderr}"
    );
    assert!(
        stderr.contains("after 3 restarts (see --max-restarts)."),
        "{stderr}"
    );
}

#[test]
fn what_cannot_be_run_is_said_with_advice() {
    let not_executable = Script::new("no program");
    let cases = [
        (
            vec!["-n", "2", "no-such-program-anywhere"],
            "no-such-program-anywhere was not found in PATH on ",
        ),
        (
            vec!["-n", "2", "./no/such/path"],
            "./no/such/path does not exist on ",
        ),
        (vec!["-n", "2", "/tmp"], "/tmp is a directory on "),
    ];
    for (args, expected) in cases {
        let run = output(args.iter());
        let stderr = text(&run.stderr);
        assert!(
            stderr.starts_with("mizzen: ") && stderr.contains(expected),
            "{stderr}"
        );
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
        assert_eq!(run.status.code(), Some(1));
    }
    let path = not_executable.path();
    let stderr = text(&output([path.as_str()]).stderr);
    assert!(
        stderr.contains("is not executable") && stderr.contains("chmod +x"),
        "{stderr}"
    );
}

#[test]
fn what_is_misspelt_is_refused_before_anything_starts() {
    let cases = [
        (
            vec!["-n", "4", "--host", "h1", "--", "echo"],
            "unexpected argument '--host' found",
        ),
        (vec!["-n", "4", "--host", "h1", "--", "echo"], "'--hosts'"),
        (vec!["-n", "four", "echo"], "-n must be a whole number"),
        (vec!["-n", "0", "echo"], "-n must be a whole number from 1"),
    ];
    for (args, expected) in cases {
        let run = output(args.iter());
        let stderr = text(&run.stderr);
        assert!(stderr.contains(expected), "{stderr}");
        assert_eq!(run.status.code(), Some(2));
        assert_eq!(text(&run.stdout), "");
    }
}

#[test]
fn what_follows_the_program_is_its_own() {
    let run = output(["-n", "1", "echo", "--host", "h1", "--", "-n", "four"]);
    assert_eq!(text(&run.stdout), "[0] --host h1 -- -n four\n");
    let run = output(["--", "--weird-program"]);
    let stderr = text(&run.stderr);
    assert!(
        stderr.contains("--weird-program was not found in PATH on "),
        "{stderr}"
    );
}

#[test]
fn a_job_that_cannot_be_started_whole_is_not_started() {
    let mut command = std::process::Command::new("sh");
    command.args([
        "-c",
        "ulimit -n 60; exec \"$@\"",
        "sh",
        env!("CARGO_BIN_EXE_mizzen"),
        "run",
        "-n",
        "64",
        "sleep",
        "1000",
    ]);
    let mut job = Job::start(command);
    assert_eq!(job.wait(), Some(1));
    let stderr = job.stderr();
    assert!(
        stderr.contains("of 64 processes of ") && stderr.contains("ulimit -n"),
        "{stderr}"
    );
    job.assert_nothing_is_left();
}

#[test]
fn what_a_process_started_ends_with_it() {
    let mut job = Job::start(mizzen(["-n", "2", "sh", "-c", "sleep 1000 & exit 0"]));
    assert_eq!(job.wait(), Some(0));
    job.assert_nothing_is_left();
}

#[test]
fn a_job_ends_when_nobody_reads_what_it_prints() {
    let mut job = Job::start(mizzen(["-n", "2", "yes"]));
    job.wait_for_lines(1, "y");
    drop(job.child.stdout.take());
    assert_eq!(job.wait(), Some(141));
    job.assert_nothing_is_left();
}

#[test]
fn processes_see_the_environment_directory_and_name_they_would_without_us() {
    let mut command = mizzen([
        "-n",
        "1",
        "--no-label",
        "sh",
        "-c",
        "echo $A $0; pwd; ulimit -n",
        "name",
    ]);
    let run = command.env("A", "b").current_dir("/usr").output().unwrap();
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile)
        .current
        .unwrap();
    assert_eq!(text(&run.stdout), format!("b name\n/usr\n{limit}\n"));
}

#[test]
fn sixty_four_processes_start_and_end_at_once() {
    // The release build needs a twentieth of this; the bound is for a debug build on a busy machine.
    let best = (0..5)
        .map(|_| {
            let start = Instant::now();
            let run = mizzen(["-n", "64", "true"])
                .process_group(0)
                .output()
                .unwrap();
            assert!(run.status.success(), "{}", text(&run.stderr));
            start.elapsed()
        })
        .min()
        .unwrap();
    assert!(best.as_secs_f64() < 1.0, "{best:?}");
}
