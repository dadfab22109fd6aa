//! Latency, rate and bandwidth of messages of one size.

use std::time::Instant;

use mizzen::{Mailbox, Sender};

use super::alternate::{self, Alternated, Pattern};
use super::asleep;
use super::found::Found;
use crate::bench::buffers::Buffers;
use crate::bench::carrier::Carrier;
use crate::bench::figures::{Said, quantile};
use crate::bench::floor::copy::{self, Copy};
use crate::bench::floor::futex::{self, Futex};
use crate::bench::floor::line::{self, Line};
use crate::bench::floor::ring::{self, Ring};
use crate::bench::floor::socket::{self, Socket, Waiting};
use crate::bench::floor::{tls, wire};
use crate::bench::ours::bytes::Bytes;
use crate::bench::ours::lent::Lent;
use crate::bench::ours::outlet::Outlet;
use crate::bench::ours::packed::Packed;
use crate::bench::ours::value::Value;
use crate::bench::plan::{Path, Test};
use crate::bench::side::Side;

pub(crate) fn measure(side: &mut Side, size: usize) -> anyhow::Result<Found> {
    let (mut floor, floor_name) = floor(side, size)?;
    let (inbox, other) = side.mailboxes()?;
    let idle: Vec<Sender> = (0..side.plan.variant.idle_lanes)
        .map(|_| other.sender())
        .collect::<Result<_, _>>()?;
    let mut ours = if side.plan.variant.post {
        ours(side, other, inbox, size)
    } else {
        ours(side, other.sender()?, inbox, size)
    };
    let pattern = match side.plan.test {
        Test::Latency => Pattern::PingPong,
        _ => Pattern::Stream,
    };
    let alternated = if side.plan.variant.asleep {
        asleep::alternate(side, &mut *floor, &mut *ours)?
    } else {
        alternate::alternate(side, pattern, &mut *floor, &mut *ours)?
    };
    // Nobody hangs up while the other still plays.
    side.meeting.meet();
    drop(idle);
    if side.plan.test == Test::Bandwidth {
        tell_memcpy(side, size)?;
    }
    Ok(found(side, size, &alternated, floor_name))
}

fn found(side: &Side, size: usize, alternated: &Alternated, floor_name: &str) -> Found {
    let per_second = |nanoseconds: f64| 1e9 / nanoseconds;
    let (runs, unit) = match side.plan.test {
        Test::Latency => (alternated.runs.map(|nanoseconds| nanoseconds), "ns"),
        Test::Rate => (alternated.runs.map(per_second), "msg/s"),
        _ => {
            let bytes = |nanoseconds| per_second(nanoseconds) * size as f64;
            (alternated.runs.map(bytes), "B/s")
        }
    };
    let mut figures = runs.figures(&side.plan, unit, floor_name);
    figures.size = Some(size);
    match side.plan.test {
        Test::Latency => {
            figures.p50_ns = Some(quantile(&alternated.times, 0.5));
            figures.p99_ns = Some(quantile(&alternated.times, 0.99));
        }
        Test::Rate => figures.rate_per_s = Some(figures.value),
        _ => {
            figures.rate_per_s = Some(figures.value / size as f64);
            figures.bytes_per_s = Some(figures.value);
        }
    }
    Found { runs, figures }
}

/// The bare machine's way for such messages, and how the table calls it.
pub(super) fn floor(
    side: &mut Side,
    size: usize,
) -> anyhow::Result<(Box<dyn Carrier>, &'static str)> {
    let (variant, number) = (side.plan.variant, side.number);
    let buffers = || Buffers::new(size, variant.separate);
    if side.plan.path.is_network() {
        let waiting = if variant.asleep {
            Waiting::Asleep
        } else {
            Waiting::Polling
        };
        let stream = wire::stream(&mut side.meeting, number, side.plan.places[0].address)?;
        if side.plan.path == Path::Tls {
            let stream = tls::stream(stream, number, &side.plan.authority)?;
            let socket = Socket::new(stream, waiting, buffers())?;
            return Ok((Box::new(socket), tls::NAME));
        }
        let name = match waiting {
            Waiting::Asleep => socket::NAME_ASLEEP,
            Waiting::Polling => socket::NAME,
        };
        let socket = Socket::new(stream, waiting, buffers())?;
        return Ok((Box::new(socket), name));
    }
    let memory = side.memory;
    if variant.asleep {
        return Ok((Box::new(Futex::new(memory, number)), futex::NAME));
    }
    // What is handed over is an address, whatever it is the address of.
    let carried = if variant.lent { 8 } else { size };
    if carried > line::LONGEST || side.plan.test == Test::Bandwidth {
        return Ok((Box::new(Copy::new(memory, number, buffers())), copy::NAME));
    }
    if side.plan.test == Test::Rate {
        return Ok((Box::new(Ring::new(memory, number)), ring::NAME));
    }
    Ok((Box::new(Line::new(memory, number, carried)), line::NAME))
}

/// Ours: whole words as values, anything else as bytes.
fn ours<O: Outlet + 'static>(
    side: &Side,
    outlet: O,
    inbox: Mailbox,
    size: usize,
) -> Box<dyn Carrier> {
    let variant = side.plan.variant;
    if variant.lent {
        return Box::new(Lent::new(side.deck.clone(), outlet, inbox, size));
    }
    if variant.packed {
        let buffers = Buffers::new(size, variant.separate);
        return Box::new(Packed::new(outlet, inbox, buffers));
    }
    match size {
        8 => Box::new(Value::<O, 1>::new(outlet, inbox, variant.separate)),
        16 => Box::new(Value::<O, 2>::new(outlet, inbox, variant.separate)),
        24 => Box::new(Value::<O, 3>::new(outlet, inbox, variant.separate)),
        32 => Box::new(Value::<O, 4>::new(outlet, inbox, variant.separate)),
        40 => Box::new(Value::<O, 5>::new(outlet, inbox, variant.separate)),
        48 => Box::new(Value::<O, 6>::new(outlet, inbox, variant.separate)),
        56 => Box::new(Value::<O, 7>::new(outlet, inbox, variant.separate)),
        _ => Box::new(Bytes::new(
            outlet,
            inbox,
            Buffers::new(size, variant.separate),
        )),
    }
}

/// How fast one core copies such a message, for comparison.
fn tell_memcpy(side: &mut Side, size: usize) -> anyhow::Result<()> {
    const COPIED: usize = 256 << 20;
    if side.is_first() {
        let (source, mut target) = (vec![1u8; size], vec![0u8; size]);
        let copies = (COPIED / size).clamp(4, 100_000);
        target.copy_from_slice(&source);
        let started = Instant::now();
        for _ in 0..copies {
            target.copy_from_slice(std::hint::black_box(&source));
            std::hint::black_box(&mut target);
        }
        let bytes_per_s = (copies * size) as f64 / started.elapsed().as_secs_f64();
        side.say(&Said::Copies { size, bytes_per_s })?;
    }
    side.meeting.meet();
    Ok(())
}
