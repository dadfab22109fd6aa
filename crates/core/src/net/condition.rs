//! What threads sleep for, told without a system call if none sleeps: std's makes one each time, and mostly nobody does.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, MutexGuard};
use std::time::Duration;

/// Something that changes under a lock, and that threads may sleep for.
#[derive(Debug, Default)]
pub(super) struct Condition {
    told: Condvar,
    /// Changed under the lock only.
    sleepers: AtomicUsize,
}

impl Condition {
    /// Sleeps until somebody [tells](Self::tell), or for so long. Who has the lock has seen that nothing has changed yet.
    pub(super) fn sleep<T>(&self, locked: MutexGuard<'_, T>, at_most: Duration) {
        self.sleepers.fetch_add(1, Ordering::Relaxed);
        let locked = self.told.wait_timeout(locked, at_most);
        self.sleepers.fetch_sub(1, Ordering::Relaxed);
        // Only now: the number changes under the lock.
        drop(locked);
    }

    /// Something has changed. For who has the lock, or had it when that changed: whoever sleeps took the lock before that, and is
    /// counted, or takes it later, and sees the change.
    pub(super) fn tell(&self) {
        if self.sleepers.load(Ordering::Relaxed) > 0 {
            self.told.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Condition;
    use std::sync::Mutex;
    use std::time::{Duration, Instant};

    #[test]
    fn who_sleeps_is_told() {
        let (condition, changed) = (Condition::default(), Mutex::new(false));
        let began = Instant::now();
        std::thread::scope(|threads| {
            threads.spawn(|| {
                loop {
                    let locked = changed.lock().unwrap();
                    if *locked {
                        return;
                    }
                    condition.sleep(locked, Duration::from_secs(20));
                }
            });
            while condition
                .sleepers
                .load(std::sync::atomic::Ordering::Relaxed)
                == 0
            {
                std::thread::yield_now();
            }
            *changed.lock().unwrap() = true;
            condition.tell();
        });
        assert!(
            began.elapsed() < Duration::from_secs(10),
            "it slept until it was told"
        );
        assert_eq!(condition.sleepers.into_inner(), 0);
    }
}
