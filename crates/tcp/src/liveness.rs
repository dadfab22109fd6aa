//! Whether the host at the other end still answers.
//!
//! An idle connection is probed by the kernel (keepalive). One with data under way is not, and the kernel
//! retransmits for a quarter of an hour. `TCP_USER_TIMEOUT` would end that, but it also ends connections to
//! a process that is merely busy: it counts the time with a closed window, however well the peer's kernel
//! answers. So we look for ourselves, once a second, at links on which something was written, until all
//! of it is acknowledged.
//!
//! This file has unsafe code because it reads kernel structures that no safe interface gives.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

/// What a look at a connection says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pulse {
    /// Everything is acknowledged: keepalive takes over.
    Idle,
    /// Something is under way, and the other end may well be there.
    Alive,
    /// The other end does not answer.
    Silent,
}

/// Takes the pulse of a connection of TCP.
///
/// ```
/// use std::os::fd::AsFd;
///
/// let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
/// let socket = std::net::TcpStream::connect(listener.local_addr()?)?;
/// assert_eq!(mizzen_tcp::pulse(socket.as_fd())?, mizzen_tcp::Pulse::Idle);
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
///
/// What the system says, if it is none.
pub fn pulse(socket: BorrowedFd<'_>) -> io::Result<Pulse> {
    if unacknowledged(socket)? == 0 {
        return Ok(Pulse::Idle);
    }
    Ok(if answers(socket)?.is_silent() {
        Pulse::Silent
    } else {
        Pulse::Alive
    })
}

/// What the kernel knows about answers.
#[derive(Debug, Clone, Copy)]
struct Answers {
    /// Since the last acknowledgement of anything.
    silence: Duration,
    /// In a row, without an answer.
    retransmissions: u8,
    /// Of a closed window, in a row, without an answer.
    probes: u8,
}

impl Answers {
    /// One unanswered question may be a lost packet, or not have had the time.
    fn is_silent(self) -> bool {
        self.silence >= SILENCE && (self.retransmissions >= 2 || self.probes >= 2)
    }
}

/// Bytes that were written and not acknowledged.
fn unacknowledged(socket: BorrowedFd<'_>) -> io::Result<libc::c_int> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the descriptor is open, and the request writes one int, for which `bytes` is a valid place.
    match unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) } {
        0 => Ok(bytes),
        _ => Err(io::Error::last_os_error()),
    }
}

fn answers(socket: BorrowedFd<'_>) -> io::Result<Answers> {
    // SAFETY: the structure is integers only, for which zero is a value.
    let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
    let mut len = size_of::<libc::tcp_info>() as libc::socklen_t;
    // SAFETY: the descriptor is open; the kernel writes at most `len` bytes to `info`, which has that size.
    let outcome = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut info).cast(),
            &raw mut len,
        )
    };
    if outcome != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(Answers {
        silence: Duration::from_millis(info.tcpi_last_ack_recv.into()),
        retransmissions: info.tcpi_retransmits,
        probes: info.tcpi_probes,
    })
}

/// A peer that answers nothing for so long is lost.
pub(crate) const SILENCE: Duration = Duration::from_secs(3);
/// How often to look: the loss is noticed within a third more.
pub(crate) const PULSE_INTERVAL: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    fn is_silent(silence: u64, retransmissions: u8, probes: u8) -> bool {
        Answers {
            silence: Duration::from_millis(silence),
            retransmissions,
            probes,
        }
        .is_silent()
    }

    #[test]
    fn silence_is_long_and_has_questions_in_it() {
        assert!(is_silent(3000, 2, 0));
        assert!(is_silent(3000, 0, 2));
        assert!(!is_silent(2999, 9, 9), "not long");
        assert!(!is_silent(60_000, 0, 0), "nothing was asked");
        assert!(
            !is_silent(60_000, 0, 1),
            "just asked: probes of a closed window are minutes apart"
        );
    }

    #[test]
    fn a_connection_on_which_all_is_read_is_idle() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut here = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (there, _) = listener.accept().unwrap();
        assert_eq!(pulse(here.as_fd()).unwrap(), Pulse::Idle);
        here.set_nonblocking(true).unwrap();
        while std::io::Write::write(&mut here, &[0; 65_536]).is_ok() {}
        assert_eq!(pulse(here.as_fd()).unwrap(), Pulse::Alive);
        drop(there);
    }
}
