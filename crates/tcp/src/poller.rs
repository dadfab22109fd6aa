//! Waiting: epoll, a bell that we ring ourselves, and a timer.
//!
//! Everything is registered once, edge-triggered: no system call when a connection turns from reading to
//! writing. The driver remembers what an edge announced and has not been done yet, and rings the bell
//! so that the epoll descriptor, which is the driver's wakeup, stays readable.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

use crate::slots::Key;

/// What epoll said about one source.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ready {
    pub(crate) source: Source,
    pub(crate) readable: bool,
    pub(crate) writable: bool,
    /// The other end will send no more, or the connection broke.
    pub(crate) hung_up: bool,
}

/// Who became ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    Listener,
    Connection(Key),
}

#[derive(Debug)]
pub(crate) struct Poller {
    epoll: OwnedFd,
    bell: OwnedFd,
    timer: OwnedFd,
    is_rung: bool,
    armed: Option<Instant>,
}

impl Poller {
    pub(crate) fn new() -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        let edge = EventFlags::IN | EventFlags::ET;
        epoll::add(&epoll, &bell, EventData::new_u64(BELL), edge)?;
        epoll::add(&epoll, &timer, EventData::new_u64(TIMER), edge)?;
        Ok(Self {
            epoll,
            bell,
            timer,
            is_rung: false,
            armed: None,
        })
    }

    pub(crate) fn watch_listener(&self, listener: impl AsFd) -> io::Result<()> {
        let edge = EventFlags::IN | EventFlags::ET;
        Ok(epoll::add(
            &self.epoll,
            listener,
            EventData::new_u64(LISTENER),
            edge,
        )?)
    }

    /// Watches a connection until it is closed.
    pub(crate) fn watch(&self, connection: impl AsFd, key: Key) -> io::Result<()> {
        let edges = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        Ok(epoll::add(
            &self.epoll,
            connection,
            EventData::new_u64(key.as_u64()),
            edges,
        )?)
    }

    /// Makes the wakeup readable until the next [`harvest`](Self::harvest).
    pub(crate) fn ring(&mut self) {
        if !self.is_rung {
            // The only failure is a full counter, and a full counter is readable.
            let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
            self.is_rung = true;
        }
    }

    /// Makes the wakeup readable at this time.
    pub(crate) fn arm(&mut self, at: Option<Instant>) {
        if self.armed == at {
            return;
        }
        self.armed = at;
        let left = at.map(|at| at.saturating_duration_since(Instant::now()));
        // Zero would disarm, and a time that has come must fire.
        let nanos = left.map_or(0, |left| left.as_nanos().clamp(1, i64::MAX as u128) as i64);
        let it_value = Timespec {
            tv_sec: nanos / NANOS,
            tv_nsec: nanos % NANOS,
        };
        let times = Itimerspec {
            it_interval: Timespec {
                tv_sec: 0,
                tv_nsec: 0,
            },
            it_value,
        };
        // It fails for bad arguments only, and these are in range.
        let _ = timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &times);
    }

    /// Adds what became ready to `ready`, without waiting.
    pub(crate) fn harvest(&mut self, ready: &mut Vec<Ready>) -> io::Result<()> {
        let mut buffer = [MaybeUninit::uninit(); MAX_EVENTS];
        let no_wait = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let (events, _) = match epoll::wait(&self.epoll, &mut buffer[..], Some(&no_wait)) {
            Ok(taken) => taken,
            Err(rustix::io::Errno::INTR) => return Ok(()),
            Err(errno) => return Err(errno.into()),
        };
        for event in events {
            let (flags, data) = (event.flags, event.data.u64());
            let source = match data {
                BELL => {
                    self.is_rung = false;
                    continue;
                }
                TIMER => {
                    self.armed = None;
                    continue;
                }
                LISTENER => Source::Listener,
                number => Source::Connection(Key::from_u64(number)),
            };
            let hung_up = flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR);
            let readable = hung_up || flags.contains(EventFlags::IN);
            let writable = hung_up || flags.contains(EventFlags::OUT);
            ready.push(Ready {
                source,
                readable,
                writable,
                hung_up,
            });
        }
        Ok(())
    }

    pub(crate) fn wakeup(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

/// Events that one harvest takes; the rest is there at the next, and the wakeup stays readable.
const MAX_EVENTS: usize = 128;
const NANOS: i64 = 1_000_000_000;
// No connection has these numbers: it would have to be the 2³²th in the last place.
const LISTENER: u64 = u64::MAX;
const BELL: u64 = u64::MAX - 1;
const TIMER: u64 = u64::MAX - 2;
