//! How a process ended, and what that means to those who look for it.

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Death {
    /// It exited with this code.
    Exit(u8),
    /// It was killed by this signal.
    Signal(u8),
    /// Its host cannot be reached any more.
    HostLost,
}

/// Why a process cannot be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unreachable {
    /// The job has no such process, or it is the one that asks.
    NoSuchRank,
    /// It failed, and is not started again.
    Dead,
    /// It left the job, or ended with exit code 0.
    Left,
}
