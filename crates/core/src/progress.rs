//! What a thread keeps moving while it waits: the peer for which it waits may be waiting for it.

use std::sync::Arc;
use std::time::Duration;

use crate::bells::Bells;

/// The process as those below it see it: what goes on around a thread that waits.
pub trait Progress: Send + Sync {
    /// Moves everything that can be moved: shared lanes and networks.
    fn pump_all(&self);

    /// Moves what can be moved on networks, unless another thread is doing it.
    fn poll_networks(&self);

    /// From now on a thread looks at the networks all the time, so their own thread need not.
    fn add_poller(&self);

    /// It no longer does. `AndSleeps`: so somebody else must look.
    fn remove_poller(&self, then: Then);

    /// Whether anybody of this host is linked with us, so that lanes must be looked at.
    fn has_lanes(&self) -> bool;

    /// Whether somebody sees to messages that are left behind until there is room for them, even if no thread of the program
    /// waits for anything: the reactor, which is started. Its bell is to be rung when something is left.
    fn can_move_on_later(&self) -> bool;

    /// The bells of this process's threads.
    fn bells(&self) -> &Arc<Bells>;

    /// Lets the user know that a call has waited for long.
    fn remark(&self, waited: Duration, what: &str);
}

/// What a thread does after it stopped looking at networks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// Something other than waiting.
    GoesOn,
    /// It sleeps, so somebody else must look.
    Sleeps,
}

/// A thread that looks at the networks all the time, until this is dropped.
pub(crate) struct Polling<'a>(&'a dyn Progress);

impl<'a> Polling<'a> {
    #[inline]
    pub(crate) fn start(progress: &'a dyn Progress) -> Self {
        progress.add_poller();
        Self(progress)
    }

    /// The thread is about to sleep.
    pub(crate) fn sleep(self) {
        self.0.remove_poller(Then::Sleeps);
        core::mem::forget(self);
    }
}

impl Drop for Polling<'_> {
    fn drop(&mut self) {
        self.0.remove_poller(Then::GoesOn);
    }
}
