//! `mizzen doctor`: this host, several that are simulated, some that do not answer, and two namespaces.

mod common;

use std::process::{Command, Output};
use std::time::{Duration, Instant};

use common::{Job, Namespaces, Script, text};
use serde_json::Value;

fn doctor(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mizzen"));
    command.arg("doctor").args(args);
    command
}

fn output(args: &[&str]) -> Output {
    doctor(args).output().unwrap()
}

/// What is printed as JSON, and the exit code.
fn json(args: &[&str]) -> (Value, i32) {
    let run = output(&[args, &["--json"]].concat());
    assert_eq!(text(&run.stderr), "");
    let stdout = text(&run.stdout);
    assert_eq!(stdout.lines().count(), 1, "{stdout}");
    (
        serde_json::from_str(&stdout).unwrap(),
        run.status.code().unwrap(),
    )
}

fn finding<'a>(host: &'a Value, what: &str) -> &'a Value {
    let findings = host["report"]["findings"].as_array().unwrap();
    let found = findings.iter().find(|finding| finding["what"] == what);
    found.unwrap_or_else(|| panic!("no {what} in {findings:?}"))
}

/// Hosts that are all this one.
const SIMULATED: [&str; 4] = ["--hosts", "a,b", "--remote-shell", "env MZ={host}"];

#[test]
fn this_host_gets_a_table_and_a_verdict() {
    let run = output(&[]);
    let stdout = text(&run.stdout);
    assert_eq!(run.status.code(), Some(0), "{stdout}{}", text(&run.stderr));
    for what in [
        "cores",
        "memory limit",
        "shared segments",
        "membarrier",
        "interface lo",
        "TCP buffers",
    ] {
        let begins = format!(" {what} ");
        assert!(
            stdout.lines().any(|line| line.starts_with(&begins)),
            "{stdout}"
        );
    }
    let last = stdout.lines().last().unwrap();
    assert!(last.starts_with("Ready"), "{stdout}");
    assert!(
        stdout
            .lines()
            .all(|line| line.chars().count() < 130 || line.contains(": ")),
        "{stdout}"
    );
}

#[test]
fn this_host_is_told_as_json() {
    let (said, code) = json(&[]);
    assert_eq!((code, &said["ready"]), (0, &Value::Bool(true)), "{said}");
    let host = &said["hosts"][0];
    assert_eq!(host["report"]["mizzen"], env!("CARGO_PKG_VERSION"));
    for what in [
        "shared segments",
        "process descriptors",
        "cores",
        "locked memory",
        "open files",
    ] {
        assert_eq!(finding(host, what)["verdict"], "ok", "{said}");
    }
    // Really tried, on a child of the real command.
    let reading = finding(host, "reading other processes")["value"]
        .as_str()
        .unwrap();
    assert!(
        ["works", "not permitted"].contains(&reading) || reading.starts_with("not in"),
        "{reading}"
    );
    assert_eq!(said["connections"].as_array().unwrap().len(), 0);
}

#[test]
fn simulated_hosts_connect_to_each_other() {
    let (said, code) = json(&SIMULATED);
    assert_eq!(code, 0, "{said}");
    let hosts = said["hosts"].as_array().unwrap();
    assert_eq!(hosts.len(), 2);
    for host in hosts {
        assert_eq!(host["failure"], Value::Null, "{said}");
        assert!(
            host["clock"]["ahead_ns"].as_i64().unwrap().abs() < 1_000_000_000,
            "{said}"
        );
    }
    for (from, to) in [("a", "b"), ("b", "a")] {
        let tried = said["connections"].as_array().unwrap().iter();
        let mut works = tried
            .filter(|one| one["from"] == from && one["to"] == to && one["connect_ns"].is_u64());
        assert!(works.next().is_some(), "{said}");
    }
}

