//! Polling and sleeping: lines 23 to 25 of the contract.

use std::time::{Duration, Instant};

use super::Harness;
use super::fleet::{Fleet, Seen, pattern};
use crate::{BodyId, Driver};

/// Contract 23. That poll never exceeds its budget is checked in every case.
pub fn a_small_budget_reports_everything_in_the_end<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    (0_u8..100).for_each(|number| fleet.send(0, 1, &[number]));
    fleet.take(0);
    let deadline = Instant::now() + LONG;
    while fleet.frames(1, 0).len() < 100 && Instant::now() < deadline {
        fleet.poll(0, 1);
        fleet.poll(1, 1);
    }
    assert!(
        fleet
            .frames(1, 0)
            .iter()
            .zip(0_u8..)
            .all(|(frame, number)| *frame == [number])
    );
    assert_eq!(fleet.frames(1, 0).len(), 100);
}

/// Contract 23.
pub fn without_budget_nothing_is_reported<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    fleet.send(0, 1, b"waits");
    (0..50).for_each(|_| assert_eq!(fleet.poll(1, 0), 0));
    fleet.until("the frame arrives", |fleet| {
        fleet.frames(1, 0) == [b"waits"]
    });
}

/// Contract 23 and 18: the events of a loss are many, and come one by one.
pub fn a_loss_keeps_to_the_budget<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    (0..10).for_each(|id| fleet.expect(1, 0, BodyId(id), &[10]).expect("a body"));
    fleet.retire(0);
    let deadline = Instant::now() + LONG;
    while fleet.losses(1, 0) == 0 && Instant::now() < deadline {
        fleet.poll(1, 1);
    }
    assert_eq!(fleet.seen(1).len(), 11);
    assert!(matches!(fleet.seen(1).last(), Some(Seen::Lost(..))));
}

/// Contract 23.
pub fn an_idle_driver_reports_nothing<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 3);
    (0..100).for_each(|_| assert_eq!(fleet.poll(0, 64) + fleet.poll(1, 64), 0));
}

/// Contract 23: a poll with nothing to do takes no time.
pub fn an_idle_poll_does_not_block<H: Harness>(harness: H) {
    let mut fleet = Fleet::linked(harness, 2);
    fleet.settle();
    let start = Instant::now();
    (0..1000).for_each(|_| assert_eq!(fleet.poll(0, 64), 0));
    assert!(
        start.elapsed() < LONG / 2,
        "polls took {:?}",
        start.elapsed()
    );
}

/// Contract 24, and `caps.can_sleep`.
pub fn there_is_a_wakeup_if_the_capabilities_say_so<H: Harness>(harness: H) {
    let mut fleet = Fleet::new(harness, 1);
    let can_sleep = fleet.caps(0).can_sleep;
    assert_eq!(fleet.driver(0).wakeup().is_some(), can_sleep);
}

/// Contract 24.
pub fn an_idle_driver_is_quiet<H: Harness>(harness: H) {
    let Some(mut fleet) = sleepers(harness, 2) else {
        return;
    };
    // Being polled in vain does not wake it for good.
    fleet.settle();
    fleet.poll_until_all_are_quiet();
}

/// Contract 24: and is quiet again afterwards.
pub fn a_frame_wakes_its_receiver<H: Harness>(harness: H) {
    let Some(mut fleet) = sleepers(harness, 2) else {
        return;
    };
    for round in 0..20 {
        fleet.send(0, 1, b"wake up");
        assert!(fleet.is_awake(1, LONG));
        fleet.until("the frame arrives", |fleet| {
            fleet.frames(1, 0).len() == round + 1
        });
        (0..2).for_each(|at| fleet.poll_until_quiet(at));
    }
}

/// Contract 24.
pub fn events_left_over_keep_the_wakeup_readable<H: Harness>(harness: H) {
    let Some(mut fleet) = sleepers(harness, 2) else {
        return;
    };
    (0..20).for_each(|_| fleet.send(0, 1, b"one of many"));
    while fleet.frames(1, 0).len() < 20 {
        assert!(
            fleet.is_awake(1, LONG),
            "asleep with {} of 20 reported",
            fleet.frames(1, 0).len()
        );
        fleet.poll(1, 1);
    }
}

/// Contract 24.
pub fn a_connect_wakes_both_ends<H: Harness>(harness: H) {
    let mut fleet = Fleet::new(harness, 2);
    if !fleet.caps(0).can_sleep {
        return assert!(fleet.driver(0).wakeup().is_none());
    }
    fleet.connect(0, 1);
    fleet.sleep_until("both are up", |fleet| {
        !fleet.seen(0).is_empty() && !fleet.seen(1).is_empty()
    });
}

