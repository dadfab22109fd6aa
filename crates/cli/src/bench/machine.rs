//! The machine, as far as it matters for a measurement.

use std::fmt;
use std::path::Path;

use rustix::thread::CpuSet;

pub(crate) struct Machine {
    model: String,
    cores: usize,
    kernel: String,
    governor: Option<String>,
    virtualised: bool,
}

impl Machine {
    pub(crate) fn look() -> Self {
        let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let field = |name: &str| {
            info.lines()
                .find(|line| line.starts_with(name))
                .and_then(|line| line.split_once(':'))
                .map(|(_, value)| value.trim().to_owned())
        };
        let flags = field("flags").unwrap_or_default();
        let kernel = rustix::system::uname();
        Self {
            model: field("model name").unwrap_or_else(|| "processor unknown".to_owned()),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: kernel.release().to_string_lossy().into_owned(),
            governor: read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            virtualised: flags.split_whitespace().any(|flag| flag == "hypervisor"),
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.cores == 1 { "" } else { "s" };
        write!(f, "{}, {} core{plural}", self.model, self.cores)?;
        if self.virtualised {
            f.write_str(", virtual machine")?;
        }
        if let Some(governor) = &self.governor {
            write!(f, ", governor {governor}")?;
        }
        write!(
            f,
            ", Linux {}; mizzen {}",
            self.kernel,
            env!("CARGO_PKG_VERSION")
        )
    }
}

/// Two cores that this process may use: not two threads of one core, if there is a choice. None if it may use only one.
pub(crate) fn two_cores() -> Option<[usize; 2]> {
    let allowed = rustix::thread::sched_getaffinity(None).ok()?;
    let mut cores = (0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core));
    let first = cores.next()?;
    let others: Vec<usize> = cores.collect();
    let siblings = siblings(first);
    let apart = others
        .iter()
        .find(|core| siblings != self::siblings(**core));
    apart.or(others.first()).map(|second| [first, *second])
}

/// The threads of the core that `core` is one of. Unknown: each is alone.
fn siblings(core: usize) -> String {
    let path = format!("/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list");
    read(path).unwrap_or_else(|| core.to_string())
}

fn read(path: impl AsRef<Path>) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}