#[test]
fn several_hosts_are_columns() {
    let run = output(&SIMULATED);
    let stdout = text(&run.stdout);
    let header = stdout.lines().nth(1).unwrap();
    assert_eq!(
        header.split_whitespace().collect::<Vec<_>>(),
        ["what", "a", "b", "verdict"]
    );
    assert!(stdout.contains("Clocks beside this host's: a "), "{stdout}");
    assert!(
        stdout.lines().any(|line| line.starts_with(" from a ")),
        "{stdout}"
    );
}

#[test]
fn a_bound_address_is_the_one_that_is_tried() {
    let (said, code) = json(&[
        "--hosts",
        "a=127.0.0.1,b=127.0.0.2",
        "--remote-shell",
        "env",
    ]);
    assert_eq!(code, 0, "{said}");
    let tried = said["connections"].as_array().unwrap();
    assert_eq!(tried.len(), 2, "{said}");
    for (one, address) in tried.iter().zip(["127.0.0.2", "127.0.0.1"]) {
        assert_eq!(one["address"], address, "{said}");
        assert!(one["connect_ns"].is_u64(), "{said}");
    }
}

#[test]
fn an_address_of_nobody_is_bad() {
    let (said, code) = json(&["--hosts", "a=203.0.113.77,b", "--remote-shell", "env"]);
    assert_eq!(code, 1, "{said}");
    assert!(
        said["summary"].as_str().unwrap().starts_with("Not ready: "),
        "{said}"
    );
    assert_eq!(
        finding(&said["hosts"][0], "listening at 203.0.113.77")["verdict"],
        "bad"
    );
    let run = output(&["--hosts", "a=nonsense", "--remote-shell", "env"]);
    assert!(text(&run.stderr).contains("\"nonsense\" is not an address"));
}

/// One host answers, the other's remote shell does this.
fn with_shell(content: &str) -> (Value, i32) {
    let script = Script::new(&format!(
        "host=$1; shift\nif [ $host = good ]; then exec \"$@\"; fi\n{content}"
    ));
    let shell = format!("sh {} {{host}}", script.path());
    // The good one must answer within this on a busy machine too.
    let patience = ["--patience", "15"];
    json(
        &[
            &["--hosts", "good,bad", "--remote-shell", &shell][..],
            &patience,
        ]
        .concat(),
    )
}

#[track_caller]
fn assert_told(content: &str, part: &str) {
    let (said, code) = with_shell(content);
    assert_eq!(code, 1, "{said}");
    assert_eq!(said["summary"], "Not ready: no report from bad.", "{said}");
    let failure = said["hosts"][1]["failure"].as_str().unwrap();
    assert!(failure.contains(part), "{failure}");
    // The other is looked at all the same.
    assert_eq!(
        finding(&said["hosts"][0], "shared segments")["verdict"],
        "ok"
    );
}

#[test]
fn an_unreachable_host_is_a_finding() {
    assert_told(
        "echo No route to host >&2; exit 255",
        "saying \"No route to host\"",
    );
}

#[test]
fn a_host_without_the_command_is_a_finding() {
    assert_told("exec /no/such/mizzen doctor-side", "not found");
}

#[test]
fn a_remote_shell_that_talks_is_a_finding() {
    assert_told(
        "echo Welcome to bad; exec \"$@\"",
        "answered \"Welcome to bad",
    );
}

#[test]
fn a_remote_shell_that_says_little_and_ends_is_a_finding() {
    assert_told("printf Hi", "printing \"Hi\"");
}

#[test]
fn a_side_of_another_version_is_a_finding() {
    assert_told(
        "printf '\\002\\000\\000\\000{}'; exec cat",
        "another version of mizzen",
    );
}

#[test]
fn a_side_that_says_too_much_is_a_finding() {
    assert_told("yes", "answered \"y\\ny\\n");
    assert_told(
        "head -c 9000000 /dev/zero; exec cat",
        "another version of mizzen",
    );
}

