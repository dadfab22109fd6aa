//! Threads on cores of their own.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::failure::Result;

/// Keeps the calling thread on one of the cores that it may use: the one with this number among them, counted on from the
/// first again when there are fewer.
///
/// # Errors
///
/// A sentence, if the system refuses.
pub fn pin(number: usize) -> Result<()> {
    let refusal = |cause| format!("cannot keep a thread on a core: {cause}");
    let allowed = sched_getaffinity(None).map_err(refusal)?;
    let cores: Vec<_> = (0..CpuSet::MAX_CPU)
        .filter(|core| allowed.is_set(*core))
        .collect();
    let mut one = CpuSet::new();
    one.set(cores[number % cores.len()]);
    Ok(sched_setaffinity(None, &one).map_err(refusal)?)
}
