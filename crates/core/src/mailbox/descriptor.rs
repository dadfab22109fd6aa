//! A mailbox's descriptor, for programs with an event loop of their own.
//!
//! The descriptor is an eventfd. It is readable unless the mailbox is *armed*, which it is after a look that found nothing:
//!
//! | owner, after a look that found nothing | who sends, and the reactor |
//! | --- | --- |
//! | 1. make the descriptor unreadable | 1. announce the message |
//! | 2. leave a waker that makes it readable | 2. read the watch: ring the reactor's bell |
//! | 3. announce sleep on the reactor's bell | 3. the reactor looks, and wakes |
//! | 4. look again: if there is something, make it readable | |
//!
//! That is how a task waits, too, and no wake-up is lost for the same reason (`crates/lane/src/signal.rs`). Whatever else takes
//! the waker away makes the descriptor readable, so that the loop looks and arms it again.

use core::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::task::Wake;

use rustix::event::{EventfdFlags, eventfd};

/// A descriptor that is readable when a mailbox may have something: see [`Mailbox::descriptor`](crate::Mailbox::descriptor).
///
/// It stays valid, though useless, after the mailbox is dropped. Do not read from it or write to it: the mailbox does.
#[derive(Clone)]
pub struct Descriptor(pub(super) Arc<Event>);

impl AsFd for Descriptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.0.as_fd()
    }
}

impl AsRawFd for Descriptor {
    fn as_raw_fd(&self) -> RawFd {
        self.0.0.as_raw_fd()
    }
}

impl fmt::Debug for Descriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Descriptor")
            .field(&self.as_raw_fd())
            .finish()
    }
}

/// The eventfd.
pub(super) struct Event(OwnedFd);

impl Event {
    /// One that is readable.
    pub(super) fn new() -> io::Result<Arc<Self>> {
        let event = eventfd(1, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Arc::new(Self(event)))
    }

    pub(super) fn set(&self) {
        // If there is no room for another, it is readable.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    pub(super) fn clear(&self) {
        // If there is nothing to read, it is unreadable already.
        let _ = rustix::io::read(&self.0, &mut [0; 8]);
    }
}

impl Wake for Event {
    fn wake(self: Arc<Self>) {
        self.set();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.set();
    }
}
