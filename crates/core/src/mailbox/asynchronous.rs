//! Retrieving as a task of any runtime: look, leave the task's waker with whoever looks, and look again.

use core::future::poll_fn;
use core::task::{Context, Poll, Waker};

use super::look::{Outcome, Reach};
use super::state::Mailbox;
use super::waiting::Awaited;
use crate::delivery::{Looker, What};
use crate::error::{Error, RetrieveError};
use crate::incoming::Incoming;
use crate::workers::on_worker;

/// Round trips in the time of a wake-up.
const WAKE_UP: u32 = 8;

impl Mailbox {
    /// The next message, for async tasks of any runtime. Dropping the future loses nothing.
    ///
    /// # Errors
    ///
    /// As [`retrieve`](Self::retrieve).
    pub async fn retrieve_async<'m>(&mut self) -> Result<Incoming<'m>, Error> {
        let mut awaiting = Awaiting::new(self);
        let retrieve = poll_fn(move |context| {
            awaiting.poll(context, |mailbox, context| mailbox.poll_retrieve(context))
        });
        Ok(retrieve.await?)
    }

    fn poll_retrieve<'m>(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Incoming<'m>, RetrieveError>> {
        loop {
            match self.poll_take(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Ready(Ok(taken)) => {
                    if let Some(outcome) = self.open_for_task(taken) {
                        return Poll::Ready(outcome);
                    }
                }
            }
        }
    }

    /// The next message, unopened; if there is none, the task is woken when there is.
    pub fn poll_take(&mut self, context: &mut Context<'_>) -> Poll<Outcome> {
        self.attend();
        if let Some(outcome) = self.poll(Reach::Some) {
            return Poll::Ready(outcome);
        }
        // To be woken by another thread costs ten times as much as the answer of a peer that is just at it. On a worker of ours
        // it is worth while to wait until a peer that sleeps has woken up: both are quick from then on.
        if self.places.is_hot_likely() {
            let is_worker = on_worker(|worker| worker.is_some());
            let round_trips = if is_worker { WAKE_UP } else { 1 };
            self.contention
                .look_in_time(round_trips, || self.places.is_hot_ready(&self.core));
        }
        if let Some(outcome) = self.poll(Reach::All) {
            return Poll::Ready(outcome);
        }
        self.leave_waker(context.waker(), self.awaits(), || Awaited::is_ready(self));
        Poll::Pending
    }

    /// Has the task woken when there is something. A task of our own workers is woken by the one of them that looks for work;
    /// any other by the reactor.
    pub(super) fn leave_waker(&self, waker: &Waker, what: What, is_ready: impl FnOnce() -> bool) {
        let core = &self.core;
        let by_workers = on_worker(|worker| {
            // A thread may serve one rank of a local job and call on another.
            let worker = worker.filter(|worker| self.process.has_workers(worker.workers()));
            // Only the reactor looks for those who share a mailbox.
            let worker = worker.filter(|_| !self.places.is_elsewhere());
            worker
                .inspect(|worker| {
                    core.set_waker(waker.clone(), Looker::Workers, what);
                    worker.workers().await_mailbox(core);
                })
                .is_some()
        });
        if by_workers {
            return;
        }
        if self.process.ensure_reactor().is_err() {
            // No thread for the reactor: ask again at once rather than never.
            waker.wake_by_ref();
            return;
        }
        self.leave_with_reactor(waker.clone(), what);
        if is_ready() {
            self.attend();
            waker.wake_by_ref();
        }
    }
}

/// A task that may have left its waker in mailboxes. When it is dropped before it has what it awaits, nobody wakes it for
/// nothing, and senders need not call.
pub(super) struct Awaiting<A: Awaited> {
    mailboxes: A,
    is_pending: bool,
}

impl<A: Awaited> Awaiting<A> {
    pub(super) fn new(mailboxes: A) -> Self {
        Self {
            mailboxes,
            is_pending: false,
        }
    }

    pub(super) fn poll<T>(
        &mut self,
        context: &mut Context<'_>,
        poll: impl FnOnce(&mut A, &mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        let outcome = poll(&mut self.mailboxes, context);
        self.is_pending = outcome.is_pending();
        outcome
    }
}

impl<A: Awaited> Drop for Awaiting<A> {
    fn drop(&mut self) {
        if self.is_pending {
            self.mailboxes.for_each(Mailbox::attend);
        }
    }
}
