//! Sleeping: one descriptor for those of others, a bell that the driver rings itself, and a timer.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

/// A descriptor for [`Driver::wakeup`](crate::Driver::wakeup) that stands for several.
///
/// ```
/// use mizzen_driver::{Wakeup, are_quiet};
///
/// let mut wakeup = Wakeup::new()?;
/// assert!(are_quiet([wakeup.fd()].into_iter()));
/// wakeup.ring();
/// assert!(!are_quiet([wakeup.fd()].into_iter()));
/// wakeup.hush();
/// assert!(are_quiet([wakeup.fd()].into_iter()));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Wakeup {
    epoll: OwnedFd,
    bell: OwnedFd,
    timer: OwnedFd,
    is_rung: bool,
    is_armed: bool,
}

impl Wakeup {
    /// With nothing but its own bell and timer.
    ///
    /// # Errors
    ///
    /// If the system refuses a descriptor.
    pub fn new() -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        let wakeup = Self {
            epoll,
            bell,
            timer,
            is_rung: false,
            is_armed: false,
        };
        for fd in [&wakeup.bell, &wakeup.timer] {
            wakeup.watch(fd.as_fd())?;
        }
        Ok(wakeup)
    }

    /// Is readable while this one is, until it is closed.
    ///
    /// # Errors
    ///
    /// If the system refuses: too many descriptors lead from one to another, or there is no memory.
    pub fn watch(&self, fd: BorrowedFd<'_>) -> io::Result<()> {
        let data = EventData::new_u64(0);
        Ok(epoll::add(&self.epoll, fd, data, EventFlags::IN)?)
    }

    /// From now on, cares only for what is new at a descriptor that is watched; one that stays readable for
    /// ever is quiet after a [`harvest`](Self::harvest).
    ///
    /// # Errors
    ///
    /// If it is not watched.
    pub fn watch_edges(&self, fd: BorrowedFd<'_>) -> io::Result<()> {
        let data = EventData::new_u64(0);
        let edges = EventFlags::IN | EventFlags::ET;
        Ok(epoll::modify(&self.epoll, fd, data, edges)?)
    }

    /// Watches the descriptor of a queue, if it has one; says whether that will do. The system bounds how many
    /// descriptors lead from one to another: then the timer has to do.
    pub fn watch_queue(&self, queue: Option<BorrowedFd<'_>>, has_edges: bool) -> bool {
        queue.is_some_and(|descriptor| {
            let edges = || match has_edges {
                true => self.watch_edges(descriptor),
                false => Ok(()),
            };
            self.watch(descriptor).and_then(|()| edges()).is_ok()
        })
    }

    /// Takes note of what is new.
    pub fn harvest(&self) {
        let mut events = [MaybeUninit::uninit(); MAX_EVENTS];
        // Interrupted, it is still readable: the next harvest will do.
        let _ = epoll::wait(&self.epoll, &mut events[..], Some(&NOW));
    }

    /// Is readable until [`hush`](Self::hush).
    pub fn ring(&mut self) {
        if !self.is_rung {
            // The only failure is a full counter, and a full counter is readable.
            let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
            self.is_rung = true;
        }
    }

    /// Ends what [`ring`](Self::ring) began.
    pub fn hush(&mut self) {
        if self.is_rung {
            // The only failure is an empty counter, which is what we want.
            let _ = rustix::io::read(&self.bell, &mut [0; 8]);
            self.is_rung = false;
        }
    }

    /// Is readable after this time, unless [`disarm`](Self::disarm) comes first.
    pub fn arm(&mut self, after: Duration) {
        let times = Itimerspec {
            it_interval: NOW,
            it_value: Timespec::try_from(after).unwrap_or(NOW),
        };
        // It fails for bad arguments only, and these are in range.
        let _ = timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &times);
        self.is_armed = true;
    }

    /// Forgets what [`arm`](Self::arm) asked for.
    pub fn disarm(&mut self) {
        if self.is_armed {
            self.arm(Duration::ZERO);
            self.is_armed = false;
        }
    }

    /// The descriptor.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

/// Whether none of these descriptors is readable.
pub fn are_quiet<'a>(fds: impl Iterator<Item = BorrowedFd<'a>>) -> bool {
    let mut fds: Vec<PollFd<'_>> = fds
        .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
        .collect();
    // Interrupted, we do not know.
    poll(&mut fds, Some(&NOW)).is_ok_and(|ready| ready == 0)
}

const NOW: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 0,
};
/// Events that one harvest takes; with more it stays readable, and another follows.
const MAX_EVENTS: usize = 64;
