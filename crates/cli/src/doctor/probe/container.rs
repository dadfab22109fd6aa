//! Whether we are in a container, and what it forbids.

use std::path::Path;

use super::super::report::Finding;
use super::cgroup::Groups;
use super::read::read;

pub(crate) fn look() -> Vec<Finding> {
    let status = read("/proc/self/status").unwrap_or_default();
    vec![
        Finding::ok("container", container().unwrap_or("none seen")),
        Finding::ok("seccomp", seccomp(&status)),
    ]
}

fn container() -> Option<&'static str> {
    let files = [
        ("/.dockerenv", "Docker"),
        ("/run/.containerenv", "Podman"),
        ("/.singularity.d", "Apptainer"),
    ];
    let by_file = files
        .into_iter()
        .find_map(|(path, name)| Path::new(path).exists().then_some(name));
    by_file.or_else(|| Groups::of_this_process().container())
}

/// What filters the system calls. Whether it matters is tried elsewhere.
fn seccomp(status: &str) -> &'static str {
    let mode = status
        .lines()
        .find_map(|line| line.strip_prefix("Seccomp:"))
        .map(str::trim);
    match mode {
        Some("0") => "off",
        Some("1") => "strict",
        Some("2") => "filter",
        _ => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filter_is_read_from_the_status() {
        let status = "Name:\tcat\nNoNewPrivs:\t0\nSeccomp:\t2\nSeccomp_filters:\t1\n";
        assert_eq!(seccomp(status), "filter");
        assert_eq!(seccomp("Seccomp_filters:\t1\n"), "unknown");
        assert_eq!(seccomp("Seccomp:\t0"), "off");
    }
}
