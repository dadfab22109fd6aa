//! How long the system lets a thread compute before it looks whose turn it is.
//!
//! A thread that is woken while others compute takes a core from one of them at once only if the system owes it time and its slice ends
//! before theirs (EEVDF, Linux 6.12 and later); else it waits for the end of their slice, some milliseconds. A shorter slice changes nothing
//! about a thread's share of the cores, but interrupts what it computes more often. So a thread that waits has a short one, and a worker
//! gives it back before it runs a task. A thread inherits the slice of the one that started it.
#![allow(unsafe_code)]

use core::cell::Cell;
use core::mem::{MaybeUninit, size_of};
use core::time::Duration;

/// The shortest that the system takes: whoever is woken goes before those whose slice does not end sooner. It still interrupts what
/// computes only when its timer says so, every 1 to 4 ms.
const SHORT: Duration = Duration::from_micros(100);

/// A slice that is no longer was asked for by somebody: what threads usually have is 0.7 ms or more.
const OWN: Duration = Duration::from_micros(600);

/// What the calling thread has asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Slice {
    /// Nothing yet: what it has it may have inherited.
    Unknown,
    Usual,
    Short,
    /// It has a policy or a slice of its own, or the system cannot be asked: not again.
    Fixed,
}

thread_local! {
    static SLICE: Cell<Slice> = const { Cell::new(Slice::Unknown) };
}

/// The calling thread waits, and is to go before those who compute when it is woken. System calls the first time, and nothing
/// after that. Systems that know no slices take no notice; a thread with a policy or a slice of its own is left as it is.
pub fn shorten() {
    if slice() == Slice::Usual {
        let is_short = set(SHORT);
        SLICE.set(if is_short { Slice::Short } else { Slice::Fixed });
    }
}

/// The calling thread is about to compute.
pub fn give_back() {
    if slice() == Slice::Short {
        let is_usual = set(Duration::ZERO);
        SLICE.set(if is_usual { Slice::Usual } else { Slice::Fixed });
    }
}

/// What the calling thread has.
fn slice() -> Slice {
    if SLICE.get() == Slice::Unknown {
        SLICE.set(current().map_or(Slice::Fixed, |attributes| Slice::of(&attributes)));
    }
    SLICE.get()
}

impl Slice {
    fn of(attributes: &libc::sched_attr) -> Self {
        if attributes.sched_policy != libc::SCHED_OTHER as u32 {
            return Self::Fixed;
        }
        let nanos = attributes.sched_runtime;
        match Duration::from_nanos(nanos) {
            SHORT => Self::Short,
            // 0: the system does not tell, or knows no slices.
            slice if nanos == 0 || slice > OWN => Self::Usual,
            _ => Self::Fixed,
        }
    }
}

/// Sets the slice; zero is what threads usually have. Whether that could be done.
fn set(slice: Duration) -> bool {
    let Some(mut attributes) = current() else {
        return false;
    };
    attributes.sched_runtime = slice.as_nanos() as u64;
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

    fn in_a_thread(check: impl FnOnce() + Send + 'static) {
        std::thread::spawn(check).join().unwrap();
    }

    #[test]
    fn a_thread_keeps_its_policy_and_its_niceness() {
        in_a_thread(|| {
            let before = current().unwrap();
            shorten();
            let after = current().unwrap();
            assert_eq!(after.sched_policy, before.sched_policy);
            assert_eq!(after.sched_nice, before.sched_nice);
        });
    }

    #[test]
    fn a_slice_is_given_back() {
        in_a_thread(|| {
            let before = current().unwrap().sched_runtime;
            shorten();
            // Older systems know no slices, and say 0.
            assert!([0, 100_000].contains(&current().unwrap().sched_runtime));
            give_back();
            assert_eq!(current().unwrap().sched_runtime, before);
            shorten();
            assert!(SLICE.get() == Slice::Short);
        });
    }

    #[test]
    fn a_slice_that_was_inherited_is_given_back() {
        in_a_thread(|| {
            let before = current().unwrap().sched_runtime;
            shorten();
            in_a_thread(move || {
                give_back();
                assert_eq!(current().unwrap().sched_runtime, before);
            });
        });
    }

    #[test]
    fn a_slice_of_its_own_is_left_alone() {
        in_a_thread(|| {
            if set(Duration::from_micros(150)) && current().unwrap().sched_runtime != 0 {
                shorten();
                give_back();
                assert_eq!(current().unwrap().sched_runtime, 150_000);
            }
        });
    }
}
