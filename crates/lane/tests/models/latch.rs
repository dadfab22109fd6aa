//! A lock that is given up by a store.

use loom::sync::Arc;
use loom::thread;
use mizzen_lane::Latch;

use crate::model;

#[test]
fn one_thread_at_a_time_has_it_and_sees_what_was_done_before() {
    model(3, || {
        let latch = Arc::new(Latch::new(0u32));
        let waits = Arc::clone(&latch);
        let waiter = thread::spawn(move || *waits.lock() += 1);
        *latch.lock() += 1;
        waiter.join().unwrap();
        assert_eq!(*latch.lock(), 2);
        assert!(latch.try_lock().is_some(), "nobody waits any more");
    });
}

#[test]
fn who_tries_it_has_it_or_not() {
    model(3, || {
        let latch = Arc::new(Latch::new(0u32));
        let tries = || {
            let latch = Arc::clone(&latch);
            thread::spawn(move || match latch.try_lock() {
                Some(mut held) => {
                    *held += 1;
                    1
                }
                None => 0,
            })
        };
        let triers = [tries(), tries()];
        *latch.lock() += 1;
        let tried: u32 = triers.into_iter().map(|trier| trier.join().unwrap()).sum();
        assert_eq!(*latch.lock(), 1 + tried);
    });
}
