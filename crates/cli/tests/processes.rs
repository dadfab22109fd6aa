//! The scenarios among processes that the command starts: linked through shared segments, TCP, TLS and libfabric.
//!
//! A test starts its own executable again, as the ranks of a job. Over a network each rank is on a host of its own: the remote
//! shell runs all of them here, and the job's file, in `tests/networks`, says what is between them.

#[path = "../../mizzen/tests/scenarios/mod.rs"]
mod scenarios;
#[path = "../../ofi/tests/common/skip.rs"]
mod skip;

use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use mizzen::{Deck, Error, Result};
use rustix::process::{Signal, getpid, kill_process};
use scenarios::{Ended, Path, scenarios};

/// Which of the jobs of a scenario a process is a rank of: it comes past all of them.
const JOB: &str = "MIZZEN_TEST_JOB";
/// Before what a rank says of its end.
const ENDED: &str = "the rank has ended: ";
const WELL: &str = "well";

/// The file of a job over libfabric, which not every machine has.
const FABRIC: &str = "ofi.toml";

struct Processes {
    /// The file of the job; none if its ranks are on one host.
    file: Option<&'static str>,
    /// Jobs so far.
    jobs: AtomicU32,
}

impl Processes {
    fn on_one_host() -> Self {
        let jobs = AtomicU32::new(0);
        Self { file: None, jobs }
    }

    fn on_hosts(file: &'static str) -> Self {
        let jobs = AtomicU32::new(0);
        let file = Some(file);
        Self { file, jobs }
    }

    /// Runs the test that runs now, once more, as each rank of a job.
    fn start(&self, size: u32, job: u32) -> Output {
        let thread = std::thread::current();
        let test = thread.name().expect("a test's thread has its name");
        let mut command = Command::new(env!("CARGO_BIN_EXE_mizzen"));
        command.args(["run", "-n", &size.to_string(), "--on-death", "continue"]);
        if let Some(file) = self.file {
            let hosts: Vec<_> = (0..size).map(|host| format!("h{host}=127.0.0.1")).collect();
            let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/networks");
            command.args(["--hosts", &hosts.join(","), "--remote-shell", "env"]);
            command.args(["--file", &format!("{folder}/{file}")]);
        }
        let program = std::env::current_exe().expect("this program has a path");
        command.arg("--").arg(program);
        command.args([test, "--exact", "--nocapture"]);
        command.env(JOB, job.to_string()).stdin(Stdio::null());
        command.output().expect("the launcher starts")
    }
}

impl Path for Processes {
    fn run(&self, size: u32, body: &(dyn Fn(Deck) -> Result<()> + Sync)) -> Vec<Ended> {
        let job = self.jobs.fetch_add(1, Ordering::Relaxed);
        if std::env::var_os("MIZZEN_AGENT_FD").is_some() {
            if std::env::var(JOB).is_ok_and(|mine| mine == job.to_string()) {
                be_a_rank(body);
            }
            return vec![Ended::Well; size as usize];
        }
        let output = self.start(size, job);
        let said = String::from_utf8_lossy(&output.stdout);
        let ended: Vec<_> = (0..size).map(|rank| end_of(rank, &said)).collect();
        if ended.iter().any(|ended| *ended != Ended::Well) {
            // Shown if the test fails.
            println!("{said}{}", String::from_utf8_lossy(&output.stderr));
        }
        ended
    }

    fn is_here(&self) -> bool {
        if self.file != Some(FABRIC) {
            return true;
        }
        let providers = mizzen_ofi::providers();
        if let Err(why) = &providers {
            skip::skip(why);
        }
        providers.is_ok()
    }

    fn repetitions(&self) -> u32 {
        if self.file == Some(FABRIC) { 4 } else { 20 }
    }

    fn die(&self) -> Error {
        kill_process(getpid(), Signal::KILL).expect("a process may kill itself");
        unreachable!("it is dead");
    }
}

fn be_a_rank(body: &(dyn Fn(Deck) -> Result<()> + Sync)) -> ! {
    let outcome = Deck::join().and_then(body);
    match &outcome {
        Ok(()) => println!("\n{ENDED}{WELL}"),
        Err(error) => println!("\n{ENDED}{error}"),
    }
    std::process::exit(i32::from(outcome.is_err()));
}

/// How a rank ended, from what all of them said, each line with its rank.
fn end_of(rank: u32, said: &str) -> Ended {
    let before = format!("[{rank}] {ENDED}");
    match said.lines().find_map(|line| line.strip_prefix(&before)) {
        Some(WELL) => Ended::Well,
        Some(failure) => Ended::Failed(failure.into()),
        None => Ended::Died,
    }
}

scenarios!(segments = Processes::on_one_host());
scenarios!(tcp = Processes::on_hosts("tcp.toml"));
scenarios!(tls = Processes::on_hosts("tls.toml"));
scenarios!(ofi = Processes::on_hosts(FABRIC));
