//! The memory of a process that knows a secret.

use rustix::process::{DumpableBehavior, set_dumpable_behavior};

/// Hides the memory of this process from others of the same user, including those of the job, and from core dumps.
pub fn hide_memory() {
    // The kernel refuses nobody this.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
}
