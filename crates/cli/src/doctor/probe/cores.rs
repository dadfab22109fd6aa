//! Cores: how many there are, how many we may use, and whether others use them.

use rustix::thread::CpuSet;

use super::super::report::Finding;
use super::cgroup::Groups;
use super::read::read;
use super::words;

pub(crate) fn look() -> Vec<Finding> {
    let online = read("/sys/devices/system/cpu/online").and_then(|text| in_list(&text));
    let usable = usable();
    let online = online.unwrap_or(usable).max(usable);
    vec![
        cores(online, usable),
        limit(Groups::of_this_process().cpu(), usable),
        load(
            read("/proc/loadavg").as_deref().and_then(first_number),
            usable,
        ),
    ]
}

fn cores(online: usize, usable: usize) -> Finding {
    let all = words::count(online, "core", "cores");
    if usable < online {
        let value = format!("{usable} of {all}");
        let advice = format!(
            "Jobs started from here may use only {usable} of {all}; if that is not meant, ask the batch system for whole \
             hosts, or start without taskset or --cpuset-cpus."
        );
        return Finding::note("cores", value, advice);
    }
    if usable == 1 {
        let advice = "With one core the processes of this host take turns; run one process on it.";
        return Finding::note("cores", all, advice);
    }
    Finding::ok("cores", all)
}

fn limit(limit: Option<f64>, usable: usize) -> Finding {
    match limit {
        Some(limit) if limit < usable as f64 => Finding::warn(
            "cpu limit",
            format!("{limit:.1} cores"),
            format!(
                "The control group stops all processes when they have used {limit:.1} cores' time, in the middle of a message \
                 too; raise the limit (docker: --cpus), or use fewer cores (docker: --cpuset-cpus)."
            ),
        ),
        Some(limit) => Finding::ok("cpu limit", format!("{limit:.1} cores")),
        None => Finding::ok("cpu limit", "none"),
    }
}

fn load(load: Option<f64>, usable: usize) -> Finding {
    let Some(load) = load else {
        return Finding::ok("load", "unknown").varying();
    };
    let value = format!("{load:.1}");
    let finding = if load > usable as f64 {
        let advice = "Other programs use the cores; end them before you measure anything.";
        Finding::note("load", value, advice)
    } else {
        Finding::ok("load", value)
    };
    finding.varying()
}

/// How many cores this process may use.
fn usable() -> usize {
    let allowed = rustix::thread::sched_getaffinity(None);
    allowed.map_or(1, |set: CpuSet| set.count() as usize).max(1)
}

/// How many numbers there are in a list such as `0-3,8`.
fn in_list(text: &str) -> Option<usize> {
    let mut count = 0_usize;
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        count += (last.checked_sub(first)?.checked_add(1)?) as usize;
    }
    Some(count)
}

fn first_number(text: &str) -> Option<f64> {
    let number: f64 = text.split_whitespace().next()?.parse().ok()?;
    number.is_finite().then_some(number)
}

#[cfg(test)]
mod tests {
    use super::super::super::report::Verdict;
    use super::*;

    #[test]
    fn lists_of_cores_are_counted() {
        for (text, count) in [
            ("0", Some(1)),
            ("0-1", Some(2)),
            ("0-3,8,10-11", Some(7)),
            ("", None),
            ("3-1", None),
            ("a", None),
            ("0-4294967295", None),
        ] {
            assert_eq!(in_list(text), count, "{text}");
        }
    }

    #[test]
    fn fewer_cores_than_there_are_is_worth_a_word() {
        assert_eq!(cores(8, 8).verdict, Verdict::Ok);
        assert_eq!(cores(8, 2).value, "2 of 8 cores");
        assert_eq!(cores(8, 2).verdict, Verdict::Note);
        assert_eq!(cores(1, 1).verdict, Verdict::Note);
        assert_eq!(limit(None, 8).verdict, Verdict::Ok);
        assert_eq!(limit(Some(8.0), 8).verdict, Verdict::Ok);
        assert_eq!(limit(Some(1.5), 8).verdict, Verdict::Warn);
    }

    #[test]
    fn load_is_the_first_number() {
        assert_eq!(first_number("0.64 1.19 1.48 1/74 25068\n"), Some(0.64));
        assert_eq!(first_number("inf"), None);
        assert_eq!(load(Some(9.0), 2).verdict, Verdict::Note);
        assert_eq!(load(None, 2).verdict, Verdict::Ok);
    }
}
