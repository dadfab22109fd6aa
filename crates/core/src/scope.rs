//! Communication that goes on while a closure computes.

use std::thread;

use crate::address::MailboxRef;
use crate::error::{Error, PostError, Result};
use crate::incoming::Incoming;
use crate::message::Message;

/// Messages shorter than this are finished at once: a thread would cost more than the copy.
const WORTH_A_THREAD: usize = 1 << 18;

/// Starts communication that refers to borrowed memory. Made by `Deck::scope`.
#[derive(Debug)]
pub struct Scope<'scope, 'env: 'scope> {
    threads: &'scope thread::Scope<'scope, 'env>,
}

/// Communication under way. It is done when the scope ends, at the latest.
#[derive(Debug)]
pub struct Pending<'scope, T>(State<'scope, T>);

#[derive(Debug)]
enum State<'scope, T> {
    Done(T),
    Running(thread::ScopedJoinHandle<'scope, T>),
}

impl<'scope, 'env> Scope<'scope, 'env> {
    /// A scope whose waits are carried out by threads of `threads`.
    #[must_use]
    pub fn new(threads: &'scope thread::Scope<'scope, 'env>) -> Self {
        Self { threads }
    }

    /// Posts a message. If there is no room for it now, another thread waits for room.
    pub fn post(
        &self,
        to: &MailboxRef,
        mut message: Message<'scope>,
    ) -> Pending<'scope, Result<()>> {
        match to.try_post(&mut message) {
            Err(Error::Post(PostError::Busy { .. })) => {
                let to = to.clone();
                Pending(State::Running(
                    self.threads.spawn(move || to.post(&mut message)),
                ))
            }
            done => Pending(State::Done(done)),
        }
    }

    /// Fills the memory of a received message's cheaper pieces.
    pub fn finish(&self, incoming: Incoming<'scope>) -> Pending<'scope, Result<()>> {
        if incoming.pending_bytes() < WORTH_A_THREAD {
            return Pending(State::Done(incoming.finish()));
        }
        Pending(State::Running(
            self.threads.spawn(move || incoming.finish()),
        ))
    }
}

impl<T> Pending<'_, T> {
    /// Whether it is done.
    #[must_use]
    pub fn is_done(&self) -> bool {
        match &self.0 {
            State::Done(_) => true,
            State::Running(thread) => thread.is_finished(),
        }
    }

    /// Waits until it is done.
    pub fn wait(self) -> T {
        match self.0 {
            State::Done(outcome) => outcome,
            State::Running(thread) => match thread.join() {
                Ok(outcome) => outcome,
                Err(panic) => std::panic::resume_unwind(panic),
            },
        }
    }
}
