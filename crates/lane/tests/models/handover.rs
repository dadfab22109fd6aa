//! The hand-over of what threads leave for whoever has the port.

use loom::sync::atomic::{AtomicU32, Ordering};
use loom::sync::{Arc, Mutex};
use loom::thread;
use mizzen_lane::{Handover, Mark, Marked};

use crate::{Futex, model};

/// A link with frames that wait for the port. The port counts those that were sent.
#[derive(Default)]
struct Link {
    mark: Mark,
    frames: Mutex<u32>,
}

impl Marked for Link {
    fn mark(&self) -> &Mark {
        &self.mark
    }
}

type Engine = Handover<u32, Link>;

fn serve(engine: &Engine, sent: &mut u32) {
    while let Some(marked) = engine.take_marked() {
        for link in marked {
            *sent += core::mem::take(&mut *link.frames.lock().unwrap());
        }
    }
}

fn look(engine: &Engine) {
    if let Some(mut port) = engine.try_take() {
        serve(engine, &mut port);
        engine.release(port, |port| serve(engine, port));
    }
}

fn queue(link: &Link) {
    *link.frames.lock().unwrap() += 1;
}

/// Two threads post over one link, and a third has the port for a while: when all are done, nothing is left.
#[test]
fn what_is_marked_is_served_by_whoever_has_the_port() {
    model(3, || {
        let (engine, link) = (Arc::new(Engine::new(0)), Arc::new(Link::default()));
        let posters = [(); 2].map(|()| {
            let (engine, link) = (Arc::clone(&engine), Arc::clone(&link));
            thread::spawn(move || {
                queue(&link);
                engine.mark(&link);
                engine.kick(|port| serve(&engine, port));
            })
        });
        // As one that asks the driver something, and did not come to serve.
        let port = engine.take();
        engine.release(port, |port| serve(&engine, port));
        for poster in posters {
            poster.join().unwrap();
        }
        assert_eq!(*engine.take(), 2, "a frame was left");
    });
}

/// The engine's thread: sleeps until it is woken, unless it must look often. Returns when so many frames were sent.
fn run(engine: &Engine, woken: &Wakeup, frames: u32) {
    loop {
        let count = woken.count.load(Ordering::Acquire);
        if *engine.take() == frames {
            return;
        }
        if engine.step_aside() {
            woken.sleep_while(count);
            continue;
        }
        if engine.looks_often() {
            // A sleep that ends by itself.
            thread::yield_now();
        } else {
            woken.sleep_while(count);
        }
        if !engine.has_work() {
            engine.look_seldom();
        }
        look(engine);
    }
}

/// Stands for the descriptor on which the engine's thread sleeps.
struct Wakeup {
    count: AtomicU32,
    futex: Futex,
}

impl Wakeup {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            count: AtomicU32::new(0),
            futex: Futex::new(),
        })
    }

    fn sleep_while(&self, count: u32) {
        self.futex.sleep_while(&self.count, count);
    }

    fn ring(&self) {
        self.count.fetch_add(1, Ordering::Release);
        self.futex.wake();
    }
}

/// What may wait is sent by the engine's thread, also if it is just about to sleep for long.
#[test]
fn what_may_wait_is_sent_before_the_thread_sleeps_for_long() {
    model(3, || {
        let (engine, link) = (Arc::new(Engine::new(0)), Arc::new(Link::default()));
        let woken = Wakeup::new();
        let (theirs, rung) = (Arc::clone(&engine), Arc::clone(&woken));
        let thread = thread::spawn(move || run(&theirs, &rung, 2));
        for _ in 0..2 {
            queue(&link);
            if engine.mark_for_later(&link) {
                woken.ring();
            }
        }
        thread.join().unwrap();
    });
}

/// The engine's thread leaves the network to one that looks all the time, until that one is about to sleep.
#[test]
fn the_last_that_looks_wakes_the_thread_that_stepped_aside() {
    model(4, || {
        let (engine, woken) = (Arc::new(Engine::new(0)), Wakeup::new());
        engine.add_looker();
        let (theirs, rung) = (Arc::clone(&engine), Arc::clone(&woken));
        let thread = thread::spawn(move || {
            loop {
                let count = rung.count.load(Ordering::Acquire);
                if !theirs.step_aside() {
                    return;
                }
                rung.sleep_while(count);
            }
        });
        engine.remove_looker();
        if engine.must_wake() {
            woken.ring();
        }
        thread.join().unwrap();
    });
}
