//! Running the command, and looking for what it leaves behind.

#![allow(dead_code, unreachable_pub, reason = "each test file uses a part")]

pub mod me;

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// The longest a test waits for what must happen.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A launcher, and a mark in the environment by which all processes of its job are found.
pub struct Job {
    pub child: Child,
    mark: String,
}

/// `mizzen run` with arguments.
pub fn mizzen<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mizzen"));
    command.arg("run").args(args).stdin(Stdio::null());
    command
}

/// This executable again, as a program that is started by `mizzen run` with these options, or alone if there are none.
pub fn itself(options: &[&str]) -> Command {
    let me = std::env::current_exe().expect("this program has a path");
    if options.is_empty() {
        return Command::new(me);
    }
    let mut command = mizzen(options);
    command.arg("--").arg(me);
    command
}

/// Runs to the end.
pub fn output<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Output {
    mizzen(args).output().unwrap()
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub fn sorted_lines(bytes: &[u8]) -> Vec<String> {
    let mut lines: Vec<String> = text(bytes).lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

impl Job {
    pub fn start(mut command: Command) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let mark = format!(
            "{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        let child = command
            .env("MIZZEN_TEST_MARK", &mark)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Self { child, mark }
    }

    /// Reads standard output until `count` lines contain `what`.
    pub fn wait_for_lines(&mut self, count: usize, what: &str) {
        let stdout = self.child.stdout.as_mut().unwrap();
        read_lines(stdout, count, what);
    }

    pub fn signal(&self, number: i32) {
        let process = mizzen_shm::ProcessFd::open(self.child.id()).unwrap();
        process.send_signal(number).unwrap();
    }

    /// All that it says on standard error until its end.
    pub fn stderr(&mut self) -> String {
        let mut bytes = Vec::new();
        let mut stderr = self.child.stderr.take().unwrap();
        stderr.read_to_end(&mut bytes).unwrap();
        text(&bytes)
    }

    /// The exit code, when it has ended.
    pub fn wait(&mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }

    /// All living processes of the job, the launcher and its guard among them.
    pub fn processes(&self) -> Vec<u32> {
        let mark = format!("MIZZEN_TEST_MARK={}", self.mark);
        let mut found = Vec::new();
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let Some(pid) = entry
                .file_name()
                .to_str()
                .and_then(|name| name.parse().ok())
            else {
                continue;
            };
            // Of a zombie this reads as empty: it runs nothing.
            let environ = std::fs::read(entry.path().join("environ")).unwrap_or_default();
            if environ
                .split(|byte| *byte == 0)
                .any(|variable| variable == mark.as_bytes())
            {
                found.push(pid);
            }
        }
        found
    }

    pub fn assert_nothing_is_left(&self) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = self.processes();
            if left.is_empty() {
                return;
            }
            assert!(Instant::now() < deadline, "left: {left:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Job {
    /// A failed test must not leave what it tests for.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read_lines(reader: impl std::io::Read, count: usize, what: &str) {
    // One byte at a time: what follows is left to the next reader.
    let mut reader = BufReader::with_capacity(1, reader);
    let mut found = 0;
    while found < count {
        let mut line = Vec::new();
        assert_ne!(
            reader.read_until(b'\n', &mut line).unwrap(),
            0,
            "the end came before {what:?}"
        );
        found += usize::from(text(&line).contains(what));
    }
}

/// A script in a directory of its own, removed at the end.
pub struct Script {
    directory: std::path::PathBuf,
}

impl Script {
    pub fn new(content: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "mizzen-test-{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir(&directory).unwrap();
        std::fs::write(directory.join("script"), content).unwrap();
        Self { directory }
    }

    pub fn directory(&self) -> &std::path::Path {
        &self.directory
    }

    pub fn path(&self) -> String {
        self.directory.join("script").to_str().unwrap().to_owned()
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// Two namespaces, joined by a cable. Removed at the end.
pub struct Namespaces {
    pub names: [String; 2],
}

impl Namespaces {
    pub fn new() -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let id = format!(
            "{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        let namespaces = Self {
            names: [format!("mza-{id}"), format!("mzb-{id}")],
        };
        let [a, b] = &namespaces.names;
        let made = ip(&["netns", "add", a])
            && ip(&["netns", "add", b])
            && ip(&[
                "link", "add", "mz0", "netns", a, "type", "veth", "peer", "name", "mz0", "netns", b,
            ])
            && ip(&["-n", a, "addr", "add", "10.77.0.1/24", "dev", "mz0"])
            && ip(&["-n", b, "addr", "add", "10.77.0.2/24", "dev", "mz0"])
            && ip(&["-n", a, "link", "set", "mz0", "up"])
            && ip(&["-n", b, "link", "set", "mz0", "up"]);
        if !made {
            eprintln!("skipped: network namespaces cannot be made here");
        }
        made.then_some(namespaces)
    }

    pub fn hosts(&self) -> String {
        format!("{}=10.77.0.1,{}=10.77.0.2", self.names[0], self.names[1])
    }

    /// Gives each a bridge such as container engines make: all hosts have the same.
    pub fn add_bridges(&self) -> bool {
        let made = self.names.iter().all(|name| {
            ip(&["-n", name, "link", "add", "docker0", "type", "bridge"])
                && ip(&["-n", name, "addr", "add", "172.17.0.1/16", "dev", "docker0"])
                && ip(&["-n", name, "link", "set", "docker0", "up"])
                && ip(&["-n", name, "link", "set", "lo", "up"])
        });
        if !made {
            eprintln!("skipped: bridges cannot be made here");
        }
        made
    }

    /// Lets the second send nothing back: packets to the first have no way.
    pub fn cut(&self) {
        assert!(ip(&["-n", &self.names[1], "route", "flush", "dev", "mz0"]));
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for name in &self.names {
            ip(&["netns", "del", name]);
        }
    }
}

/// Namespaces that are hosts on one switch, each with a cable that can be pulled. Removed at the end.
pub struct Cluster {
    switch: String,
    pub names: Vec<String>,
}

impl Cluster {
    pub fn new(hosts: usize) -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let id = format!(
            "{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        let cluster = Self {
            switch: format!("mzs-{id}"),
            names: (1..=hosts).map(|host| format!("mz{host}-{id}")).collect(),
        };
        let switch = &cluster.switch;
        let mut made = ip(&["netns", "add", switch])
            && ip(&["-n", switch, "link", "add", "br0", "type", "bridge"])
            && ip(&["-n", switch, "link", "set", "br0", "up"]);
        for (host, name) in (1..).zip(&cluster.names) {
            let port = format!("port{host}");
            let address = format!("10.78.0.{host}/24");
            made = made
                && ip(&["netns", "add", name])
                && ip(&[
                    "link", "add", "mz0", "netns", name, "type", "veth", "peer", "name", &port,
                    "netns", switch,
                ])
                // No chatter of IPv6 in what is counted.
                && ip(&["-n", name, "link", "set", "mz0", "addrgenmode", "none"])
                && ip(&["-n", name, "addr", "add", &address, "dev", "mz0"])
                && ip(&["-n", name, "link", "set", "mz0", "up"])
                && ip(&["-n", switch, "link", "set", &port, "master", "br0"])
                && ip(&["-n", switch, "link", "set", &port, "up"]);
        }
        if !made {
            eprintln!("skipped: network namespaces cannot be made here");
        }
        made.then_some(cluster)
    }

    /// For `--hosts`.
    pub fn hosts(&self) -> String {
        let one = |(host, name): (usize, &String)| format!("{name}=10.78.0.{}", host + 1);
        let all: Vec<String> = self.names.iter().enumerate().map(one).collect();
        all.join(",")
    }

    /// Pulls the cable of a host out of the switch, or puts it in again.
    pub fn set_cable(&self, host: usize, state: &str) {
        let port = format!("port{}", host + 1);
        // The host itself does not see it, as if the cable were cut further away.
        let args = ["-n", &self.switch, "link", "set", &port];
        let args = match state {
            "in" => [&args[..], &["master", "br0"]].concat(),
            _ => [&args[..], &["nomaster"]].concat(),
        };
        assert!(ip(&args));
    }

    /// Lets a host send nothing to another from now on.
    pub fn block(&self, host: usize, other: usize) {
        let to = format!("10.78.0.{}/32", other + 1);
        assert!(ip(&[
            "-n",
            &self.names[host],
            "route",
            "add",
            "blackhole",
            &to
        ]));
    }

    /// All processes of a host.
    pub fn processes(&self, host: usize) -> Vec<u32> {
        let mut command = Command::new("ip");
        let found = found_output(command.args(["netns", "pids", &self.names[host]]));
        text(&found)
            .lines()
            .filter_map(|pid| pid.trim().parse().ok())
            .collect()
    }

    /// Sends a signal to all processes of a host, agents included.
    pub fn signal(&self, host: usize, number: i32) {
        for pid in self.processes(host) {
            if let Ok(process) = mizzen_shm::ProcessFd::open(pid) {
                let _ = process.send_signal(number);
            }
        }
    }

    /// How many packets a host has sent.
    pub fn packets(&self, host: usize) -> u64 {
        let path = "/sys/class/net/mz0/statistics/tx_packets";
        let mut command = Command::new("ip");
        let found = command.args(["netns", "exec", &self.names[host], "cat", path]);
        text(&found_output(found)).trim().parse().unwrap()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for name in self.names.iter().chain([&self.switch]) {
            ip(&["netns", "del", name]);
        }
    }
}

fn found_output(command: &mut Command) -> Vec<u8> {
    command.output().unwrap().stdout
}

fn ip(args: &[&str]) -> bool {
    Command::new("ip")
        .args(args)
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}
