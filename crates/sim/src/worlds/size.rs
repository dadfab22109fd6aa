//! How large the jobs are.

use fastrand::Rng;

/// Hosts, and machines on them. Most are small: mistakes show in small jobs too, and those are quick. Some have up to 50 machines.
pub(super) fn job_size(rng: &mut Rng) -> (u32, u32) {
    let most = match rng.u32(..LARGE_ONE_IN) {
        0 => MACHINES_MAX,
        _ => 8,
    };
    let machines = rng.u32(3..=most);
    (rng.u32(2..=machines.min(12)), machines)
}

/// One job in so many is a large one.
const LARGE_ONE_IN: u32 = 64;
const MACHINES_MAX: u32 = 50;
