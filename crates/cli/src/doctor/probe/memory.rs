//! Memory: how much there is, how much of it we may have, and how it is mapped.

use rustix::process::Resource;

use super::super::report::Finding;
use super::cgroup::{Groups, Memory};
use super::read::read;
use super::words;

pub(crate) fn look() -> Vec<Finding> {
    let info = read("/proc/meminfo").unwrap_or_default();
    let rdma =
        std::fs::read_dir("/sys/class/infiniband").is_ok_and(|mut list| list.next().is_some());
    vec![
        memory(&info),
        limit(Groups::of_this_process().memory()),
        locked(rustix::process::getrlimit(Resource::Memlock).current, rdma),
        huge_pages(
            &info,
            read("/sys/kernel/mm/transparent_hugepage/enabled").as_deref(),
        ),
        shm(),
    ]
}

fn memory(info: &str) -> Finding {
    let (Some(total), Some(available)) = (field(info, "MemTotal"), field(info, "MemAvailable"))
    else {
        return Finding::ok("memory", "unknown").varying();
    };
    let value = format!("{}, {} free", words::bytes(total), words::bytes(available));
    let finding = if available < LITTLE {
        let advice =
            "Little memory is left: a process that cannot get more is killed. End other programs.";
        Finding::warn("memory", value, advice)
    } else {
        Finding::ok("memory", value)
    };
    finding.varying()
}

fn limit(group: Option<Memory>) -> Finding {
    let Some(Memory { limit, used }) = group else {
        return Finding::ok("memory limit", "none");
    };
    let value = format!("{}, {} used", words::bytes(limit), words::bytes(used));
    let finding = if limit.saturating_sub(used) < LITTLE {
        let advice = "The control group is nearly at its limit, and processes beyond it are killed; raise it (docker: \
                      --memory, Slurm: --mem). Shared segments count too.";
        Finding::warn("memory limit", value, advice)
    } else {
        Finding::ok("memory limit", value)
    };
    finding.varying()
}

fn locked(limit: Option<u64>, rdma: bool) -> Finding {
    let value = words::limit(limit, words::bytes);
    if rdma && limit.is_some_and(|limit| limit < MANY_LOCKED) {
        let advice = "RDMA adapters need memory that is locked, and this is little; raise it by `ulimit -l unlimited` or in \
                      /etc/security/limits.conf (docker: --ulimit memlock=-1). TCP does not need it.";
        return Finding::warn("locked memory", value, advice);
    }
    Finding::ok("locked memory", value)
}

fn huge_pages(info: &str, transparent: Option<&str>) -> Finding {
    let reserved = field(info, "HugePages_Total").unwrap_or(0) / 1024;
    let mode = transparent.and_then(chosen).unwrap_or("not there");
    Finding::ok(
        "huge pages",
        format!("transparent: {mode}; reserved: {reserved}"),
    )
}

/// Mizzen does not use it, other programs do.
fn shm() -> Finding {
    let Ok(stat) = rustix::fs::statvfs("/dev/shm") else {
        return Finding::ok("/dev/shm", "not there (not needed)");
    };
    let size = stat.f_blocks.saturating_mul(stat.f_frsize);
    Finding::ok("/dev/shm", format!("{} (not needed)", words::bytes(size)))
}

/// A field of `/proc/meminfo` in bytes. Fields without a unit are taken as if they had one.
fn field(info: &str, name: &str) -> Option<u64> {
    let line = info
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    let number: u64 = line.split_whitespace().next()?.parse().ok()?;
    number.checked_mul(1024)
}

/// The word in brackets: `always [madvise] never`.
fn chosen(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once('[')?;
    Some(rest.split_once(']')?.0)
}

/// Memory that a process and its arena may need at once.
const LITTLE: u64 = 256 << 20;

/// Locked memory that is enough for buffers of a few peers.
const MANY_LOCKED: u64 = 1 << 30;

#[cfg(test)]
mod tests {
    use super::super::super::report::Verdict;
    use super::*;

    const INFO: &str = "MemTotal:       24682740 kB\nMemFree:         9965364 kB\nMemAvailable:   24020204 kB\n\
                        HugePages_Total:       4\nHugePages_Free:        0\nHugepagesize:       2048 kB\n";

    #[test]
    fn the_table_of_memory_is_read() {
        assert_eq!(memory(INFO).value, "23.5 GiB, 22.9 GiB free");
        assert_eq!(memory(INFO).verdict, Verdict::Ok);
        let scarce = "MemTotal: 1000000 kB\nMemAvailable: 1000 kB\n";
        assert_eq!(memory(scarce).verdict, Verdict::Warn);
        for broken in [
            "",
            "MemTotal:\nMemAvailable: x kB",
            "MemTotal: 99999999999999999999 kB",
        ] {
            assert_eq!(memory(broken).value, "unknown");
        }
    }

    #[test]
    fn huge_pages_are_counted() {
        let found = huge_pages(INFO, Some("always [madvise] never"));
        assert_eq!(found.value, "transparent: madvise; reserved: 4");
        assert_eq!(
            huge_pages("", None).value,
            "transparent: not there; reserved: 0"
        );
        assert_eq!(chosen("always ]madvise["), None);
    }

    #[test]
    fn a_group_near_its_limit_is_warned_of() {
        let group = |limit, used| limit_of(Memory { limit, used });
        fn limit_of(memory: Memory) -> Verdict {
            limit(Some(memory)).verdict
        }
        assert_eq!(group(1 << 30, 1 << 20), Verdict::Ok);
        assert_eq!(group(1 << 30, 1 << 30), Verdict::Warn);
        assert_eq!(group(1 << 20, 1 << 30), Verdict::Warn);
    }

    #[test]
    fn locked_memory_matters_to_adapters_only() {
        assert_eq!(locked(Some(8 << 20), false).verdict, Verdict::Ok);
        assert_eq!(locked(Some(8 << 20), true).verdict, Verdict::Warn);
        assert_eq!(locked(None, true).verdict, Verdict::Ok);
    }
}
