//! What the kernel, or a sandbox around us, lets a job do: not read from settings, but tried.

use std::os::fd::AsFd;

use mizzen_shm::{Access, Fault, ProcessFd, Segment, View, barrier};

use super::super::report::Finding;
use super::read::read;
use super::readable;

pub(crate) fn look() -> Vec<Finding> {
    vec![
        segments(),
        process_descriptors(),
        memory_barrier(),
        ptrace_scope(read("/proc/sys/kernel/yama/ptrace_scope").as_deref()),
        reading(),
    ]
}

/// Makes a segment, seals it and maps it again, as two processes do.
fn segments() -> Finding {
    let tried = || -> Result<(), String> {
        let segment = Segment::create("mizzen-doctor", SEGMENT, Fault::Now)
            .map_err(|error| error.to_string())?;
        let fd = segment.fd().as_fd().try_clone_to_owned();
        let fd = fd.map_err(|error| error.to_string())?;
        let view = View::attach(fd, SEGMENT, Access::ReadOnly, Fault::Now);
        view.map(drop).map_err(|error| error.to_string())
    };
    match tried() {
        Ok(()) => Finding::ok("shared segments", "work"),
        Err(why) => Finding::bad(
            "shared segments",
            why,
            "Processes of this host exchange messages through sealed memory (memfd_create, fcntl F_ADD_SEALS), which is refused \
             here; allow these calls in the container's seccomp profile, and give it memory.",
        ),
    }
}

/// Agents watch processes by descriptor.
fn process_descriptors() -> Finding {
    match ProcessFd::open(std::process::id()) {
        Ok(process) if !process.is_dead() => Finding::ok("process descriptors", "work"),
        other => {
            let why = other.err().map(|error| error.to_string());
            Finding::bad(
                "process descriptors",
                why.unwrap_or_else(|| "wrong answer".to_owned()),
                "Deaths of processes are seen by pidfd_open, which is refused here; it needs Linux 5.3, and a seccomp profile that \
                 allows it.",
            )
        }
    }
}

/// Senders leave out their fence if sleepers can make it for them.
fn memory_barrier() -> Finding {
    match barrier::everywhere() {
        Some(fence) => {
            fence();
            Finding::ok("membarrier", "works")
        }
        None => Finding::note(
            "membarrier",
            "refused",
            "Senders make a memory fence with each message instead, at about half the rate; allow the call in the container's \
             seccomp profile.",
        ),
    }
}

fn ptrace_scope(scope: Option<&str>) -> Finding {
    let value = match scope {
        None => "not restricted",
        Some("0") => "0: own processes",
        Some("1") => "1: own children",
        Some("2") => "2: administrators",
        Some("3") => "3: nobody",
        Some(_) => "unknown",
    };
    Finding::ok("ptrace", value)
}

/// Reads the memory of a child of ours.
fn reading() -> Finding {
    match readable::read_a_child() {
        Ok(()) => Finding::ok("reading other processes", "works"),
        Err(why) => Finding::note(
            "reading other processes",
            why,
            "process_vm_readv is refused here. Jobs run without it: long messages between processes of this host are copied through \
             shared memory. A container allows it with --cap-add SYS_PTRACE.",
        ),
    }
}

/// Bytes of the segment that is tried: some pages.
const SEGMENT: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use super::super::super::report::Verdict;
    use super::*;

    #[test]
    fn what_jobs_need_works_here() {
        assert_eq!(segments().verdict, Verdict::Ok);
        assert_eq!(process_descriptors().verdict, Verdict::Ok);
    }

    #[test]
    fn the_scope_of_ptrace_has_words() {
        assert_eq!(ptrace_scope(Some("1")).value, "1: own children");
        assert_eq!(ptrace_scope(Some("\u{1b}")).value, "unknown");
    }
}
