//! Processes by descriptor (pidfd).
//!
//! A pid may be reused the moment its process has been waited for; a pidfd names one process for ever. It becomes readable
//! when the process has ended, whether its parent has waited for it or not.
//!
//! Who knows many processes and seldom needs one of them keeps their [`ProcessStamp`]s, which cost no descriptor.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions};

/// A process of this host, possibly dead.
///
/// To wait for its end together with other things, poll it for input.
#[derive(Debug)]
pub struct ProcessFd {
    fd: OwnedFd,
}

impl ProcessFd {
    /// Opens the process that has this number now.
    ///
    /// Only its parent, before it waits, and the process itself can be sure which process that is.
    ///
    /// # Errors
    ///
    /// [`ProcessError::Gone`] if there is none.
    pub fn open(pid: u32) -> Result<Self, ProcessError> {
        let pid = i32::try_from(pid)
            .ok()
            .and_then(Pid::from_raw)
            .ok_or(ProcessError::Gone)?;
        let fd = rustix::process::pidfd_open(pid, PidfdFlags::empty())
            .map_err(ProcessError::from_errno)?;
        Ok(Self { fd })
    }

    /// Takes a descriptor received from another process, if it is a pidfd.
    ///
    /// # Errors
    ///
    /// [`ProcessError::NotProcess`] if it is anything else; it is closed then.
    pub fn from_fd(fd: OwnedFd) -> Result<Self, ProcessError> {
        // Of the calls that take a pidfd, this one takes nothing else (`pidfd_send_signal` also takes /proc/<pid>), and
        // it changes nothing: it looks without waiting or collecting, and mostly says that this is no child of ours.
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        match rustix::process::waitid(WaitId::PidFd(fd.as_fd()), options) {
            Ok(_) | Err(Errno::CHILD | Errno::AGAIN) => Ok(Self { fd }),
            Err(Errno::BADF) => Err(ProcessError::NotProcess),
            Err(other) => Err(ProcessError::Os(other)),
        }
    }

    /// Whether the process has ended. It may still be a zombie, which runs nothing and holds nothing.
    #[must_use]
    pub fn is_dead(&self) -> bool {
        let mut fds = [PollFd::new(&self.fd, PollFlags::IN)];
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // With a timeout of zero the call cannot be interrupted; should it be refused, the process counts as alive.
        matches!(rustix::event::poll(&mut fds, Some(&now)), Ok(1..))
    }

    /// Sends a signal, by number (`SIGTERM` is 15).
    ///
    /// # Errors
    ///
    /// [`ProcessError::Gone`] if it has ended and was waited for.
    pub fn send_signal(&self, signal: i32) -> Result<(), ProcessError> {
        let signal = Signal::from_named_raw(signal).ok_or(ProcessError::Os(Errno::INVAL))?;
        rustix::process::pidfd_send_signal(&self.fd, signal).map_err(ProcessError::from_errno)
    }
}

/// A process of this host by its number and the moment when it started: a later one with the same number is not it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessStamp {
    /// Its number.
    pub pid: u32,
    /// When it started, as the kernel counts. Zero if that is not known, and only the number counts.
    pub started: u64,
}

impl ProcessStamp {
    /// The process that has this number now. As with [`ProcessFd::open`], only its parent can be sure which one that is.
    #[must_use]
    pub fn of(pid: u32) -> Self {
        let started = started(pid).unwrap_or(0);
        Self { pid, started }
    }

    /// Opens the process, if it is there: running, or ended and not waited for.
    ///
    /// # Errors
    ///
    /// [`ProcessError::Gone`] if it has ended and was waited for.
    pub fn open(self) -> Result<ProcessFd, ProcessError> {
        let process = ProcessFd::open(self.pid)?;
        // If the number is still its own, it was so a moment ago, when it was opened.
        if self.started != 0 && started(self.pid).is_none_or(|started| started != self.started) {
            return Err(ProcessError::Gone);
        }
        Ok(process)
    }
}

/// When the process that has this number now started.
fn started(pid: u32) -> Option<u64> {
    const AFTER_NAME: usize = 19;
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program, in parentheses, may hold blanks and parentheses.
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(AFTER_NAME)?.parse().ok()
}

