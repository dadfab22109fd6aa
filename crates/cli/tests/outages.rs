//! Hosts that are cut off, stopped and killed: namespaces on a switch. Who is pronounced lost, when, and what is said.
//!
//! Namespaces need root and the `ip` command; without them those tests say so and pass.

mod common;

use std::io::{BufRead, BufReader, Read};
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use common::me::Me;
use common::{Cluster, Job, PATIENCE, itself};
use mizzen_proto::boot::ToProcess;

/// What says to a process of a job how it is to behave.
const UNTIL: &str = "MIZZEN_TEST_DEATHS";

/// A job on all hosts of a cluster, one process each, and what it prints.
struct Running {
    job: Job,
    lines: Receiver<String>,
    stderr: Option<std::thread::JoinHandle<String>>,
}

impl Running {
    /// Its processes print the deaths that they are told of, and end after so many.
    fn deaths(cluster: &Cluster, options: &[&str], deaths: usize) -> Self {
        let hosts = cluster.hosts();
        let size = cluster.names.len().to_string();
        let always = [
            "-n",
            &size,
            "--hosts",
            &hosts,
            "--remote-shell",
            "ip netns exec {host}",
        ];
        let mut command = itself(&[&always[..], options].concat());
        command
            .args(["--ignored", "--nocapture", "--exact", "a_process_of_a_job"])
            .env(UNTIL, deaths.to_string());
        Self::start(command)
    }

    fn start(command: Command) -> Self {
        let mut job = Job::start(command);
        let stdout = job.child.stdout.take().unwrap();
        let mut stderr = job.child.stderr.take().unwrap();
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        let stderr = std::thread::spawn(move || {
            let mut text = String::new();
            let _ = stderr.read_to_string(&mut text);
            text
        });
        let stderr = Some(stderr);
        Self { job, lines, stderr }
    }

    /// The next lines with this word in it, as many as asked for, sorted.
    fn lines(&self, count: usize, word: &str) -> Vec<String> {
        let deadline = Instant::now() + PATIENCE;
        let mut found = Vec::new();
        while found.len() < count {
            let left = deadline.saturating_duration_since(Instant::now());
            let line = self.lines.recv_timeout(left);
            let line = line.unwrap_or_else(|_| panic!("no more {word:?} after {found:?}"));
            if line.contains(word) {
                found.push(line);
            }
        }
        found.sort();
        found
    }

    fn end(mut self) -> (Option<i32>, String) {
        let code = self.job.wait();
        let said = self.stderr.take().unwrap().join().unwrap();
        self.job.assert_nothing_is_left();
        (code, said)
    }
}

