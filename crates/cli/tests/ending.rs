//! Signals, and that nothing is left when a job ends, however it ends.

mod common;

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::{Job, mizzen};

const HUP: i32 = 1;
const INT: i32 = 2;
const QUIT: i32 = 3;
const USR1: i32 = 10;
const USR2: i32 = 12;
const TERM: i32 = 15;

#[test]
fn signals_are_passed_on_to_every_process() {
    let script = "
        trap 'echo got one' USR1; trap 'echo got two' USR2
        trap 'echo got hup' HUP; trap 'echo bye; exit 0' TERM
        echo ready; while :; do sleep 0.02; done";
    let mut job = Job::start(mizzen(["-n", "3", "sh", "-c", script]));
    job.wait_for_lines(3, "ready");
    job.signal(USR1);
    job.wait_for_lines(3, "got one");
    job.signal(USR2);
    job.wait_for_lines(3, "got two");
    job.signal(HUP);
    job.wait_for_lines(3, "got hup");
    job.signal(TERM);
    job.wait_for_lines(3, "bye");
    assert_eq!(job.wait(), Some(0));
    job.assert_nothing_is_left();
}

#[test]
fn an_interrupted_job_returns_what_a_shell_would() {
    let signals = [
        (HUP, "SIGHUP", 129),
        (INT, "SIGINT", 130),
        (QUIT, "SIGQUIT", 131),
        (TERM, "SIGTERM", 143),
    ];
    for (signal, name, code) in signals {
        let mut job = Job::start(mizzen([
            "-n",
            "3",
            "sh",
            "-c",
            "echo ready; exec sleep 1000",
        ]));
        job.wait_for_lines(3, "ready");
        job.signal(signal);
        assert_eq!(
            job.stderr(),
            format!("mizzen: got {name}; ended the 3 processes.\n"),
            "no rank is to blame"
        );
        assert_eq!(job.wait(), Some(code));
        job.assert_nothing_is_left();
    }
}

#[test]
fn a_key_of_the_terminal_blames_no_rank() {
    if Command::new("script").arg("--version").output().is_err() {
        eprintln!("skipped: there is no `script` command here");
        return;
    }
    // It gives the launcher a terminal, whose key reaches rank 0 too: that has no group of its own there.
    let command = format!(
        "{} run -n 3 sh -c 'echo ready; exec sleep 1000'",
        env!("CARGO_BIN_EXE_mizzen")
    );
    let mut terminal = Command::new("script");
    terminal.args(["-qec", &command, "/dev/null"]);
    terminal.stdin(Stdio::piped());
    let mut job = Job::start(terminal);
    job.wait_for_lines(3, "ready");
    let mut keys = job.child.stdin.take().unwrap();
    keys.write_all(b"\x03").unwrap();
    job.wait_for_lines(1, "mizzen: got SIGINT; ended the 3 processes.");
    assert_eq!(job.wait(), Some(130));
    job.assert_nothing_is_left();
}

#[test]
fn who_fails_on_its_own_after_a_signal_is_named() {
    let script = "trap 'exit 3' TERM; echo ready; while :; do sleep 0.02; done";
    let mut job = Job::start(mizzen(["-n", "1", "sh", "-c", script]));
    job.wait_for_lines(1, "ready");
    job.signal(TERM);
    let stderr = job.stderr();
    // Before it, a shell may say that what it ran was terminated.
    let sentence = stderr.lines().last().unwrap_or_default();
    assert!(
        sentence.starts_with("mizzen: rank 0 on ")
            && sentence.ends_with(" exited with code 3 after SIGTERM."),
        "{stderr}"
    );
    assert_eq!(job.wait(), Some(3));
}

#[test]
fn an_interrupted_job_starts_nothing_again() {
    let mut job = Job::start(mizzen([
        "-n",
        "2",
        "--on-death",
        "restart",
        "sh",
        "-c",
        "echo ready; exec sleep 1000",
    ]));
    job.wait_for_lines(2, "ready");
    job.signal(INT);
    assert_eq!(job.wait(), Some(130));
    job.assert_nothing_is_left();
}

