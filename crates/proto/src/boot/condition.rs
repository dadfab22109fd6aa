//! How the operating system of a host sees a process.

use super::DecodeError;
use super::codec::{Reader, Writer};

/// What a process does, seen from outside: its agent says so, whether or not the process answers itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// Some thread of it runs, or its processor time grows.
    Computes,
    /// All of its threads sleep.
    Sleeps,
    /// A signal has stopped it, or a debugger.
    Stopped,
    /// It is in a call that cannot be interrupted: of a file system that does not answer, say.
    Stuck,
    /// It has ended, and is being collected.
    Ended,
    /// It could not be found out.
    Unknown,
}

impl Condition {
    pub(super) fn encode(self, w: &mut Writer<'_>) {
        w.u8(match self {
            Self::Computes => 1,
            Self::Sleeps => 2,
            Self::Stopped => 3,
            Self::Stuck => 4,
            Self::Ended => 5,
            Self::Unknown => 6,
        });
    }

    pub(super) fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match r.u8()? {
            1 => Ok(Self::Computes),
            2 => Ok(Self::Sleeps),
            3 => Ok(Self::Stopped),
            4 => Ok(Self::Stuck),
            5 => Ok(Self::Ended),
            6 => Ok(Self::Unknown),
            kind => Err(DecodeError::Kind(kind)),
        }
    }
}
