//! Jobs on several hosts: network namespaces, with traffic between them only, and remote shells that fail.
//!
//! Namespaces need root and the `ip` command; without them those tests say so and pass.

mod common;

use common::{Job, Namespaces, Script, mizzen, output, sorted_lines, text};

const IN_NAMESPACE: &str = "ip netns exec {host}";

#[test]
fn ranks_are_dealt_to_hosts_in_blocks() {
    let Some(namespaces) = Namespaces::new() else {
        return;
    };
    let script = "ip -4 -o addr show mz0 | grep -o '10\\.77\\.0\\.[0-9]'";
    let run = output([
        "-n",
        "4",
        "--hosts",
        &namespaces.hosts(),
        "--remote-shell",
        IN_NAMESPACE,
        "sh",
        "-c",
        script,
    ]);
    assert_eq!(
        sorted_lines(&run.stdout),
        [
            "[0] 10.77.0.1",
            "[1] 10.77.0.1",
            "[2] 10.77.0.2",
            "[3] 10.77.0.2"
        ],
        "{}",
        text(&run.stderr)
    );
    assert_eq!(run.status.code(), Some(0));
}

#[test]
fn a_failure_on_another_host_is_told_with_its_name() {
    let Some(namespaces) = Namespaces::new() else {
        return;
    };
    let script = "ip -4 -o addr show mz0 | grep -q 10.77.0.2 && kill -9 $$; exec sleep 1000";
    let run = output([
        "-n",
        "2",
        "--hosts",
        &namespaces.hosts(),
        "--remote-shell",
        IN_NAMESPACE,
        "sh",
        "-c",
        script,
    ]);
    assert_eq!(run.status.code(), Some(137));
    let stderr = text(&run.stderr);
    assert!(
        stderr.starts_with(&format!("mizzen: rank 1 on {} (pid ", namespaces.names[1])),
        "{stderr}"
    );
    assert!(
        stderr.ends_with(") was killed by signal 9 (SIGKILL); ended the other process.\n"),
        "{stderr}"
    );
}

#[test]
fn a_killed_launcher_leaves_nothing_in_namespaces() {
    let Some(namespaces) = Namespaces::new() else {
        return;
    };
    let script = "sleep 1000 & echo ready; sleep 1001";
    let args = [
        "-n",
        "4",
        "--hosts",
        &namespaces.hosts(),
        "--remote-shell",
        IN_NAMESPACE,
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
fn signals_reach_processes_of_other_hosts() {
    let script = "trap 'echo got one' USR1; echo ready; while :; do sleep 0.02; done";
    let mut job = Job::start(mizzen([
        "-n",
        "4",
        "--hosts",
        "h1,h2",
        "--remote-shell",
        "env",
        "sh",
        "-c",
        script,
    ]));
    job.wait_for_lines(4, "ready");
    job.signal(10);
    job.wait_for_lines(4, "got one");
    job.signal(2);
    assert_eq!(job.wait(), Some(130));
    job.assert_nothing_is_left();
}

#[test]
fn processes_of_other_hosts_read_nothing() {
    let run = output([
        "-n",
        "2",
        "--hosts",
        "h1,h2",
        "--remote-shell",
        "env",
        "sh",
        "-c",
        "cat; echo done",
    ]);
    assert_eq!(sorted_lines(&run.stdout), ["[0] done", "[1] done"]);
}

/// One host answers, the other's remote shell does this.
fn with_shell(content: &str) -> (Option<i32>, String) {
    let script = Script::new(&format!(
        "host=$1; shift\nif [ $host = good ]; then exec \"$@\"; fi\n{content}"
    ));
    let shell = format!("sh {} {{host}}", script.path());
    let mut job = Job::start(mizzen([
        "-n",
        "2",
        "--hosts",
        "good,bad",
        "--remote-shell",
        &shell,
        "sleep",
        "1000",
    ]));
    let code = job.wait();
    let mut stderr = String::new();
    std::io::Read::read_to_string(&mut job.child.stderr.take().unwrap(), &mut stderr).unwrap();
    job.assert_nothing_is_left();
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    (code, stderr)
}

#[test]
fn an_unreachable_host_is_told_in_its_remote_shell_s_words() {
    let (code, stderr) =
        with_shell("echo ssh: connect to host bad port 22: No route to host >&2; exit 255");
    assert_eq!(code, Some(1));
    assert!(
        stderr.starts_with("mizzen: host bad cannot be reached: the remote shell `sh "),
        "{stderr}"
    );
    assert!(
        stderr.contains("exit status: 255") && stderr.contains("port 22: No route to host"),
        "{stderr}"
    );
}

#[test]
fn a_missing_agent_is_told() {
    let (code, stderr) = with_shell("exec /no/such/mizzen agent");
    assert_eq!(code, Some(1));
    assert!(
        stderr.contains("host bad cannot be reached") && stderr.contains("not found"),
        "{stderr}"
    );
}

#[test]
fn a_remote_shell_that_talks_is_quoted() {
    let (code, stderr) = with_shell("echo Welcome to bad; exec \"$@\"");
    assert_eq!(code, Some(1));
    assert!(
        stderr.contains("host bad answered with something that is not an agent: \"Welcome to bad"),
        "{stderr}"
    );
}

#[test]
fn an_agent_of_another_version_is_refused() {
    let (code, stderr) =
        with_shell("printf '\\013\\000\\000\\000\\001mizzen\\347\\003\\000\\000'; exec cat");
    assert_eq!(code, Some(1));
    assert!(
        stderr.contains("the mizzen command on bad speaks version 999, this one "),
        "{stderr}"
    );
}

#[test]
fn a_remote_shell_that_does_not_exist_is_told() {
    let run = output([
        "--hosts",
        "h1",
        "--remote-shell",
        "no-such-shell {host}",
        "true",
    ]);
    let stderr = text(&run.stderr);
    assert!(
        stderr.contains("the remote shell `no-such-shell h1` cannot be run; see --remote-shell"),
        "{stderr}"
    );
}

#[test]
fn a_job_that_waits_for_a_host_can_be_interrupted() {
    let script = Script::new("echo waiting >&2; exec sleep 1000");
    let shell = format!("sh {}", script.path());
    let mut job = Job::start(mizzen(["--hosts", "h1", "--remote-shell", &shell, "true"]));
    // The launcher takes signals before it starts any remote shell.
    while job.processes().len() < 2 {
        std::thread::yield_now();
    }
    job.signal(2);
    assert_eq!(job.wait(), Some(130));
    job.assert_nothing_is_left();
}
