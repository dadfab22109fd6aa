//! The descriptor that the launcher's agent left for us.
#![allow(unsafe_code)]

use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

use mizzen_proto::boot::AGENT_FD;
use mizzen_shm::Socket;

use crate::error::JoinError;

/// The socket to the agent, if a launcher started us. It can be taken once.
pub(super) fn take_agent() -> Result<Option<Socket>, JoinError> {
    static TAKEN: AtomicBool = AtomicBool::new(false);
    let Some(value) = std::env::var_os(AGENT_FD) else {
        return Ok(None);
    };
    let unusable = |cause: &str| JoinError::Descriptor {
        value: value.to_string_lossy().into(),
        cause: cause.into(),
    };
    let number: RawFd = value
        .to_str()
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| unusable("not a number"))?;
    if number < 3 {
        return Err(unusable("not an inherited descriptor"));
    }
    if TAKEN.swap(true, Ordering::AcqRel) {
        return Err(JoinError::Twice);
    }
    // SAFETY: the agent gave the descriptor to this process for this purpose, and the swap above makes us the only ones who
    // ever take it. If the variable lies about a closed descriptor, the checks in `from_fd` fail; if it names one that
    // is in use, it must be a Unix packet socket to pass them.
    let fd = unsafe { OwnedFd::from_raw_fd(number) };
    match rustix::io::fcntl_getfd(&fd) {
        Ok(_) => Socket::from_fd(fd)
            .map(Some)
            .map_err(|error| unusable(&error.to_string())),
        Err(_) => {
            // It is not ours to close.
            core::mem::forget(fd);
            Err(unusable("no such descriptor"))
        }
    }
}