/// Prints what the agent tells of deaths, in order. Run by the tests above.
#[test]
#[ignore = "run by the others, as a process of a job"]
fn a_process_of_a_job() {
    let Ok(deaths) = std::env::var(UNTIL) else {
        return;
    };
    let me = Me::boot();
    println!("\nready");
    for _ in 0..deaths.parse().unwrap() {
        match me.hear() {
            Some(ToProcess::Died {
                rank,
                incarnation,
                how,
            }) => println!("\ndied {rank}.{incarnation} {how:?}"),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_host_that_is_cut_off_for_two_seconds_is_nobody_s_death() {
    let Some(cluster) = Cluster::new(3) else {
        return;
    };
    let hosts = cluster.hosts();
    let mut command = common::mizzen(["-n", "3", "--hosts", &hosts, "--remote-shell"]);
    command.args(["ip netns exec {host}", "sh", "-c", "echo ready; sleep 6"]);
    let job = Running::start(command);
    job.lines(3, "ready");
    cluster.set_cable(2, "out");
    std::thread::sleep(Duration::from_secs(2));
    cluster.set_cable(2, "in");
    assert_eq!(job.end(), (Some(0), String::new()));
}

#[test]
fn a_host_that_only_the_first_cannot_reach_lives_by_way_of_others() {
    let Some(cluster) = Cluster::new(3) else {
        return;
    };
    let hosts = cluster.hosts();
    let mut command = common::mizzen(["-n", "3", "--pace", "fast", "--hosts", &hosts]);
    command.args(["--remote-shell", "ip netns exec {host}", "sh", "-c"]);
    command.arg("echo ready; sleep 9");
    let job = Running::start(command);
    job.lines(3, "ready");
    cluster.block(2, 0);
    // By its silence it would be lost after 4.5 s.
    assert_eq!(job.end(), (Some(0), String::new()));
}

#[test]
fn a_job_whose_hosts_do_not_reach_each_other_is_not_started() {
    let Some(cluster) = Cluster::new(2) else {
        return;
    };
    cluster.set_cable(1, "out");
    let job = Running::deaths(&cluster, &[], 1);
    let (code, said) = job.end();
    assert_eq!(code, Some(1), "{said}");
    let name = &cluster.names[1];
    let expected = format!("mizzen: the agent of {name} did not reach that of the first host at ");
    assert!(said.starts_with(&expected), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}

#[test]
fn a_host_that_is_cut_off_for_longer_is_lost_the_same_everywhere_and_ends_itself() {
    let Some(cluster) = Cluster::new(4) else {
        return;
    };
    let options = ["--pace", "fast", "--on-death", "continue"];
    let job = Running::deaths(&cluster, &options, 1);
    job.lines(4, "ready");
    cluster.set_cable(2, "out");
    let told = job.lines(3, "died");
    let expected = [0, 1, 3].map(|rank| format!("[{rank}] died 2.0 HostLost"));
    assert_eq!(told, expected);
    let (code, said) = job.end();
    assert_eq!(code, Some(0), "{said}");
    let name = &cluster.names[2];
    let lines: Vec<&str> = said.lines().collect();
    let fenced = format!(
        "mizzen: host {name} has not heard the first host, which decides for the job, for 2.5 s, and ended its process; check \
         the network between them, or be more patient (see --pace)."
    );
    let lost = format!(
        "mizzen: host {name} was lost: nothing was heard of it for 4.5 s; the others go on."
    );
    assert_eq!(lines, [fenced, lost]);
}

#[test]
fn the_loss_of_the_first_host_ends_the_job() {
    let Some(cluster) = Cluster::new(3) else {
        return;
    };
    let options = ["--on-death", "continue"];
    let job = Running::deaths(&cluster, &options, 1);
    job.lines(3, "ready");
    cluster.signal(0, 9);
    let (code, said) = job.end();
    assert_eq!(code, Some(255), "{said}");
    let name = &cluster.names[0];
    assert!(
        said.starts_with(&format!("mizzen: host {name} was lost: ")),
        "{said}"
    );
    assert!(said.ends_with("; ended the other 2 processes.\n"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}

#[test]
fn the_others_end_when_the_first_host_is_cut_off() {
    let Some(cluster) = Cluster::new(3) else {
        return;
    };
    let options = ["--pace", "fast", "--on-death", "continue"];
    let job = Running::deaths(&cluster, &options, 2);
    job.lines(3, "ready");
    cluster.set_cable(0, "out");
    let told = job.lines(2, "died");
    assert_eq!(told, ["[0] died 1.0 HostLost", "[0] died 2.0 HostLost"]);
    let (code, said) = job.end();
    assert_eq!(code, Some(0), "{said}");
    let fenced = said
        .lines()
        .filter(|line| line.contains("has not heard the first host"));
    assert_eq!(fenced.count(), 1, "{said}");
}

#[test]
fn a_host_of_which_all_is_killed_is_lost_at_once() {
    let Some(cluster) = Cluster::new(4) else {
        return;
    };
    let job = Running::deaths(&cluster, &["--on-death", "continue"], 1);
    job.lines(4, "ready");
    let began = Instant::now();
    cluster.signal(3, 9);
    let told = job.lines(3, "died");
    let took = began.elapsed();
    let expected = [0, 1, 2].map(|rank| format!("[{rank}] died 3.0 HostLost"));
    assert_eq!(told, expected);
    println!("told after {took:?}");
    // By its silence it would take 12 s.
    assert!(took < Duration::from_secs(6), "{took:?}");
    let (code, said) = job.end();
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}

#[test]
fn a_host_that_stands_still_for_less_than_the_lease_is_nobody_s_death() {
    let Some(cluster) = Cluster::new(3) else {
        return;
    };
    let hosts = cluster.hosts();
    let mut command = common::mizzen(["-n", "3", "--hosts", &hosts, "--remote-shell"]);
    command.args(["ip netns exec {host}", "sh", "-c", "echo ready; sleep 8"]);
    let job = Running::start(command);
    job.lines(3, "ready");
    for host in [1, 0] {
        cluster.signal(host, 19);
        std::thread::sleep(Duration::from_secs(3));
        cluster.signal(host, 18);
    }
    assert_eq!(job.end(), (Some(0), String::new()));
}

#[test]
fn a_process_that_stands_still_for_longer_than_a_host_may_is_nobody_s_death() {
    let Some(cluster) = Cluster::new(2) else {
        return;
    };
    let hosts = cluster.hosts();
    let mut command = common::mizzen(["-n", "2", "--pace", "fast", "--hosts", &hosts]);
    command.args(["--remote-shell", "ip netns exec {host}", "sh", "-c"]);
    command.arg("echo pid $$; exec sleep 7");
    let job = Running::start(command);
    for line in job.lines(2, "pid") {
        let pid = line.rsplit(' ').next().unwrap().parse().unwrap();
        let process = mizzen_shm::ProcessFd::open(pid).unwrap();
        process.send_signal(19).unwrap();
        std::thread::sleep(Duration::from_secs(3));
        process.send_signal(18).unwrap();
    }
    assert_eq!(job.end(), (Some(0), String::new()));
}

#[test]
fn an_idle_job_sends_two_packets_a_second_for_each_agent() {
    let Some(cluster) = Cluster::new(4) else {
        return;
    };
    let hosts = cluster.hosts();
    let mut command = common::mizzen(["-n", "4", "--hosts", &hosts, "--remote-shell"]);
    command.args(["ip netns exec {host}", "sh", "-c", "echo ready; sleep 9"]);
    let job = Running::start(command);
    job.lines(4, "ready");
    // What was said at the start is acknowledged by then.
    std::thread::sleep(Duration::from_secs(1));
    let count = || [0, 1, 2, 3].map(|host| cluster.packets(host));
    let (began, before) = (Instant::now(), count());
    std::thread::sleep(Duration::from_secs(6));
    let (after, seconds) = (count(), began.elapsed().as_secs_f64());
    for host in 0..4 {
        let rate = (after[host] - before[host]) as f64 / seconds;
        println!("host {host}: {rate:.2} packets a second");
        // The first host answers three others; some packets are of the network itself (ARP).
        let most = if host == 0 { 3.0 * 2.0 } else { 2.0 };
        assert!(rate <= most + 0.5, "host {host}: {rate} packets a second");
    }
    assert_eq!(job.end(), (Some(0), String::new()));
}