#[test]
fn a_remote_shell_that_does_not_exist_is_a_finding() {
    let (said, code) = json(&["--hosts", "a", "--remote-shell", "no-such-shell {host}"]);
    assert_eq!(code, 1);
    let failure = said["hosts"][0]["failure"].as_str().unwrap();
    assert!(
        failure.contains("`no-such-shell a` cannot be run"),
        "{failure}"
    );
}

#[test]
fn a_host_that_hangs_does_not_keep_us() {
    let start = Instant::now();
    assert_told("exec sleep 1000", "did not answer in time");
    assert!(start.elapsed() < Duration::from_secs(45));
}

#[test]
fn a_killed_doctor_leaves_nothing() {
    // One answers and stays, for the other does not answer.
    let script = Script::new("if [ $1 = a ]; then shift; exec \"$@\"; fi; exec cat >/dev/null");
    let shell = format!("sh {} {{host}}", script.path());
    let mut job = Job::start(doctor(&["--hosts", "a,b", "--remote-shell", &shell]));
    while job.processes().len() < 3 {
        std::thread::yield_now();
    }
    job.child.kill().unwrap();
    job.assert_nothing_is_left();
}

#[test]
fn two_namespaces_are_two_hosts() {
    let Some(namespaces) = Namespaces::new() else {
        return;
    };
    let hosts = namespaces.names.join(",");
    let (said, code) = json(&["--hosts", &hosts, "--remote-shell", "ip netns exec {host}"]);
    assert_eq!(code, 0, "{said}");
    let tried = said["connections"].as_array().unwrap();
    assert_eq!(tried.len(), 2, "{said}");
    for one in tried {
        assert_eq!(
            (&one["from_interface"], &one["to_interface"]),
            (&"mz0".into(), &"mz0".into()),
            "{said}"
        );
        assert!(
            one["connect_ns"].as_u64().unwrap() < 1_000_000_000,
            "{said}"
        );
    }
    // Loopback is down in a new namespace.
    let remark = said["remarks"]
        .as_array()
        .unwrap()
        .iter()
        .find(|remark| remark["what"] == "interface lo");
    assert_eq!(remark.unwrap()["hosts"].as_array().unwrap().len(), 2);
}

#[test]
fn a_bridge_within_each_host_is_noted() {
    let Some(namespaces) = Namespaces::new() else {
        return;
    };
    if !namespaces.add_bridges() {
        return;
    }
    let hosts = namespaces.names.join(",");
    let (said, code) = json(&["--hosts", &hosts, "--remote-shell", "ip netns exec {host}"]);
    assert_eq!(code, 0, "{said}");
    let remarks = said["remarks"].as_array().unwrap();
    let about = |what: &str| {
        let found = remarks.iter().find(|remark| remark["what"] == what);
        found.unwrap_or_else(|| panic!("nothing about {what}: {said}"))
    };
    assert_eq!(about("interface docker0")["verdict"], "note");
    // Each has the address itself, and finds nobody there, or not the one it looks for.
    for (name, address) in namespaces.names.iter().zip(["10.77.0.1", "10.77.0.2"]) {
        let remark = about(&format!("connecting to {name}"));
        let advice = remark["advice"].as_str().unwrap();
        assert!(advice.contains("172.17.0.1 (docker0): refused"), "{advice}");
        assert!(
            advice.contains(&format!("--hosts {name}={address}")),
            "{advice}"
        );
    }
}

#[test]
fn a_cable_that_is_cut_is_bad() {
    let Some(namespaces) = Namespaces::new() else {
        return;
    };
    namespaces.cut();
    let hosts = namespaces.hosts();
    let (said, code) = json(&["--hosts", &hosts, "--remote-shell", "ip netns exec {host}"]);
    assert_eq!(code, 1, "{said}");
    let summary = said["summary"].as_str().unwrap();
    assert!(
        summary.starts_with("Not ready: connecting to mz"),
        "{summary}"
    );
}
