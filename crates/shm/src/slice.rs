//! How long the system lets a thread compute before it looks whose turn it is.
//!
//! A thread that is woken while others compute takes a core from one of them at once only if its own slice is shorter, or if it is owed
//! time (EEVDF, Linux 6.12 and later). What it is owed is used up after some hundred wake-ups, and then each takes up to the rest of
//! another's slice, about 3 ms. A shorter slice changes nothing about its share of the cores.
#![allow(unsafe_code)]

use core::mem::{MaybeUninit, size_of};
use core::time::Duration;

/// Short enough to go before what computes; long enough that a thread which computes itself is not interrupted more than it
/// would be by the system's timer.
const SHORT: Duration = Duration::from_micros(500);

/// Asks for short slices for the calling thread, and for those that it starts. Whether the system could be asked; one that is older takes
/// no notice. A thread with a policy of its own, or with a slice that is as short, is left as it is.
pub fn ask_for_short() -> bool {
    let Some(mut attributes) = current() else {
        return false;
    };
    let is_fair = [libc::SCHED_OTHER, libc::SCHED_BATCH]
        .iter()
        .any(|policy| attributes.sched_policy == *policy as u32);
    let short = SHORT.as_nanos() as u64;
    // 0: the system does not tell, or knows no slices.
    if !is_fair || (1..=short).contains(&attributes.sched_runtime) {
        return false;
    }
    attributes.sched_runtime = short;
    // SAFETY: the kernel reads as much as `size` says, which it wrote itself, of a structure that is ours and larger or as large.
    let code = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    code == 0
}

/// How the calling thread is scheduled.
fn current() -> Option<libc::sched_attr> {
    let mut attributes = MaybeUninit::<libc::sched_attr>::zeroed();
    let size = size_of::<libc::sched_attr>();
    // SAFETY: the kernel writes at most `size` bytes.
    let code =
        unsafe { libc::syscall(libc::SYS_sched_getattr, 0, attributes.as_mut_ptr(), size, 0) };
    // SAFETY: all of its fields are numbers, which were zero, or were written by the kernel.
    (code == 0).then(|| unsafe { attributes.assume_init() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_keeps_its_policy_and_its_niceness() {
        std::thread::spawn(|| {
            let before = current().unwrap();
            ask_for_short();
            let after = current().unwrap();
            assert_eq!(after.sched_policy, before.sched_policy);
            assert_eq!(after.sched_nice, before.sched_nice);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_slice_that_is_short_already_is_left_alone() {
        std::thread::spawn(|| {
            if ask_for_short() && current().unwrap().sched_runtime != 0 {
                assert_eq!(current().unwrap().sched_runtime, 500_000);
                assert!(!ask_for_short());
            }
        })
        .join()
        .unwrap();
    }
}
