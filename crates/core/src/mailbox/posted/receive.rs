//! What the user holds of a posted receive, and what comes of it.

use core::fmt;
use core::future::Future;
use core::marker::PhantomData;
use core::ops::Deref;
use core::pin::Pin;
use core::task::{Context, Poll};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::exchange::Exchange;
use super::memory::Target;
use super::slot::{Came, Slot, Waiter, Whose, Withdrawn};
use crate::caller::Caller;
use crate::error::Error;
use crate::mailbox::look::Reach;
use crate::plain::Plain;
use crate::rank::Rank;
use crate::wait::deadline_in;

/// A posted receive: memory that waits for a message. Made by [`Mailbox::post_receive`](crate::Mailbox::post_receive).
///
/// Wait for it with a thread, or await it: it is a future. It belongs to no thread; the mailbox stays its owner's, and must live as
/// long as something shall come.
///
/// | at the time | [`cancel`](Self::cancel) | dropping it |
/// | --- | --- | --- |
/// | no message was for it | withdraws it, and gives back the memory; the next message is for the next receive, or for `retrieve` | withdraws it, too |
/// | a message is for it, and may still be on its way into the memory | is too late: gives back the receive | the message is lost with the memory, as by dropping an [`Incoming`](crate::Incoming) |
/// | it is done | is too late | the same |
/// | it ended with an error | gives back the memory; but if that says that a message does not fit, is too late until `wait` has told it | the message that does not fit is for `retrieve` |
#[must_use = "a receive that is dropped is withdrawn"]
pub struct Receive<T> {
    exchange: Arc<Exchange>,
    slot: Arc<Slot>,
    values: PhantomData<fn() -> T>,
}

/// What came of a posted receive: its memory, of which the first values are the message. It derefs to these.
#[derive(Clone, Debug, PartialEq)]
pub struct Received<T> {
    memory: Vec<T>,
    count: usize,
    source: Rank,
}

impl<T: Plain + Send + 'static> Receive<T> {
    pub(in crate::mailbox) fn post(exchange: &Arc<Exchange>, from: Whose, memory: Vec<T>) -> Self {
        let slot = Arc::new(Slot::new(from, Box::new(memory)));
        exchange.post(Arc::clone(&slot));
        Self {
            exchange: Arc::clone(exchange),
            slot,
            values: PhantomData,
        }
    }

    /// Waits until the message is in the memory.
    ///
    /// # Errors
    ///
    /// [`UnpackError::TooLong`](crate::UnpackError::TooLong) if the message was longer than the memory, and other errors of unpacking
    /// if it was no plain values of `T`: it is the next one of `retrieve` then. [`RetrieveError`](crate::RetrieveError) as of
    /// [`retrieve`](crate::Mailbox::retrieve), or of [`retrieve_from`](crate::Mailbox::retrieve_from) if a rank was named; `Closed` if
    /// the mailbox was dropped. After an error [`cancel`](Self::cancel) gives back the memory; after
    /// [`RetrieveError::NobodyLeft`](crate::RetrieveError::NobodyLeft) the receive is still posted.
    ///
    /// # Panics
    ///
    /// If what came, or why nothing did, was taken before.
    #[track_caller]
    pub fn wait(&mut self) -> Result<Received<T>, Error> {
        self.wait_until(None)
    }

    /// Waits for at most `timeout`.
    ///
    /// # Errors
    ///
    /// [`RetrieveError::TimedOut`](crate::RetrieveError::TimedOut) when that is over; the receive is still posted then. Otherwise as
    /// [`wait`](Self::wait).
    ///
    /// # Panics
    ///
    /// As [`wait`](Self::wait).
    #[track_caller]
    pub fn wait_timeout(&mut self, timeout: Duration) -> Result<Received<T>, Error> {
        self.wait_until(deadline_in(timeout))
    }

    /// Waits until `deadline`.
    ///
    /// # Errors
    ///
    /// As [`wait_timeout`](Self::wait_timeout).
    ///
    /// # Panics
    ///
    /// As [`wait`](Self::wait).
    #[track_caller]
    pub fn wait_deadline(&mut self, deadline: Instant) -> Result<Received<T>, Error> {
        self.wait_until(Some(deadline))
    }

    /// What came, if it is all here. Looks for messages, and does not wait.
    ///
    /// # Errors
    ///
    /// As [`wait`](Self::wait).
    ///
    /// # Panics
    ///
    /// As [`wait`](Self::wait).
    pub fn try_take(&mut self) -> Result<Option<Received<T>>, Error> {
        if !self.is_done() {
            return Ok(None);
        }
        self.take().map(Some)
    }

    /// Whether it is done, or has failed. Looks for messages, and does not wait.
    #[must_use]
    pub fn is_done(&self) -> bool {
        if !self.slot.is_done() {
            self.exchange.look(None, Reach::All);
        }
        self.slot.is_done()
    }

    /// Withdraws the receive, and gives back its memory.
    ///
    /// # Errors
    ///
    /// The receive itself if a message is already for it: wait for it, or drop it with the message. Also if that message does
    /// not fit: it is the next one of [`retrieve`](crate::Mailbox::retrieve), as waiting for the receive tells.
    pub fn cancel(self) -> Result<Vec<T>, Self> {
        if let Withdrawn::TooLate = self.exchange.withdraw(&self.slot) {
            return Err(self);
        }
        Ok(self.slot.take_memory().map(typed).unwrap_or_default())
    }

    #[track_caller]
    fn wait_until(&mut self, deadline: Option<Instant>) -> Result<Received<T>, Error> {
        let _call = Caller::enter();
        self.exchange.wait(&self.slot, deadline)?;
        self.take()
    }

    fn take(&self) -> Result<Received<T>, Error> {
        let taken = self.slot.take();
        let (came, memory) = taken.expect("what came of a receive is taken once")?;
        let Came { source, count } = came;
        let memory = typed(memory);
        Ok(Received {
            memory,
            count,
            source,
        })
    }
}

fn typed<T: 'static>(memory: Box<dyn Target>) -> Vec<T> {
    let memory = memory.into_any().downcast();
    *memory.expect("it was posted as this type")
}

impl<T: Plain + Send + 'static> Future for Receive<T> {
    type Output = Result<Received<T>, Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if !self.slot.is_done() {
            let waiter = Waiter::Task(context.waker().clone());
            self.exchange.leave(&self.slot, waiter);
        }
        if self.slot.is_done() {
            return Poll::Ready(self.take());
        }
        Poll::Pending
    }
}

impl<T> Drop for Receive<T> {
    fn drop(&mut self) {
        // A message that comes meanwhile is for another, or it was for this one before.
        if !self.slot.is_done() {
            self.exchange.withdraw(&self.slot);
        }
        self.slot.forget();
    }
}

impl<T> fmt::Debug for Receive<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receive")
            .field("from", &self.slot.from)
            .field("is_done", &self.slot.is_done())
            .finish_non_exhaustive()
    }
}

impl<T> Received<T> {
    /// Who sent it.
    #[must_use]
    pub fn source(&self) -> Rank {
        self.source
    }

    /// How many values came.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// The memory, in its full length: after the values that came is what was there before.
    #[must_use]
    pub fn into_memory(self) -> Vec<T> {
        self.memory
    }

    /// The values that came, and no more.
    #[must_use]
    pub fn into_values(self) -> Vec<T> {
        let mut memory = self.memory;
        memory.truncate(self.count);
        memory
    }
}

impl<T> Deref for Received<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.memory[..self.count]
    }
}
