//! Members that show each other something, turn by turn.

use std::sync::Arc;

use loom::thread;
use mizzen_lane::{Bell, Call, Region, Slate, Tray, Watch, call_after_publish};

use super::{Futex, model};

/// Two members, each with two lines: the third turn uses the line of the first again. Each sees what the other showed in the same turn.
#[test]
fn each_reads_what_the_other_showed_in_the_same_turn() {
    model(3, || {
        let slates = [0, 1].map(|_| Slate::new(Region::heap(192), 0, 2));
        let member = |own: Slate, other: Slate, me: u64| {
            move || {
                for turn in 1..=3 {
                    own.show(turn, turn, &[10 * turn + me]);
                    let shown = loop {
                        match other.read(turn) {
                            Some(shown) => break shown,
                            None => thread::yield_now(),
                        }
                    };
                    assert_eq!((shown.print, shown.words[0]), (turn, 10 * turn + 1 - me));
                }
            }
        };
        let [one, other] = slates;
        let thread = thread::spawn(member(one.clone(), other.clone(), 0));
        member(other, one, 1)();
        thread.join().unwrap();
    });
}

/// One shows something and waits for nobody, but for those that it would leave too far behind; the other reads. It may be ahead or behind when it is waited for.
#[test]
fn who_reads_is_not_overtaken() {
    const LINES: u64 = 2;
    model(3, || {
        let slates = [0, 1].map(|_| Slate::new(Region::heap(192), 0, LINES as usize));
        let [one, other] = slates;
        let wait = |slate: &Slate, turn: u64| {
            while !slate.has_shown(turn) {
                thread::yield_now();
            }
        };
        let shows = {
            let (one, other) = (one.clone(), other.clone());
            thread::spawn(move || {
                for turn in 1..=4_u64 {
                    wait(&other, (turn + 1).saturating_sub(LINES));
                    one.show(turn, turn, &[10 * turn]);
                }
            })
        };
        for turn in 1..=4_u64 {
            wait(&one, (turn + 1).saturating_sub(LINES));
            other.show(turn, turn, &[]);
            wait(&one, turn);
            let shown = one.read(turn).expect("it is not overtaken");
            assert_eq!((shown.print, shown.words[0]), (turn, 10 * turn));
        }
        shows.join().unwrap();
    });
}

/// A member that sleeps is woken by what the other shows.
#[test]
fn who_sleeps_until_something_is_shown_is_woken() {
    model(3, || {
        let slate = Slate::new(Region::heap(128), 0, 1);
        let memory = Region::heap(64);
        let (watch, bell) = (Watch::new(memory.clone(), 0, None), Bell::new(memory, 1));
        watch.announce_awake();
        let futex = Arc::new(Futex::new());
        let shows = {
            let (slate, watch, bell, futex) = (
                slate.clone(),
                watch.clone(),
                bell.clone(),
                Arc::clone(&futex),
            );
            thread::spawn(move || {
                slate.show(1, 7, &[42]);
                if call_after_publish(&watch) == Call::Bell(0) {
                    bell.raise();
                    futex.wake();
                }
            })
        };
        while !slate.has_shown(1) {
            let count = bell.count();
            watch.announce_sleep(0);
            if !slate.has_shown(1) {
                futex.sleep_while(bell.word(), count);
            }
            watch.announce_awake();
        }
        assert_eq!(slate.read(1).unwrap().words[0], 42);
        shows.join().unwrap();
    });
}

/// What does not fit into a line lies on a tray: a place is written again only when the other has read it.
#[test]
fn a_place_of_a_tray_is_not_written_while_it_is_read() {
    const LINES: u64 = 2;
    model(3, || {
        let slates = [0, 1].map(|_| Slate::new(Region::heap(192), 0, LINES as usize));
        let [one, other] = slates;
        let memory = Region::heap(128);
        let tray = Tray::new(memory.clone(), 0, LINES as usize, 64).unwrap();
        let wait = |slate: &Slate, turn: u64| {
            while !slate.has_shown(turn) {
                thread::yield_now();
            }
        };
        let shows = {
            let (one, other) = (one.clone(), other.clone());
            thread::spawn(move || {
                for turn in 1..=3_u64 {
                    wait(&other, (turn + 1).saturating_sub(LINES));
                    // SAFETY: loom reports an access that is not ordered.
                    unsafe { tray.fill(turn, 0, &[turn as u8]) };
                    one.show(turn, turn, &[]);
                }
            })
        };
        for turn in 1..=3_u64 {
            other.show(turn, turn, &[]);
            wait(&one, turn);
            let mut byte = [0];
            // SAFETY: as above.
            unsafe { memory.copy_out((turn % LINES) as usize * 64, &mut byte) };
            assert_eq!(byte, [turn as u8]);
        }
        shows.join().unwrap();
    });
}
