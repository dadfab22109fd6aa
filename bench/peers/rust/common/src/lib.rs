//! What the peers written in Rust share: the loops of `../c/pingpong.h`, for libraries called from Rust.
//!
//! One line per figure, `R <metric> <size> <value>`; the metrics are those of `pingpong.h`.

use std::time::Instant;

/// Sizes of short messages.
pub const SMALL: [usize; 8] = [8, 32, 56, 64, 96, 128, 256, 512];
/// Sizes of messages whose copies count.
pub const LARGE: [usize; 10] = [
    1 << 10,
    2 << 10,
    4 << 10,
    8 << 10,
    16 << 10,
    32 << 10,
    64 << 10,
    256 << 10,
    1 << 20,
    4 << 20,
];
/// Messages between two acknowledgements when the rate is measured; the best of six counts.
pub const BATCHES: [u64; 6] = [64, 16384, 64, 16384, 64, 16384];

/// One of the two who exchange messages.
pub trait Side {
    /// Sends a message of this size.
    fn send(&mut self, bytes: &[u8]);
    /// Waits for a message of this size; at least its first eight bytes must arrive in `into`.
    fn receive(&mut self, into: &mut [u8]);
}

/// Binds the calling thread to the core that the environment variable names; without it, or if negative, to none.
pub fn pin(variable: &str) {
    let Some(core) = std::env::var(variable)
        .ok()
        .and_then(|core| core.parse::<usize>().ok())
    else {
        return;
    };
    // SAFETY: `set` is a plain bit mask for which all zeroes is the empty set; the kernel only reads it.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(core, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &set);
    }
}

/// Ends the process if it is not done in half a minute.
pub fn limit_time() {
    // SAFETY: no handler is installed; the signal ends the process.
    unsafe { libc::alarm(30) };
}

/// Prints one figure.
pub fn report(metric: &str, size: usize, value: f64) {
    println!("R {metric} {size} {value}");
}

/// How often to repeat what took `elapsed` seconds for `count`, to fill `seconds`.
pub fn repetitions(elapsed: f64, count: u64, seconds: f64) -> u64 {
    ((seconds / (elapsed / count as f64)) as u64).clamp(3, 2_000_000)
}

/// One-way time: half of a round trip, the receiver sending back the buffer it received into.
pub fn latency(side: &mut impl Side, first: bool, metric: &str, size: usize, seconds: f64) {
    let mut buffer = vec![1; size];
    let warm = if size <= 8192 { 300 } else { 20 };
    let elapsed = round_trips(side, first, &mut buffer, warm);
    let count = agree(side, first, repetitions(elapsed, warm, seconds));
    let elapsed = round_trips(side, first, &mut buffer, count);
    if first {
        report(metric, size, elapsed / count as f64 / 2.0 * 1e9);
    }
}

/// Messages per second, one way.
pub fn rate(side: &mut impl Side, first: bool, size: usize, seconds: f64) {
    let rates = BATCHES.map(|batch| {
        let elapsed = batches(side, first, size, batch, 2);
        let count = agree(side, first, repetitions(elapsed, 2, seconds));
        (count * batch) as f64 / batches(side, first, size, batch, count)
    });
    if first {
        report("rate", size, rates.into_iter().fold(0.0, f64::max));
    }
}

fn round_trips(side: &mut impl Side, first: bool, buffer: &mut [u8], count: u64) -> f64 {
    let start = Instant::now();
    for _ in 0..count {
        if first {
            side.send(buffer);
        }
        side.receive(buffer);
        if !first {
            side.send(buffer);
        }
    }
    start.elapsed().as_secs_f64()
}

fn batches(side: &mut impl Side, first: bool, size: usize, batch: u64, count: u64) -> f64 {
    let mut buffer = vec![1; size];
    let start = Instant::now();
    for _ in 0..count {
        for _ in 0..batch {
            if first {
                side.send(&buffer)
            } else {
                side.receive(&mut buffer)
            }
        }
        if first {
            side.receive(&mut buffer)
        } else {
            side.send(&buffer)
        }
    }
    start.elapsed().as_secs_f64()
}

/// The first side decides and tells the other, which confirms it: a library may overwrite a message not yet received.
fn agree(side: &mut impl Side, first: bool, count: u64) -> u64 {
    let mut word = count.to_ne_bytes();
    if first {
        side.send(&word);
    }
    side.receive(&mut word);
    if !first {
        side.send(&word);
    }
    u64::from_ne_bytes(word)
}
