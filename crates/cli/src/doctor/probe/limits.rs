//! Limits of the system on processes and descriptors.

use rustix::process::Resource;

use super::super::report::Finding;
use super::cgroup::Groups;
use super::words;

pub(crate) fn look() -> Vec<Finding> {
    let files = rustix::process::getrlimit(Resource::Nofile);
    let users = rustix::process::getrlimit(Resource::Nproc).current;
    let group = Groups::of_this_process().tasks();
    let tasks = match (users, group) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    };
    vec![open_files(files.maximum), processes(tasks)]
}

/// The agent raises the soft limit to the hard one, so that the hard one counts.
fn open_files(limit: Option<u64>) -> Finding {
    let value = words::limit(limit, |limit| limit.to_string());
    match limit {
        Some(limit) if limit < FEW_FILES => Finding::warn(
            "open files",
            value,
            format!(
                "A host can have about {} processes of a job with so few descriptors; raise the hard limit (`ulimit -Hn`, \
                 docker: --ulimit nofile=65536).",
                limit / PER_PROCESS
            ),
        ),
        _ => Finding::ok("open files", value),
    }
}

fn processes(limit: Option<u64>) -> Finding {
    let value = words::limit(limit, |limit| limit.to_string());
    match limit {
        Some(limit) if limit < FEW_PROCESSES => Finding::warn(
            "processes and threads",
            value,
            "Few processes and threads may be started; raise the limit (`ulimit -u`, docker: --pids-limit).",
        ),
        _ => Finding::ok("processes and threads", value),
    }
}

/// Descriptors that an agent needs for each process.
const PER_PROCESS: u64 = 4;

/// The least that systems give by default.
const FEW_FILES: u64 = 1024;

/// A process has some threads, and the user other programs.
const FEW_PROCESSES: u64 = 256;

#[cfg(test)]
mod tests {
    use super::super::super::report::Verdict;
    use super::*;

    #[test]
    fn small_limits_are_warned_of() {
        assert_eq!(open_files(None).value, "unlimited");
        assert_eq!(open_files(Some(1024)).verdict, Verdict::Ok);
        let few = open_files(Some(64));
        assert_eq!(few.verdict, Verdict::Warn);
        assert!(few.advice.contains("about 16 processes"));
        assert_eq!(processes(Some(100)).verdict, Verdict::Warn);
        assert_eq!(processes(None).verdict, Verdict::Ok);
    }
}
