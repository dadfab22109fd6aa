//! Control groups: what the batch system or the container lets us have.
//!
//! There are two hierarchies of files, version 1 with one tree for each controller and version 2 with one for all; some systems
//! have both. A limit of a group binds all below it, so the smallest on the way up is the one that holds.

use std::path::{Path, PathBuf};

use super::read::read;

/// The groups that this process is in.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    memberships: Vec<Membership>,
    mounts: Vec<Mount>,
}

#[derive(Debug, PartialEq, Eq)]
struct Membership {
    /// Empty: version 2.
    controllers: Vec<String>,
    path: PathBuf,
}

#[derive(Debug, PartialEq, Eq)]
struct Mount {
    /// None: version 2.
    controllers: Option<Vec<String>>,
    /// Which part of the tree is mounted.
    root: PathBuf,
    point: PathBuf,
}

/// Memory of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Memory {
    pub(crate) limit: u64,
    pub(crate) used: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

impl Groups {
    pub(crate) fn of_this_process() -> Self {
        let memberships = read("/proc/self/cgroup").unwrap_or_default();
        let mounts = read("/proc/self/mountinfo").unwrap_or_default();
        Self::parse(&memberships, &mounts)
    }

    /// From the texts of `/proc/<pid>/cgroup` and `/proc/<pid>/mountinfo`.
    fn parse(memberships: &str, mounts: &str) -> Self {
        Self {
            memberships: memberships.lines().filter_map(membership).collect(),
            mounts: mounts.lines().filter_map(mount).collect(),
        }
    }

    /// How many cores' worth of time there is. None: no limit.
    pub(crate) fn cpu(&self) -> Option<f64> {
        let limits = self
            .folders("cpu")
            .into_iter()
            .filter_map(|(version, folder)| {
                let (quota, period) = match version {
                    Version::Two => {
                        let text = read(folder.join("cpu.max"))?;
                        let (quota, period) = text.split_once(' ')?;
                        (quota.parse().ok()?, period.parse().ok()?)
                    }
                    Version::One => {
                        let quota: f64 = read(folder.join("cpu.cfs_quota_us"))?.parse().ok()?;
                        (quota, read(folder.join("cpu.cfs_period_us"))?.parse().ok()?)
                    }
                };
                let period: f64 = period;
                (quota > 0.0 && period > 0.0).then_some(quota / period)
            });
        limits.min_by(f64::total_cmp)
    }

    /// The memory of the group that is nearest to its limit. None: no limit.
    pub(crate) fn memory(&self) -> Option<Memory> {
        let limits = self
            .folders("memory")
            .into_iter()
            .filter_map(|(version, folder)| {
                let (limit, used, cache) = match version {
                    Version::Two => ("memory.max", "memory.current", "inactive_file "),
                    Version::One => (
                        "memory.limit_in_bytes",
                        "memory.usage_in_bytes",
                        "total_inactive_file ",
                    ),
                };
                let limit = read(folder.join(limit))?.parse().ok()?;
                let used: Option<u64> = read(folder.join(used)).and_then(|text| text.parse().ok());
                // Files that were read count as used, and give way.
                let cache = read(folder.join("memory.stat")).and_then(|text| {
                    let line = text.lines().find_map(|line| line.strip_prefix(cache));
                    line?.parse().ok()
                });
                let used = used.unwrap_or(0).saturating_sub(cache.unwrap_or(0));
                (limit < NO_LIMIT).then_some(Memory { limit, used })
            });
        limits.min_by_key(|memory| memory.limit.saturating_sub(memory.used))
    }

    /// How many processes and threads there may be. None: no limit.
    pub(crate) fn tasks(&self) -> Option<u64> {
        let folders = self.folders("pids").into_iter();
        folders
            .filter_map(|(_, folder)| read(folder.join("pids.max"))?.parse().ok())
            .min()
    }

    /// Whether a path of a group speaks of a container, and which.
    pub(crate) fn container(&self) -> Option<&'static str> {
        let known = [
            ("kubepods", "Kubernetes"),
            ("docker", "Docker"),
            ("libpod", "Podman"),
            ("lxc", "LXC"),
            ("containerd", "containerd"),
        ];
        known.into_iter().find_map(|(part, name)| {
            let holds = |membership: &Membership| membership.path.to_string_lossy().contains(part);
            self.memberships.iter().any(holds).then_some(name)
        })
    }

    /// The folders of our group and of those above it, as far as they can be seen.
    fn folders(&self, controller: &str) -> Vec<(Version, PathBuf)> {
        let names = |list: &Vec<String>| list.iter().any(|name| name == controller);
        let first = self
            .mounts
            .iter()
            .find(|mount| mount.controllers.as_ref().is_some_and(names));
        let (version, mount, membership) = if let Some(mount) = first {
            let ours = self
                .memberships
                .iter()
                .find(|ours| names(&ours.controllers));
            (Version::One, mount, ours)
        } else {
            let second = self.mounts.iter().find(|mount| mount.controllers.is_none());
            let Some(mount) = second else {
                return Vec::new();
            };
            let ours = self
                .memberships
                .iter()
                .find(|ours| ours.controllers.is_empty());
            (Version::Two, mount, ours)
        };
        let path = membership.map_or(Path::new("/"), |ours| &ours.path);
        // In a container the path may be as the host sees it, and not be there.
        let below = path.strip_prefix(&mount.root).unwrap_or(Path::new(""));
        let folder = mount.point.join(below.strip_prefix("/").unwrap_or(below));
        let ours = if folder.is_dir() {
            &folder
        } else {
            &mount.point
        };
        ours.ancestors()
            .take_while(|folder| folder.starts_with(&mount.point))
            .map(|folder| (version, folder.to_owned()))
            .collect()
    }
}

