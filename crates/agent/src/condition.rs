//! How the operating system sees a process: what `/proc` says of it, twice.

use std::collections::BTreeSet;
use std::fs;

use mizzen_proto::boot::Condition;

/// A process at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sample {
    /// The state of its first thread, as a letter of proc_pid_stat(5).
    state: u8,
    /// Processor time of all threads, in ticks.
    ticks: u64,
    /// The threads that run, or would if there were a core for them.
    running: BTreeSet<u32>,
}

impl Sample {
    /// The process as it is now, if it is there.
    pub(crate) fn take(pid: u32) -> Option<Self> {
        let (state, ticks) = read(&format!("/proc/{pid}/stat"))?;
        let mut running = BTreeSet::new();
        let threads = fs::read_dir(format!("/proc/{pid}/task")).ok()?;
        for thread in threads.flatten().take(MAX_THREADS) {
            let name = thread.file_name();
            let number = name.to_str().and_then(|name| name.parse().ok());
            let stat = thread.path().join("stat");
            let state = stat.to_str().and_then(read).map(|(state, _)| state);
            if let (Some(number), Some(b'R')) = (number, state) {
                running.insert(number);
            }
        }
        Some(Self {
            state,
            ticks,
            running,
        })
    }
}

/// What a process did between two moments.
pub(crate) fn between(before: Option<&Sample>, after: Option<&Sample>) -> Condition {
    let Some(after) = after else {
        return Condition::Unknown;
    };
    let before = before.unwrap_or(after);
    match (before.state, after.state) {
        (_, b'T' | b't') => return Condition::Stopped,
        (_, b'Z' | b'X' | b'x') => return Condition::Ended,
        (b'D', b'D') => return Condition::Stuck,
        _ => (),
    }
    // Threads that wait run for a moment now and then, as does the one that answers a roll-call.
    let has_worked = after.ticks >= before.ticks + LEAST_TICKS;
    match has_worked || !before.running.is_disjoint(&after.running) {
        true => Condition::Computes,
        false => Condition::Sleeps,
    }
}

/// The state of a process or thread, and its processor time.
fn read(path: &str) -> Option<(u8, u64)> {
    parse(&fs::read(path).ok()?)
}

/// The name of a program, in parentheses, may hold anything.
fn parse(stat: &[u8]) -> Option<(u8, u64)> {
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(stat.get(end + 1..)?).ok()?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let state = fields.first()?.bytes().next()?;
    let user: u64 = fields.get(11)?.parse().ok()?;
    let system: u64 = fields.get(12)?.parse().ok()?;
    Some((state, user.saturating_add(system)))
}

/// How many threads of a process are looked at: one that runs is mostly among the first.
const MAX_THREADS: usize = 256;
/// Ticks, of a hundredth of a second, in which a process has done something, rather than waited.
const LEAST_TICKS: u64 = 3;

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    fn sample(state: u8, ticks: u64, running: &[u32]) -> Sample {
        Sample {
            state,
            ticks,
            running: running.iter().copied().collect(),
        }
    }

    #[test]
    fn a_name_may_look_like_the_rest() {
        let stat = b"7 (a) R (b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14";
        assert_eq!(parse(stat), Some((b'S', 23)));
        assert_eq!(parse(b"7 (a"), None);
        assert_eq!(parse(b"7 (a) S 1 2"), None);
        assert_eq!(parse(b""), None);
    }

    #[test]
    fn a_process_computes_if_a_thread_runs_all_the_time_or_time_goes_by() {
        let sleeps = sample(b'S', 7, &[]);
        let between = |a: &Sample, b: &Sample| between(Some(a), Some(b));
        assert_eq!(between(&sleeps, &sleeps), Condition::Sleeps);
        let answers = sample(b'S', 7, &[2]);
        assert_eq!(between(&sleeps, &answers), Condition::Sleeps);
        assert_eq!(between(&answers, &answers), Condition::Computes);
        assert_eq!(
            between(&sleeps, &sample(b'S', 20, &[])),
            Condition::Computes
        );
        assert_eq!(between(&sleeps, &sample(b'T', 7, &[])), Condition::Stopped);
        let stuck = sample(b'D', 7, &[]);
        assert_eq!(between(&stuck, &stuck), Condition::Stuck);
        assert_eq!(between(&stuck, &sleeps), Condition::Sleeps);
    }

    #[test]
    fn this_process_computes_when_it_does() {
        let me = std::process::id();
        let before = Sample::take(me);
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(200) {
            std::hint::spin_loop();
        }
        let after = Sample::take(me);
        assert_eq!(
            between(before.as_ref(), after.as_ref()),
            Condition::Computes
        );
        assert_eq!(between(None, None), Condition::Unknown);
    }
}