#[test]
fn a_stopped_job_goes_on_when_told_to() {
    let mut job = Job::start(mizzen([
        "-n",
        "1",
        "sh",
        "-c",
        "echo ready; kill -STOP $$; echo again",
    ]));
    job.wait_for_lines(1, "ready");
    // It stops itself some time after what we read: until then the signal has no effect.
    let mut stdout = job.child.stdout.take().unwrap();
    let reader = std::thread::spawn(move || {
        let mut rest = String::new();
        stdout.read_to_string(&mut rest).unwrap();
        rest
    });
    let deadline = Instant::now() + common::PATIENCE;
    while !reader.is_finished() {
        assert!(Instant::now() < deadline);
        if let Ok(process) = mizzen_shm::ProcessFd::open(job.child.id()) {
            let _ = process.send_signal(18);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(reader.join().unwrap(), "[0] again\n");
    assert_eq!(job.wait(), Some(0));
}

#[test]
fn who_does_not_end_when_asked_is_killed() {
    let script =
        "trap '' TERM; echo ready; if read line; then exit 3; fi; while :; do sleep 0.1; done";
    let mut command = mizzen(["-n", "3", "sh", "-c", script]);
    command.stdin(Stdio::piped());
    let mut job = Job::start(command);
    job.wait_for_lines(3, "ready");
    let start = Instant::now();
    std::io::Write::write_all(&mut job.child.stdin.take().unwrap(), b"go\n").unwrap();
    assert_eq!(job.wait(), Some(3));
    assert!(start.elapsed() >= Duration::from_secs(2), "after a grace");
    job.assert_nothing_is_left();
}

#[test]
fn a_job_whose_output_is_not_read_still_hears_signals() {
    let mut job = Job::start(mizzen(["-n", "2", "sh", "-c", "echo ready; exec yes"]));
    job.wait_for_lines(2, "ready");
    // From here on nobody reads: everything fills up, and processes wait.
    for _ in 0..3 {
        job.signal(INT);
        // As one presses a key that seems to have no effect.
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(job.wait(), Some(130));
    assert_eq!(job.stderr(), "mizzen: got SIGINT; ended the 2 processes.\n");
    job.assert_nothing_is_left();
}

#[test]
fn a_killed_launcher_leaves_nothing() {
    // With what processes have started, in the background and in the foreground.
    let script = "sleep 1000 & sh -c 'sleep 1001 & echo ready; sleep 1002'";
    let mut job = Job::start(mizzen(["-n", "4", "sh", "-c", script]));
    job.wait_for_lines(4, "ready");
    assert!(
        job.processes().len() > 12,
        "launcher, guard, and three or more for each rank"
    );
    job.child.kill().unwrap();
    job.assert_nothing_is_left();
}

#[test]
fn a_launcher_killed_at_any_time_leaves_nothing() {
    for step in 0..15 {
        let mut job = Job::start(mizzen(["-n", "8", "sh", "-c", "exec sleep 1000"]));
        // Later in its start each time.
        std::thread::sleep(Duration::from_millis(step * 2));
        job.child.kill().unwrap();
        job.assert_nothing_is_left();
    }
}

#[test]
fn a_killed_launcher_of_several_hosts_leaves_nothing() {
    let script = "sleep 1000 & echo ready; sleep 1001";
    // A remote shell that runs the agent right here.
    let args = [
        "-n",
        "4",
        "--hosts",
        "h1,h2",
        "--remote-shell",
        "env",
        "sh",
        "-c",
        script,
    ];
    let mut job = Job::start(mizzen(args));
    job.wait_for_lines(4, "ready");
    job.child.kill().unwrap();
    job.assert_nothing_is_left();
}

#[test]
fn a_killed_agent_leaves_nothing_and_is_reported() {
    let script = "sleep 1000 & echo ready; sleep 1001";
    let args = [
        "-n",
        "4",
        "--hosts",
        "h1,h2",
        "--remote-shell",
        "env",
        "sh",
        "-c",
        script,
    ];
    let mut job = Job::start(mizzen(args));
    job.wait_for_lines(4, "ready");
    let agent = job.processes().into_iter().find(|pid| {
        let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        command.ends_with(b"\0agent\0")
    });
    mizzen_shm::ProcessFd::open(agent.unwrap())
        .unwrap()
        .send_signal(9)
        .unwrap();
    assert_eq!(job.wait(), Some(255));
    let stderr = job.stderr();
    assert!(
        stderr.contains(" was lost: the remote shell `env` ended (signal: 9"),
        "{stderr}"
    );
    assert!(
        stderr.ends_with("; ended the other 2 processes.\n"),
        "{stderr}"
    );
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    job.assert_nothing_is_left();
}
