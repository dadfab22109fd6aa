//! A memory fence in all threads of all processes that take part, made by one of them.
//!
//! A thread that sleeps rarely pays for those that send often: see `mizzen_lane::Watch`. This is `membarrier` in its
//! global expedited form, which interrupts the cores that run a registered process at the moment: about 2 µs on two cores.

use std::sync::OnceLock;

use rustix::thread::{MembarrierCommand, membarrier, membarrier_query};

/// The fence, if the kernel has it and lets us register. Registers this process when first asked.
#[must_use]
pub fn everywhere() -> Option<fn()> {
    static REGISTERED: OnceLock<bool> = OnceLock::new();
    let registered = REGISTERED.get_or_init(|| {
        let known = membarrier_query();
        known.contains_command(MembarrierCommand::GlobalExpedited)
            && known.contains_command(MembarrierCommand::RegisterGlobalExpedited)
            && membarrier(MembarrierCommand::RegisterGlobalExpedited).is_ok()
    });
    registered.then_some(fence)
}

/// After a registration the kernel has no reason to refuse; a sandbox that is closed later might. Then a wake-up may be lost,
/// which costs its sleeper the rest of its nap.
fn fence() {
    let _ = membarrier(MembarrierCommand::GlobalExpedited);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two threads that each write, fence lightly or everywhere, and read: never do both miss the other's write.
    #[test]
    fn a_light_thread_and_a_heavy_one_cannot_both_miss() {
        use std::sync::Barrier;
        use std::sync::atomic::{AtomicU32, Ordering, compiler_fence};
        let Some(everywhere) = everywhere() else {
            return;
        };
        let (a, b) = (AtomicU32::new(0), AtomicU32::new(0));
        let (light, start) = (AtomicU32::new(0), Barrier::new(2));
        std::thread::scope(|threads| {
            threads.spawn(|| {
                for round in 1..=3000 {
                    start.wait();
                    a.store(round, Ordering::Relaxed);
                    compiler_fence(Ordering::SeqCst);
                    light.store(b.load(Ordering::Relaxed), Ordering::Relaxed);
                    start.wait();
                }
            });
            for round in 1..=3000 {
                start.wait();
                b.store(round, Ordering::Relaxed);
                everywhere();
                let heavy = a.load(Ordering::Relaxed);
                start.wait();
                let light = light.load(Ordering::Relaxed);
                assert!(heavy == round || light == round, "round {round}");
            }
        });
    }
}
