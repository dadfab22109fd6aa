//! The side of who asks.

use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};

use super::answer::Running;
use super::door::{WHY, is_left_over};
use super::folder;
use crate::hang::Hang;

/// How a job is: that of this launcher, or the only one of this user on this host.
pub(crate) fn ask(job: Option<u32>) -> anyhow::Result<Running> {
    let folder = folder::path();
    match folder::check(&folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => bail!("{NONE}"),
        checked => checked?,
    }
    match job {
        Some(pid) => ask_one(&folder, pid),
        None => ask_only(&folder),
    }
}

/// Why nothing happens in a job: that of this launcher, or the only one of this user on this host.
pub(crate) fn ask_why(job: Option<u32>) -> anyhow::Result<Hang> {
    let pid = ask(job)?.pid;
    let path = folder::path().join(format!("{pid}{WHY}"));
    let why = hear_bytes(&path, ROLL_CALL).and_then(|bytes| Hang::decode(&bytes));
    why.with_context(|| format!("the launcher {pid} does not say why nothing happens"))
}

fn ask_one(folder: &Path, pid: u32) -> anyhow::Result<Running> {
    let path = folder.join(pid.to_string());
    if !path.exists() || is_left_over(&path) {
        let others = all(folder)?;
        match &others[..] {
            [] => bail!("{NONE}"),
            others => bail!(
                "there is no job {pid}; there are, by the process id of `mizzen run`: {}",
                list(others)
            ),
        }
    }
    hear(&path).with_context(|| format!("the launcher {pid} does not say how its job is"))
}

fn ask_only(folder: &Path) -> anyhow::Result<Running> {
    let mut all = all(folder)?;
    match all.len() {
        0 => bail!("{NONE}"),
        1 => Ok(all.remove(0)),
        _ => bail!(
            "several jobs run; give one of them by the process id of its `mizzen run`, as in --job {}: {}",
            all[0].pid,
            list(&all)
        ),
    }
}

/// All jobs that answer. What killed launchers left behind is removed.
fn all(folder: &Path) -> anyhow::Result<Vec<Running>> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        // The other door of a job is for another question: who knocks there has the roll called.
        if path.to_string_lossy().ends_with(WHY) {
            continue;
        }
        if is_left_over(&path) {
            let _ = std::fs::remove_file(&path);
            let _ = std::fs::remove_file(path.with_extension(&WHY[1..]));
            continue;
        }
        all.extend(hear(&path));
    }
    all.sort_by_key(|running| running.pid);
    Ok(all)
}

fn hear(path: &Path) -> anyhow::Result<Running> {
    Running::decode(&hear_bytes(path, PATIENCE)?)
}

fn hear_bytes(path: &Path, patience: Duration) -> anyhow::Result<Vec<u8>> {
    let stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(patience))?;
    let mut bytes = Vec::new();
    stream.take(LONGEST).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn list(all: &[Running]) -> String {
    let all: Vec<String> = all.iter().map(Running::summary).collect();
    all.join(", ")
}

const NONE: &str = "no job of this user was started on this host and runs";
/// How long a launcher may say nothing. It answers between other things.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a roll-call takes at most, and one before it that is under way.
const ROLL_CALL: Duration = Duration::from_secs(15);
/// No job has as much to tell.
const LONGEST: u64 = 64 << 20;