/// Contract 24.
pub fn a_failed_connect_wakes_the_caller<H: Harness>(harness: H) {
    let mut fleet = Fleet::new(harness, 1);
    if !fleet.caps(0).can_sleep {
        return assert!(fleet.driver(0).wakeup().is_none());
    }
    let nobody = fleet.nobody();
    fleet
        .driver(0)
        .connect(crate::PeerId(1), &nobody)
        .expect("a locator of this driver");
    fleet.sleep_until("the failure is reported", |fleet| !fleet.seen(0).is_empty());
}

/// Contract 24.
pub fn a_loss_wakes_the_other_end<H: Harness>(harness: H) {
    let Some(mut fleet) = sleepers(harness, 2) else {
        return;
    };
    fleet.disconnect(0, 1);
    fleet.sleep_until("the loss is reported", |fleet| fleet.losses(1, 0) == 1);
}

/// Contract 24 and 10.
pub fn room_wakes_a_sender_that_waits<H: Harness>(harness: H) {
    let Some(mut fleet) = sleepers(harness, 2) else {
        return;
    };
    let writable = Seen::Writable(fleet.id(1));
    for _ in 0..3 {
        while fleet.offer(0, 1, &[1; 4000]).is_ok() {}
        fleet.take(0);
        fleet.sleep_until("there is room", |fleet| fleet.count(0, &writable) == 1);
    }
}

/// Contract 24: memory that is free again is worth waking up for, whenever the call was made.
pub fn the_end_of_a_body_wakes_both_ends<H: Harness>(harness: H) {
    let Some(mut fleet) = sleepers(harness, 2) else {
        return;
    };
    for (id, len) in [0, 1, 5_000, 3_000_000].into_iter().enumerate() {
        let body = BodyId(id as u64);
        fleet.transfer(0, 1, body, pattern(id as u64, len));
        fleet.sleep_until("the body arrives", |fleet| {
            fleet.has_body(1, 0, body) && fleet.has_sent(0, 1, body)
        });
        assert!(fleet.body(1, 0, body) == pattern(id as u64, len));
    }
}

/// Contract 25.
pub fn a_driver_may_change_threads<H: Harness>(harness: H)
where
    H::Driver: 'static,
{
    let mut fleet = Fleet::linked(harness, 2);
    let id = fleet.id(0);
    let mut driver = fleet.take_out(1);
    for round in 0_u8..5 {
        fleet.send_alone(0, 1, &[round]);
        let poller = std::thread::spawn(move || {
            let mut frames = Vec::new();
            let deadline = Instant::now() + LONG;
            while frames.is_empty() && Instant::now() < deadline {
                let mut keep = |event: crate::Event<'_>| frames.push(Seen::from(event));
                driver.poll(8, &mut keep).expect("a network that works");
                std::thread::yield_now();
            }
            (driver, frames)
        });
        let (returned, frames) = poller.join().expect("a thread that polls");
        driver = returned;
        assert_eq!(frames, [Seen::Frame(id, vec![round])]);
    }
    fleet.put_back(1, driver);
}

/// A linked fleet at rest, or nothing if its drivers cannot sleep, which is then checked instead.
fn sleepers<H: Harness>(harness: H, size: usize) -> Option<Fleet<H>> {
    let mut fleet = Fleet::linked(harness, size);
    if !fleet.caps(0).can_sleep {
        assert!(
            fleet.driver(0).wakeup().is_none(),
            "a wakeup that the capabilities deny"
        );
        return None;
    }
    fleet.settle();
    fleet.poll_until_all_are_quiet();
    Some(fleet)
}

impl<H: Harness> Fleet<H> {
    /// Polls each driver only when its wakeup is readable.
    pub(super) fn sleep_until(&mut self, what: &str, done: impl Fn(&Self) -> bool) {
        let deadline = Instant::now() + LONG;
        let mut at = 0;
        while !done(self) {
            at = (at + 1) % self.size();
            if self.is_awake(at, Duration::from_millis(1)) {
                self.poll(at, 4);
            }
            assert!(Instant::now() < deadline, "slept in vain until {what}");
        }
    }

    pub(super) fn poll_until_quiet(&mut self, at: usize) {
        let deadline = Instant::now() + LONG;
        while self.is_awake(at, Duration::ZERO) {
            self.poll(at, 64);
            assert!(Instant::now() < deadline, "never quiet");
        }
    }

    /// Polls who is awake until nobody is, in one look. How often a driver must be polled in vain before it
    /// rests is its own affair, and what one does while it comes to rest may wake another.
    fn poll_until_all_are_quiet(&mut self) {
        let deadline = Instant::now() + LONG;
        while (0..self.size()).any(|at| self.is_awake(at, Duration::ZERO)) {
            (0..self.size()).for_each(|at| self.poll_until_quiet(at));
            assert!(Instant::now() < deadline, "never quiet at the same time");
        }
    }

    fn send_alone(&mut self, from: usize, to: usize, frame: &[u8]) {
        while self.offer(from, to, frame).is_err() {
            self.poll(from, 8);
        }
    }
}

/// Long enough for a loaded machine, short enough that a sleeper who is not woken fails the case.
const LONG: Duration = Duration::from_secs(20);
