//! `mizzen topo` of a job that runs.

mod common;

use std::process::{Command, Output};
use std::time::{Duration, Instant};

use common::{Job, PATIENCE, Script, mizzen, text};

/// Two hosts with a process each, on two networks, and two hosts between them.
const FILE: &str = "[[network]]\nname = \"a\"\nhosts = [\"x\", \"g\", \"h\"]\n\
    [[network]]\nname = \"b\"\nhosts = [\"g\", \"h\", \"y\"]\n";

fn start(file: &Script) -> Job {
    let path = file.path();
    let options = [
        &["-n", "2", "--hosts", "x,y", "--gateways", "g,h"][..],
        &["--remote-shell", "env ON={host}", "--on-death", "continue"],
        &["--file", &path, "--pace", "fast"],
        &["sh", "-c", "echo ready; exec sleep 60"],
    ];
    let mut job = Job::start(mizzen(options.concat()));
    job.wait_for_lines(2, "ready");
    job
}

fn topo(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mizzen"));
    command.arg("topo").args(args).output().unwrap()
}

/// Ends the processes of a job that have this in their environment.
fn kill(job: &Job, variable: &str) {
    let has_it = |pid: &u32| {
        let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let mut variables = environ.split(|byte| *byte == 0);
        variables.any(|one| one == variable.as_bytes())
    };
    let found: Vec<u32> = job.processes().into_iter().filter(has_it).collect();
    assert!(!found.is_empty(), "nobody has {variable}");
    for pid in found {
        let process = mizzen_shm::ProcessFd::open(pid);
        process.map(|process| process.send_signal(9)).ok();
    }
}

/// Asks until the answer has what it must have in the end.
fn ask_until(args: &[&str], what: &str) -> String {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let answer = text(&topo(args).stdout);
        if answer.contains(what) {
            return answer;
        }
        assert!(Instant::now() < deadline, "no {what:?} in {answer}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_job_that_runs_shows_the_way_around_what_is_gone() {
    let file = Script::new(FILE);
    let mut job = start(&file);
    let pid = job.child.id().to_string();
    let args = ["--job", &pid];
    let answer = ask_until(&args, "2 processes, started");
    assert!(answer.starts_with(&format!("job {pid} (sh): ")), "{answer}");
    let (first, second) = match answer.contains("x -- a --> g -- b --> y.") {
        true => ("g", "h"),
        false => ("h", "g"),
    };
    assert!(
        answer.contains(&format!("x -- a --> {first} -- b --> y.")),
        "{answer}"
    );
    kill(&job, &format!("ON={first}"));
    let answer = ask_until(&args, &format!("x -- a --> {second} -- b --> y."));
    assert!(answer.contains(&format!("gone: {first}\n")), "{answer}");
    kill(&job, &format!("ON={second}"));
    ask_until(
        &args,
        "no way on the channel default; hosts that were on it are gone.",
    );
    assert_eq!(topo(&args).status.code(), Some(1));
    job.signal(15);
    job.wait();
    job.assert_nothing_is_left();
    let after = text(&topo(&args).stderr);
    let is_told =
        after.contains("no job of this user") || after.contains(&format!("no job {pid};"));
    assert!(is_told, "{after}");
}

#[test]
fn a_job_that_runs_says_who_has_ended_as_json_too() {
    let file = Script::new(FILE);
    let job = start(&file);
    let pid = job.child.id().to_string();
    kill(&job, "MIZZEN_RANK=1");
    let answer = ask_until(&["--job", &pid], "2 processes, 1 ended");
    let how = "rank 1 was killed by signal 9 (SIGKILL)";
    assert!(
        answer.contains(how) && answer.contains("rank 1 has ended."),
        "{answer}"
    );
    let json = text(&topo(&["--job", &pid, "--json"]).stdout);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        json["job"]["ended"]["1"],
        "was killed by signal 9 (SIGKILL)"
    );
}

#[test]
fn a_launcher_that_is_killed_leaves_nothing_that_answers() {
    let mut job = Job::start(mizzen(["sh", "-c", "echo ready; exec sleep 60"]));
    job.wait_for_lines(1, "ready");
    let pid = job.child.id().to_string();
    ask_until(&["--job", &pid], "1 process, started");
    job.child.kill().unwrap();
    job.wait();
    let answer = topo(&["--job", &pid]);
    assert_ne!(answer.status.code(), Some(0));
    assert!(answer.stdout.is_empty());
    job.assert_nothing_is_left();
}

#[test]
fn a_job_is_planned_or_runs() {
    let both = topo(&["--job", "1", "--hosts", "a,b"]);
    assert_eq!(both.status.code(), Some(2));
    assert!(text(&both.stderr).contains("cannot be used with"));
}
