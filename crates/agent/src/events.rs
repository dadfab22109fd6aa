//! Waiting for events.

use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::{Timespec, epoll};
use rustix::io::Errno;

/// Waits for events; none if a signal came first.
pub(crate) fn wait(
    epoll: &OwnedFd,
    events: &mut Vec<epoll::Event>,
    timeout: Option<Duration>,
) -> Result<(), Errno> {
    let timeout = timeout.and_then(|t| Timespec::try_from(t).ok());
    let mut space = [const { MaybeUninit::uninit() }; EVENTS];
    match epoll::wait(epoll, &mut space, timeout.as_ref()) {
        Ok((found, _)) => {
            events.extend_from_slice(found);
            Ok(())
        }
        Err(Errno::INTR) => Ok(()),
        Err(other) => Err(other),
    }
}

/// Events taken in one turn.
pub(crate) const EVENTS: usize = 64;