impl AsFd for ProcessFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl From<ProcessFd> for OwnedFd {
    fn from(process: ProcessFd) -> Self {
        process.fd
    }
}

/// Why a process could not be opened or signalled.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// There is no such process, or no longer.
    #[error("the process does not exist")]
    Gone,
    /// The descriptor is something else.
    #[error("the descriptor is not a process")]
    NotProcess,
    /// The kernel refused.
    #[error("process refused by the kernel: {0}")]
    Os(#[source] Errno),
}

impl ProcessError {
    fn from_errno(errno: Errno) -> Self {
        match errno {
            Errno::SRCH => Self::Gone,
            other => Self::Os(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command, Stdio};

    const KILL: i32 = 9;

    fn sleeper() -> Child {
        Command::new("sleep")
            .arg("1000")
            .stdin(Stdio::null())
            .spawn()
            .unwrap()
    }

    fn wait_for_end(process: &ProcessFd) {
        let mut fds = [PollFd::new(process, PollFlags::IN)];
        let limit = Timespec {
            tv_sec: 20,
            tv_nsec: 0,
        };
        assert_eq!(rustix::event::poll(&mut fds, Some(&limit)), Ok(1));
    }

    #[test]
    fn a_zombie_is_dead() {
        let mut child = sleeper();
        let process = ProcessFd::open(child.id()).unwrap();
        assert!(!process.is_dead());
        process.send_signal(KILL).unwrap();
        wait_for_end(&process);
        assert!(process.is_dead(), "ended, not yet waited for");
        child.wait().unwrap();
        assert!(process.is_dead(), "waited for");
        assert!(matches!(process.send_signal(KILL), Err(ProcessError::Gone)));
        assert!(matches!(
            ProcessFd::open(child.id()),
            Err(ProcessError::Gone)
        ));
    }

    #[test]
    fn a_stamp_opens_the_process_until_it_was_waited_for_and_no_other_of_its_number() {
        let mut child = sleeper();
        let stamp = ProcessStamp::of(child.id());
        assert_ne!(stamp.started, 0);
        let process = stamp.open().unwrap();
        let later = ProcessStamp {
            started: stamp.started + 1,
            ..stamp
        };
        assert!(matches!(later.open(), Err(ProcessError::Gone)));
        process.send_signal(KILL).unwrap();
        wait_for_end(&process);
        assert!(stamp.open().unwrap().is_dead(), "not yet waited for");
        child.wait().unwrap();
        assert!(matches!(stamp.open(), Err(ProcessError::Gone)));
    }

    #[test]
    fn a_received_process_is_the_one_that_was_sent() {
        let mut child = sleeper();
        let sent = ProcessFd::open(child.id()).unwrap();
        let received = ProcessFd::from_fd(sent.as_fd().try_clone_to_owned().unwrap()).unwrap();
        assert!(!received.is_dead());
        received.send_signal(KILL).unwrap();
        wait_for_end(&sent);
        assert!(received.is_dead());
        child.wait().unwrap();
        ProcessFd::from_fd(sent.into()).expect("the dead are processes too");
    }

    #[test]
    fn a_process_that_is_not_our_child_is_taken() {
        let parent = rustix::process::getppid().unwrap();
        let process = ProcessFd::open(parent.as_raw_nonzero().get().unsigned_abs()).unwrap();
        assert!(!ProcessFd::from_fd(process.into()).unwrap().is_dead());
    }

    #[test]
    fn other_descriptors_are_refused() {
        let proc_directory = std::fs::File::open(format!("/proc/{}", std::process::id())).unwrap();
        let null = std::fs::File::open("/dev/null").unwrap();
        for fd in [OwnedFd::from(proc_directory), null.into()] {
            assert!(matches!(
                ProcessFd::from_fd(fd),
                Err(ProcessError::NotProcess)
            ));
        }
    }

    #[test]
    fn impossible_numbers_name_no_process() {
        for pid in [0, u32::MAX] {
            assert!(matches!(ProcessFd::open(pid), Err(ProcessError::Gone)));
        }
    }
}
