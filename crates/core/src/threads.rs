//! Whether another thread of this OS process could still do something.
//!
//! A wait that only this process could end is hopeless if the thread that waits is the only one that runs code of the program.
//! What other threads hold cannot be known: they may have borrowed anything. So it is asked whether there are others at all,
//! apart from those of the runtime that never run code of the program.

use std::collections::BTreeSet;
use std::sync::Mutex;

use rustix::thread::{Pid, gettid};

use crate::lock::lock;

/// Threads that run no code of the program while they are noted here.
static OURS: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

/// Says that the thread runs no code of the program for as long as this lives. Dropped by the same thread.
pub(crate) struct Ours(i32);

impl Ours {
    pub(crate) fn enter() -> Self {
        let me = number(gettid());
        lock(&OURS).insert(me);
        Self(me)
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        lock(&OURS).remove(&self.0);
    }
}

/// Whether no other thread of this OS process runs code of the program. `false` also if that cannot be found out.
pub(crate) fn is_only_one() -> bool {
    let (before, listed) = (count(), list());
    let Some(listed) = listed else { return false };
    // The list may pass over a thread if another ends meanwhile; their number does not.
    if before != Some(listed.len()) || count() != before {
        return false;
    }
    let me = number(gettid());
    let ours = lock(&OURS);
    listed.iter().all(|id| *id == me || ours.contains(id))
}

fn number(id: Pid) -> i32 {
    id.as_raw_nonzero().get()
}

fn list() -> Option<Vec<i32>> {
    let mut threads = Vec::new();
    for entry in std::fs::read_dir("/proc/self/task").ok()? {
        threads.push(entry.ok()?.file_name().to_str()?.parse().ok()?);
    }
    Some(threads)
}

fn count() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("Threads:"))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_with_another_beside_it_is_not_the_only_one() {
        // The test harness has a thread of its own.
        assert!(!is_only_one());
        assert!(count().is_some() && list().is_some());
    }
}
