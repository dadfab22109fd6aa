//! A process that is no longer there.

use core::fmt;

use mizzen_proto::boot::Death;

use crate::rank::{ProcessId, Rank};

/// A process that is no longer there, and how it went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone {
    process: ProcessId,
    how: Departure,
    /// What its host's agent saw.
    death: Option<Death>,
}

/// How a process went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Departure {
    /// It left the job in an orderly way.
    Left,
    /// It died: killed, crashed, or ended without leaving.
    Died,
    /// The connection to its host broke.
    ConnectionLost,
    /// It wrote nonsense into memory or onto the wire, and was cut off.
    Misbehaved,
    /// It takes nothing of this process any more: it was told that this process is dead. That happens to a host that stood still
    /// or was cut off for too long; its agent ends its processes.
    Refused,
}

impl Gone {
    /// `process` went like this.
    #[must_use]
    pub fn new(process: ProcessId, how: Departure) -> Self {
        Self {
            process,
            how,
            death: None,
        }
    }

    /// Whether its host was lost, so that it may exist without being part of the job.
    pub(crate) fn is_host_lost(&self) -> bool {
        self.death == Some(Death::HostLost)
    }

    /// It died, as the agents agreed.
    pub(crate) fn died(process: ProcessId, death: Death) -> Self {
        Self {
            process,
            how: Departure::Died,
            death: Some(death),
        }
    }

    /// Which process.
    #[must_use]
    pub fn rank(&self) -> Rank {
        self.process.rank
    }

    /// Which life of it.
    #[must_use]
    pub fn process(&self) -> ProcessId {
        self.process
    }

    /// How it went.
    #[must_use]
    pub fn how(&self) -> Departure {
        self.how
    }

    /// The signal that killed it, if that is known: the launcher tells it for processes of other hosts.
    ///
    /// ```
    /// # fn report(gone: &mizzen::Gone) {
    /// if gone.signal() == Some(9) {
    ///     eprintln!("rank {} was killed, perhaps for want of memory", gone.rank());
    /// }
    /// # }
    /// ```
    #[must_use]
    pub fn signal(&self) -> Option<u8> {
        match self.death {
            Some(Death::Signal(number)) => Some(number),
            _ => None,
        }
    }

    /// Whether it went in any other way than by leaving.
    #[must_use]
    pub fn is_failure(&self) -> bool {
        self.how != Departure::Left
    }
}

impl Gone {
    fn fmt_died(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {} died", self.process)?;
        match self.death {
            None => Ok(()),
            Some(Death::Exit(code)) => write!(f, ": exit code {code}"),
            Some(Death::Signal(number)) => match signal_name(number) {
                Some(name) => write!(f, ": signal {number} ({name})"),
                None => write!(f, ": signal {number}"),
            },
            Some(Death::HostLost) => write!(f, ": its host was lost"),
        }
    }
}

/// The signals that end programs, as Linux numbers them on all machines that we run on.
fn signal_name(number: u8) -> Option<&'static str> {
    Some(match number {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        5 => "SIGTRAP",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        31 => "SIGSYS",
        _ => return None,
    })
}

impl fmt::Display for Gone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = match self.how {
            Departure::Left => "has left the job",
            Departure::Died => return self.fmt_died(f),
            Departure::ConnectionLost => "is lost: the connection to its host broke",
            Departure::Misbehaved => "wrote nonsense and was cut off",
            Departure::Refused => {
                "takes nothing of this process any more: it was told that this process is dead"
            }
        };
        write!(f, "rank {} {how}", self.process)
    }
}
