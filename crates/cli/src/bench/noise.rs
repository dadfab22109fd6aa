//! Whether other programs disturbed a measurement.

use std::time::{Duration, Instant};

/// Other programs may use this share of the cores.
const TOLERATED: f64 = 0.05;
/// The slow runs of the floor may be so many times slower than the fast ones.
pub(crate) const TOLERATED_SPREAD: f64 = 1.5;
/// The kernel counts time in ticks of 10 ms: shorter measurements cannot be judged.
const JUDGEABLE: Duration = Duration::from_millis(300);
const TICKS_PER_SECOND: f64 = 100.0;

/// The time that cores were busy, from a moment on.
pub(crate) struct Noise {
    cores: Vec<usize>,
    started: Instant,
    before: Option<f64>,
    own_before: Duration,
}

impl Noise {
    /// Watches `cores`, or all if there are none. `own` is the processor time that the measurement itself has used.
    pub(crate) fn watch(cores: &[usize], own: Duration) -> Self {
        Self {
            cores: cores.to_vec(),
            started: Instant::now(),
            before: busy_seconds(cores),
            own_before: own,
        }
    }

    /// A sentence, if others used more than is tolerated.
    pub(crate) fn judge(&self, own: Duration) -> Option<String> {
        let elapsed = self.started.elapsed();
        if elapsed < JUDGEABLE {
            return None;
        }
        let busy = busy_seconds(&self.cores)? - self.before?;
        let own = own.saturating_sub(self.own_before).as_secs_f64();
        let cores = match self.cores.len() {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            pinned => pinned,
        };
        let share = (busy - own) / elapsed.as_secs_f64() / cores as f64;
        (share > TOLERATED).then(|| {
            format!(
                "other programs used {:.0} % of the {cores} cores",
                share * 100.0
            )
        })
    }
}

/// Seconds that the cores were not idle, stolen time included.
fn busy_seconds(cores: &[usize]) -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/stat").ok()?;
    busy_ticks(&stat, cores).map(|ticks| ticks as f64 / TICKS_PER_SECOND)
}

fn busy_ticks(stat: &str, cores: &[usize]) -> Option<u64> {
    let wanted: Vec<String> = match cores {
        [] => vec!["cpu".to_owned()],
        cores => cores.iter().map(|core| format!("cpu{core}")).collect(),
    };
    let mut ticks = None;
    for line in stat.lines() {
        let mut words = line.split_whitespace();
        if !words
            .next()
            .is_some_and(|name| wanted.iter().any(|cpu| cpu == name))
        {
            continue;
        }
        // user, nice, system, idle, waiting for IO, interrupts, soft interrupts, stolen; guests are in user already.
        let counts: Vec<u64> = words.map_while(|word| word.parse().ok()).take(8).collect();
        let idle: u64 = counts.iter().skip(3).take(2).sum();
        *ticks.get_or_insert(0) += counts.iter().sum::<u64>() - idle;
    }
    ticks
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "cpu  10 1 5 100 7 0 2 3 9 0\ncpu0 4 0 2 50 3 0 1 1 9 0\ncpu1 6 1 3 50 4 0 1 2 0 0\nintr 5\n";

    #[test]
    fn busy_is_all_but_idle() {
        assert_eq!(busy_ticks(STAT, &[]), Some(21));
        assert_eq!(busy_ticks(STAT, &[0]), Some(8));
        assert_eq!(busy_ticks(STAT, &[0, 1]), Some(21));
        assert_eq!(busy_ticks(STAT, &[7]), None);
    }
}
