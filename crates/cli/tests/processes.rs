//! Messages and mailboxes among processes of one host, started by the command: the same scenarios that run among ranks of
//! one process. Each test starts its own executable again as the ranks of a job.

#[path = "../../mizzen/tests/scenarios/mod.rs"]
mod scenarios;

use std::process::{Command, Stdio};

use mizzen::{Deck, Error, Result};

/// Before the words of a rank that failed.
const FAILED: &str = "the rank failed: ";

fn run<T: Send>(size: u32, body: impl Fn(Deck) -> Result<T> + Sync) -> Result<Vec<T>> {
    if std::env::var_os("MIZZEN_AGENT_FD").is_some() {
        let outcome = Deck::join().map_err(Error::from).and_then(body);
        let code = outcome.map_or_else(
            |error| {
                eprintln!("{FAILED}{error}");
                1
            },
            |_| 0,
        );
        std::process::exit(code);
    }
    let thread = std::thread::current();
    let test = thread.name().expect("a test's thread has its name");
    let output = Command::new(env!("CARGO_BIN_EXE_mizzen"))
        .args(["run", "--no-label", "-n", &size.to_string(), "--"])
        .arg(std::env::current_exe().expect("this program has a path"))
        .args([test, "--exact", "--nocapture"])
        .stdin(Stdio::null())
        .output()
        .expect("the launcher starts");
    if output.status.success() {
        return Ok(Vec::new());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let reason = said
        .lines()
        .find_map(|line| line.strip_prefix(FAILED))
        .unwrap_or(&said);
    Err(Error::Program(reason.into()))
}