/// A line such as `4:memory:/user.slice`.
fn membership(line: &str) -> Option<Membership> {
    let mut parts = line.splitn(3, ':');
    let _number = parts.next()?;
    let controllers = parts.next()?;
    let path = parts.next()?.into();
    let controllers = controllers.split(',').filter(|name| !name.is_empty());
    Some(Membership {
        controllers: controllers.map(str::to_owned).collect(),
        path,
    })
}

/// A line such as `35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory`.
fn mount(line: &str) -> Option<Mount> {
    let (place, kind) = line.split_once(" - ")?;
    let mut place = place.split(' ').skip(3);
    let root = place.next()?.into();
    let point = place.next()?.into();
    let mut kind = kind.split(' ');
    let controllers = match kind.next()? {
        "cgroup" => {
            let options = kind.nth(1)?.split(',');
            Some(options.map(str::to_owned).collect())
        }
        "cgroup2" => None,
        _ => return None,
    };
    Some(Mount {
        controllers,
        root,
        point,
    })
}

/// Version 1 writes "no limit" as the largest number of whole pages.
const NO_LIMIT: u64 = 1 << 60;

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with files, removed at the end.
    struct Tree(PathBuf);

    impl Tree {
        fn new(name: &str, files: &[(&str, &str)]) -> Self {
            let root = std::env::temp_dir().join(format!("mizzen-{name}-{}", std::process::id()));
            for (path, text) in files {
                let path = root.join(path);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, text).unwrap();
            }
            Self(root)
        }

        fn groups(&self, memberships: &str, mounts: &str) -> Groups {
            Groups::parse(
                memberships,
                &mounts.replace("ROOT", self.0.to_str().unwrap()),
            )
        }
    }

    impl Drop for Tree {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    const V1_MOUNTS: &str = "\
23 1 0:21 / /proc rw,relatime - proc proc rw
32 31 0:29 / ROOT/cpu rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / ROOT/memory rw,relatime - cgroup cgroup rw,memory
39 31 0:36 / ROOT/pids rw,relatime - cgroup cgroup rw,pids
41 31 0:38 / ROOT/unified rw,relatime - cgroup2 cgroup2 rw";

    #[test]
    fn the_smallest_limit_on_the_way_up_holds() {
        let tree = Tree::new(
            "cgroup-v2",
            &[
                ("job/step/cpu.max", "max 100000\n"),
                ("job/cpu.max", "150000 100000\n"),
                ("job/step/memory.max", "1073741824\n"),
                ("job/step/memory.current", "1048576\n"),
                ("job/memory.max", "536870912\n"),
                ("job/memory.current", "536870912\n"),
                (
                    "job/memory.stat",
                    "anon 4096\ninactive_file 268435456\nactive_file 1\n",
                ),
                ("job/pids.max", "512\n"),
                ("job/step/pids.max", "max\n"),
            ],
        );
        let mounts = "30 23 0:26 / ROOT rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate";
        let groups = tree.groups("0::/job/step\n", mounts);
        assert_eq!(groups.cpu(), Some(1.5));
        let (limit, used) = (512 << 20, 256 << 20);
        assert_eq!(groups.memory(), Some(Memory { limit, used }));
        assert_eq!(groups.tasks(), Some(512));
    }

    #[test]
    fn version_one_has_a_tree_for_each_controller() {
        let tree = Tree::new(
            "cgroup-v1",
            &[
                ("cpu/a/cpu.cfs_quota_us", "50000\n"),
                ("cpu/a/cpu.cfs_period_us", "100000\n"),
                ("cpu/cpu.cfs_quota_us", "-1\n"),
                ("cpu/cpu.cfs_period_us", "100000\n"),
                ("memory/b/memory.limit_in_bytes", "9223372036854771712\n"),
                ("memory/b/memory.usage_in_bytes", "77\n"),
                ("pids/pids.max", "max\n"),
                ("unified/cgroup.procs", ""),
            ],
        );
        let memberships = "4:memory:/b\n2:cpu,cpuacct:/a\n1:name=systemd:/\n0::/\n";
        let groups = tree.groups(memberships, V1_MOUNTS);
        assert_eq!(groups.cpu(), Some(0.5));
        assert_eq!(groups.memory(), None);
        assert_eq!(groups.tasks(), None);
    }

    #[test]
    fn a_container_sees_its_own_part_of_the_tree() {
        let tree = Tree::new(
            "cgroup-part",
            &[("memory/memory.limit_in_bytes", "67108864\n")],
        );
        let mounts = "35 31 0:32 /docker/4f2a ROOT/memory ro,relatime - cgroup cgroup rw,memory";
        let groups = tree.groups("4:memory:/docker/4f2a\n", mounts);
        let limit = 64 << 20;
        assert_eq!(groups.memory(), Some(Memory { limit, used: 0 }));
        assert_eq!(groups.container(), Some("Docker"));
    }

    #[test]
    fn texts_that_make_no_sense_are_no_limit() {
        for text in [
            "",
            "\n\n",
            "::",
            "0::",
            "x - y",
            "1 2 3 - cgroup2",
            "- cgroup2 x rw",
            "4:memory",
        ] {
            let groups = Groups::parse(text, text);
            assert_eq!(
                (groups.cpu(), groups.memory(), groups.tasks()),
                (None, None, None)
            );
        }
    }
}
