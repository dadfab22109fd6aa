//! Shared memory between processes of a host: segments, sockets that pass them, peer death.
//!
//! This is the operating system's part of lanes. It gives memory and descriptors; it does not know what a
//! lane or a message is.
//!
//! - [`Segment`] and [`View`]: memory one process makes and others map, sealed so that the kernel keeps the promises.
//! - [`Socket`]: packets with descriptors between two processes.
//! - [`ProcessFd`]: a process by descriptor, so that the reuse of its number cannot deceive us; [`ProcessStamp`] the same
//!   without a descriptor.
//! - [`futex`]: sleeping on a word of shared memory.
//! - [`barrier`]: a fence that one thread makes for all.
//! - [`pull`]: one copy out of the memory of another process.
//! - [`mod@slice`]: whose turn it is among threads that compute.
//!
//! Nothing here has a name in a file system: what a killed process held, the kernel takes back.
//!
//! Processes of one user on one host are one trust domain (ptrace can do anything). What is checked here
//! contains faults; it is no defence against an attacker who is already that user.

pub mod barrier;
pub mod futex;
mod process;
pub mod pull;
mod region;
mod segment;
pub mod slice;
mod socket;

pub use process::{ProcessError, ProcessFd, ProcessStamp};
pub use region::{fault_in, region_of_segment, region_of_view};
pub use segment::{
    Access, AttachError, Fault, MAX_SEGMENT, SealNames, Segment, SegmentError, View,
};
pub use socket::{MAX_FDS, MAX_PACKET, Received, Socket, SocketError};
