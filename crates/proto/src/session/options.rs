//! Who is at the two ends of a session.

use super::limits::KEPT_MAX;
use crate::credit::{Credits, WINDOW};
use crate::id::ProcessId;

/// A job, as its authority numbers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct JobId(pub [u8; 16]);

/// A cluster of a job; 0 where there is only one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ClusterId(pub u32);

/// The order of bytes in a process's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum ByteOrder {
    /// The lowest first.
    Little = 1,
    /// The highest first.
    Big = 2,
}

impl ByteOrder {
    /// The order with this number.
    pub const fn from_u8(byte: u8) -> Option<Self> {
        match byte {
            1 => Some(Self::Little),
            2 => Some(Self::Big),
            _ => None,
        }
    }
}

/// How numbers lie in a process's memory. Plain data travels as it lies there; who receives it puts it right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryForm {
    /// The order of bytes.
    pub byte_order: ByteOrder,
    /// How many bytes a `usize` has: 4 or 8.
    pub word: u8,
}

impl MemoryForm {
    /// That of this process.
    pub const NATIVE: Self = Self {
        byte_order: if cfg!(target_endian = "big") {
            ByteOrder::Big
        } else {
            ByteOrder::Little
        },
        word: size_of::<usize>() as u8,
    };

    /// The form that a greeting tells, if there is such a one.
    pub const fn from_u8s(byte_order: u8, word: u8) -> Option<Self> {
        match (ByteOrder::from_u8(byte_order), word) {
            (Some(byte_order), 4 | 8) => Some(Self { byte_order, word }),
            _ => None,
        }
    }
}

/// Which end may dial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialling {
    /// Whichever needs a connection.
    Both,
    /// Only this one, which then always has a connection or tries to: the other may have something to say.
    Here,
    /// Only the other: this one cannot reach it.
    There,
}

/// Who is at the two ends of a session, and what it may use.
#[derive(Debug, Clone)]
pub struct SessionOptions {
    /// This process.
    pub local: ProcessId,
    /// The process at the other end.
    pub peer: ProcessId,
    /// The job of both.
    pub job: JobId,
    /// The cluster of this process.
    pub cluster: ClusterId,
    /// The cluster of the peer.
    pub peer_cluster: ClusterId,
    /// How numbers lie in this process's memory.
    pub form: MemoryForm,
    /// What each mailbox grants; the same at both ends.
    pub window: Credits,
    /// How many bytes of frames are kept until they are acknowledged.
    pub kept_max: u64,
    /// Which end dials.
    pub dialling: Dialling,
    /// What the pauses between attempts are drawn from. Processes that lose their connections together must not all have
    /// the same.
    pub seed: u64,
    /// The first number of either direction: 1, but for those who want to see the last.
    pub first_number: u64,
}

impl SessionOptions {
    /// The limits of `docs/wire-sessions.md`, in a job of one cluster.
    pub const fn new(local: ProcessId, peer: ProcessId, job: JobId, seed: u64) -> Self {
        Self {
            local,
            peer,
            job,
            cluster: ClusterId(0),
            peer_cluster: ClusterId(0),
            form: MemoryForm::NATIVE,
            window: WINDOW,
            kept_max: KEPT_MAX,
            dialling: Dialling::Both,
            seed,
            first_number: 1,
        }
    }
}
