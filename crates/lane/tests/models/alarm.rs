//! The alarm of a thread that sleeps until something is due.

use loom::sync::Arc;
use loom::thread;
use mizzen_lane::Alarm;

use crate::model;

/// Something turns out to be due while the thread goes to sleep: it sleeps no longer than that, or is woken.
#[test]
fn nobody_sleeps_beyond_what_is_due() {
    model(3, || {
        let alarm = Arc::new(Alarm::default());
        let sleeper = {
            let alarm = Arc::clone(&alarm);
            thread::spawn(move || alarm.sleep())
        };
        let must_wake = alarm.set(7);
        let until = sleeper.join().unwrap();
        assert!(until <= 7 || must_wake, "asleep until {until}");
    });
}

/// The same for one that has slept before, and for something that is due earlier still.
#[test]
fn nobody_sleeps_beyond_what_is_due_the_next_time() {
    model(3, || {
        let alarm = Arc::new(Alarm::default());
        let _ = alarm.set(9);
        let sleeper = {
            let alarm = Arc::clone(&alarm);
            thread::spawn(move || {
                alarm.sleep();
                alarm.wake();
                alarm.sleep()
            })
        };
        let must_wake = alarm.set(7);
        let until = sleeper.join().unwrap();
        assert!(until <= 7 || must_wake, "asleep until {until}");
    });
}
