//! Signals that a launcher passes on: it takes them as input, and what it starts treats them as before.

#![allow(unsafe_code)]

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use mizzen_proto::boot::SignalOrigin;

/// The signals that the launcher passes on.
const FORWARDED: [i32; 7] = [
    libc::SIGINT,
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGQUIT,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGCONT,
];

/// The forwarded signals, as a descriptor that becomes readable.
#[derive(Debug)]
pub struct Signals {
    fd: OwnedFd,
}

impl Signals {
    /// Makes the forwarded signals arrive here, instead of doing what they usually do. Call this before any thread is started.
    ///
    /// Children would inherit this: see [`unblock_in`].
    ///
    /// # Errors
    ///
    /// If there is no descriptor left, or no memory.
    pub fn take() -> std::io::Result<Self> {
        change_mask(libc::SIG_BLOCK)?;
        let set = forwarded_set();
        // SAFETY: `set` is valid and lives longer than the call; with -1 it makes a new descriptor.
        let fd = unsafe { libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
        if fd < 0 {
            return Err(std::io::Error::last_os_error());
        }
        // SAFETY: the kernel has just made the descriptor, and nobody else knows it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Self { fd })
    }

    /// The next signal that has arrived.
    pub fn next(&self) -> Option<(u8, SignalOrigin)> {
        let mut info = [0_u8; size_of::<libc::signalfd_siginfo>()];
        if rustix::io::read(&self.fd, &mut info) != Ok(info.len()) {
            return None;
        }
        // SAFETY: a `signalfd_siginfo` is made of integers, so any bytes are one; the array has its size, and
        // `read_unaligned` asks for no alignment.
        let info = unsafe {
            info.as_ptr()
                .cast::<libc::signalfd_siginfo>()
                .read_unaligned()
        };
        let origin = match info.ssi_code {
            libc::SI_KERNEL => SignalOrigin::Terminal,
            _ => SignalOrigin::Process,
        };
        Some((u8::try_from(info.ssi_signo).ok()?, origin))
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Makes signals do in a child what they did before [`Signals::take`].
pub fn unblock_in(command: &mut Command) {
    // SAFETY: the closure runs between fork and exec of a process that may have threads, so it must do only what a signal
    // handler may: `sigemptyset`, `sigaddset` and `pthread_sigmask` are on that list, and it allocates nothing.
    unsafe { command.pre_exec(|| change_mask(libc::SIG_UNBLOCK)) };
}

fn change_mask(how: i32) -> std::io::Result<()> {
    let set = forwarded_set();
    // SAFETY: `set` is valid and lives longer than the call; a null pointer says that the old mask is not wanted.
    match unsafe { libc::pthread_sigmask(how, &set, std::ptr::null_mut()) } {
        0 => Ok(()),
        refused => Err(std::io::Error::from_raw_os_error(refused)),
    }
}

fn forwarded_set() -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: `sigemptyset` makes all of `set` valid before anything reads it; the numbers are those of signals.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in FORWARDED {
            libc::sigaddset(set.as_mut_ptr(), signal);
        }
        set.assume_init()
    }
}
