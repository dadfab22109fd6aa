//! A wide area network between two sites, made of one kernel's packets: `wan [KEY=VALUE …]`, run by `ci/testbed`.
//!
//! The kernel hands over each packet that crosses (NFQUEUE): queue 0 holds those from site a to site b, queue 1 those back. Here is
//! decided when a packet goes on, whether it does, and what becomes of it. The bytes stay in the kernel unless they are to be changed.
//! Ends when its standard input does, with a line for each way; and with exit code 3 if this program was itself so late that what was
//! measured meanwhile says nothing about anybody else.
//!
//! | key | meaning |
//! | --- | --- |
//! | `delay`, `jitter` | milliseconds, one way; each packet's delay differs by up to the jitter, and order is kept |
//! | `loss`, `reorder`, `duplicate`, `corrupt` | of 1, by packet |
//! | `seed` | of everything random |
//! | `late` | milliseconds that this program may be late |

mod arguments;
mod packet;
mod queue;
mod way;

use std::io::Read;
use std::net::SocketAddrV4;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, OwnedFd};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, SendFlags, SocketType, ipproto, sendto, socket};

use arguments::Arguments;
use queue::{Queue, Verdict};
use way::{Change, Held, Way};

fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::read(std::env::args().skip(1))?;
    // Otherwise the kernel may wake this thread 50 µs late, to save wake-ups.
    rustix::thread::set_current_timer_slack(NonZeroU64::new(1))?;
    let mut ways = [
        Direction::open("a to b", 0, &arguments)?,
        Direction::open("b to a", 1, &arguments)?,
    ];
    // What it sends does not pass the queues again: it goes out from here.
    let again = socket(AddressFamily::INET, SocketType::RAW, Some(ipproto::RAW))
        .context("opening a socket for packets that are sent twice")?;
    println!("ready");
    while !rest(&ways)? {
        for way in &mut ways {
            way.take()?;
            way.let_go(&again)?;
        }
    }
    let mut latest = Duration::ZERO;
    for way in &ways {
        println!("{}", way.account());
        latest = latest.max(way.latest);
    }
    if latest > arguments.late || ways.iter().any(|way| way.queue.overruns() > 0) {
        println!("spoilt: this machine was too busy to be a network");
        return Ok(ExitCode::from(3));
    }
    Ok(ExitCode::SUCCESS)
}

/// One way across, and what happened there.
struct Direction {
    name: &'static str,
    queue: Queue,
    way: Way,
    packets: u64,
    bytes: u64,
    lost: u64,
    late: Duration,
    latest: Duration,
}

impl Direction {
    fn open(name: &'static str, number: u16, arguments: &Arguments) -> anyhow::Result<Self> {
        let whole = arguments.weather.touches_bytes();
        // Packets that the kernel joined would be lost, delayed and changed together.
        let joined = !arguments.weather.is_by_packet();
        Ok(Self {
            name,
            queue: Queue::open(number, whole, joined)
                .with_context(|| format!("taking over packets from {name}"))?,
            way: Way::new(
                arguments.weather,
                arguments.seed.wrapping_mul(2) + u64::from(number),
            ),
            packets: 0,
            bytes: 0,
            lost: 0,
            late: Duration::ZERO,
            latest: Duration::ZERO,
        })
    }

    /// Takes what arrived.
    fn take(&mut self) -> anyhow::Result<()> {
        for _ in 0..BATCH {
            let now = Instant::now();
            let more = self.queue.receive(|packet| {
                self.packets += 1;
                self.bytes += u64::from(packet.length);
                let keeps = self.way.take(now, packet.id, packet.bytes);
                self.lost += u64::from(!keeps);
                keeps
            })?;
            if !more {
                break;
            }
        }
        self.queue.flush()
    }

    /// Lets go what is due.
    fn let_go(&mut self, again: &OwnedFd) -> anyhow::Result<()> {
        let now = Instant::now();
        while let Some(Held { due, what, .. }) = self.way.next_due(now) {
            let late = now - due;
            self.late += late;
            self.latest = self.latest.max(late);
            match what {
                Change::None(id) => self.queue.say(id, Verdict::Accept),
                Change::Corrupted(id, bytes) => self.queue.say(id, Verdict::Instead(&bytes)),
                Change::Again(bytes) => {
                    if let Some(to) = packet::destination(&bytes) {
                        let to = SocketAddrV4::new(to, 0);
                        // Like a loss, if it does not fit.
                        let _ = sendto(again, &bytes, SendFlags::DONTWAIT, &to);
                    }
                }
            }
        }
        self.queue.flush()
    }

    fn account(&self) -> String {
        let mean = self.late.as_secs_f64() * 1e6 / self.packets.max(1) as f64;
        let way = &self.way;
        format!(
            "{}: {} packets, {} MB, {} lost, {} reordered, {} doubled, {} corrupted; late by {mean:.0} us, at most {:.1} ms; {} overruns",
            self.name,
            self.packets,
            self.bytes / 1_000_000,
            self.lost,
            way.reordered,
            way.doubled,
            way.corrupted,
            self.latest.as_secs_f64() * 1e3,
            self.queue.overruns(),
        )
    }
}

/// Sleeps until something arrives or is due. Returns whether it is over.
fn rest(ways: &[Direction; 2]) -> anyhow::Result<bool> {
    let due = ways.iter().filter_map(|way| way.way.due()).min();
    let wait = due.map(|due| due.saturating_duration_since(Instant::now()));
    let wait = wait.map(Timespec::try_from).transpose()?;
    let stdin = std::io::stdin();
    let mut watched = [
        PollFd::from_borrowed_fd(ways[0].queue.as_fd(), PollFlags::IN),
        PollFd::from_borrowed_fd(ways[1].queue.as_fd(), PollFlags::IN),
        PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::IN),
    ];
    match poll(&mut watched, wait.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => (),
        Err(error) => return Err(error).context("waiting for packets"),
    }
    let told = !watched[2].revents().is_empty();
    Ok(told && stdin.lock().read(&mut [0])? == 0)
}

/// Receives at most, before what is due goes on.
const BATCH: usize = 64;
