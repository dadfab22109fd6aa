//! Channels between two threads of one process: `peer-channels std|crossbeam|flume poll|recv`.
//!
//! `poll` calls `try_recv` until a message is there, `recv` waits as the library does. The channels are unbounded: a
//! sender never waits.

use std::hint::{black_box, spin_loop};
use std::thread;
use std::time::Instant;

use peer_common::{BATCHES, limit_time, pin, repetitions, report};

/// A library's channel, and how it is received from.
trait Channel<T>: 'static {
    type Sender: Send;
    type Receiver: Send;
    fn open() -> (Self::Sender, Self::Receiver);
    fn send(to: &Self::Sender, message: T);
    fn receive(from: &Self::Receiver, wait: Wait) -> T;
}

#[derive(Clone, Copy)]
enum Wait {
    Poll,
    Recv,
}

struct Std;
struct Crossbeam;
struct Flume;

impl<T: Send + 'static> Channel<T> for Std {
    type Sender = std::sync::mpsc::Sender<T>;
    type Receiver = std::sync::mpsc::Receiver<T>;

    fn open() -> (Self::Sender, Self::Receiver) {
        std::sync::mpsc::channel()
    }

    fn send(to: &Self::Sender, message: T) {
        to.send(message).ok().expect("the receiver is there");
    }

    fn receive(from: &Self::Receiver, wait: Wait) -> T {
        match wait {
            Wait::Poll => poll(|| from.try_recv().ok()),
            Wait::Recv => from.recv().expect("the sender is there"),
        }
    }
}

impl<T: Send + 'static> Channel<T> for Crossbeam {
    type Sender = crossbeam_channel::Sender<T>;
    type Receiver = crossbeam_channel::Receiver<T>;

    fn open() -> (Self::Sender, Self::Receiver) {
        crossbeam_channel::unbounded()
    }

    fn send(to: &Self::Sender, message: T) {
        to.send(message).ok().expect("the receiver is there");
    }

    fn receive(from: &Self::Receiver, wait: Wait) -> T {
        match wait {
            Wait::Poll => poll(|| from.try_recv().ok()),
            Wait::Recv => from.recv().expect("the sender is there"),
        }
    }
}

impl<T: Send + 'static> Channel<T> for Flume {
    type Sender = flume::Sender<T>;
    type Receiver = flume::Receiver<T>;

    fn open() -> (Self::Sender, Self::Receiver) {
        flume::unbounded()
    }

    fn send(to: &Self::Sender, message: T) {
        to.send(message).ok().expect("the receiver is there");
    }

    fn receive(from: &Self::Receiver, wait: Wait) -> T {
        match wait {
            Wait::Poll => poll(|| from.try_recv().ok()),
            Wait::Recv => from.recv().expect("the sender is there"),
        }
    }
}

fn main() {
    limit_time();
    let words: Vec<String> = std::env::args().collect();
    let wait = if words[2] == "poll" {
        Wait::Poll
    } else {
        Wait::Recv
    };
    match words[1].as_str() {
        "std" => measure::<Std>(wait),
        "crossbeam" => measure::<Crossbeam>(wait),
        "flume" => measure::<Flume>(wait),
        other => panic!("unknown channel {other}"),
    }
}

fn measure<C: Channel<[u8; 8]> + Channel<[u8; 56]> + Channel<[u8; 64]>>(wait: Wait) {
    latency::<C, 8>(wait);
    latency::<C, 56>(wait);
    latency::<C, 64>(wait);
    let rates = BATCHES.map(|batch| {
        let count = repetitions(stream::<C, 8>(wait, batch, 2), 2, 0.035);
        (count * batch) as f64 / stream::<C, 8>(wait, batch, count)
    });
    report("rate", 8, rates.into_iter().fold(0.0, f64::max));
}

fn latency<C: Channel<[u8; N]>, const N: usize>(wait: Wait) {
    let count = repetitions(round_trips::<C, N>(wait, 500), 500, 0.12);
    report(
        "lat",
        N,
        round_trips::<C, N>(wait, count) / count as f64 / 2.0 * 1e9,
    );
}

/// Seconds that so many round trips take.
fn round_trips<C: Channel<[u8; N]>, const N: usize>(wait: Wait, count: u64) -> f64 {
    let (there, arriving) = C::open();
    let (back, returning) = C::open();
    thread::scope(|scope| {
        scope.spawn(move || {
            pin("CORE_B");
            for _ in 0..count + 1 {
                C::send(&back, C::receive(&arriving, wait));
            }
        });
        pin("CORE_A");
        // The first round trip waits until the other thread runs.
        C::send(&there, [1; N]);
        let mut message = C::receive(&returning, wait);
        let start = Instant::now();
        for _ in 0..count {
            C::send(&there, message);
            message = C::receive(&returning, wait);
        }
        start.elapsed().as_secs_f64()
    })
}

/// Seconds that so many batches take, each acknowledged.
fn stream<C: Channel<[u8; N]>, const N: usize>(wait: Wait, batch: u64, count: u64) -> f64 {
    let (there, arriving) = C::open();
    let (back, acknowledgements) = C::open();
    thread::scope(|scope| {
        scope.spawn(move || {
            pin("CORE_B");
            C::send(&back, [0; N]);
            for _ in 0..count {
                for _ in 0..batch {
                    black_box(C::receive(&arriving, wait));
                }
                C::send(&back, [0; N]);
            }
        });
        pin("CORE_A");
        C::receive(&acknowledgements, wait);
        let start = Instant::now();
        for _ in 0..count {
            for _ in 0..batch {
                C::send(&there, [1; N]);
            }
            C::receive(&acknowledgements, wait);
        }
        start.elapsed().as_secs_f64()
    })
}

fn poll<T>(mut receive: impl FnMut() -> Option<T>) -> T {
    loop {
        if let Some(message) = receive() {
            return message;
        }
        spin_loop();
    }
}
