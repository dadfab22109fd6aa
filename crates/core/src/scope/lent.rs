//! Operations that refer to memory of a scope, where the threads of the process find them.
//!
//! The list of a process's operations (`operations.rs`) knows nothing of lifetimes. What makes them right is the end of the
//! scope: [`Lent`] withdraws its operations when it is dropped, which waits until no thread is inside of one and drops its
//! work. `scope` keeps it on its own stack and shows it by reference only, so nobody can leak it.
#![allow(unsafe_code)]

use core::fmt;
use core::marker::PhantomData;
use std::sync::{Arc, Mutex};

use crate::lock::lock;
use crate::mailbox::{Mailbox, PostedLent, Whose};
use crate::operations::{Operation, Work};
use crate::plain::Plain;
use crate::process::Process;

use super::wait::wait;

/// Operations that are over are forgotten when there are twice as many as were left the last time, and at least so many.
const FEW: usize = 64;

/// Starts communication that refers to borrowed memory. Made by `Deck::scope`.
///
/// What cannot be done at once is *under way*: a value that is moved on by whoever waits for it, by the end of the scope, and by
/// the reactor of the process, which is one thread for all. No thread is made for it.
pub struct Scope<'scope, 'env: 'scope> {
    lent: Lent,
    /// Neither lifetime can be taken for a shorter one: what is lent must outlive the call of [`scope`].
    _scope: PhantomData<&'scope mut &'scope ()>,
    _env: PhantomData<&'env mut &'env ()>,
}

/// Runs `body` with a scope, and waits then until all that it started is done. If it panics, what is not done is taken back
/// instead.
pub fn scope<'env, T>(body: impl for<'scope> FnOnce(&Scope<'scope, 'env>) -> T) -> T {
    let scope = Scope {
        lent: Lent::default(),
        _scope: PhantomData,
        _env: PhantomData,
    };
    let outcome = body(&scope);
    while let Some((process, operation)) = scope.lent.unfinished() {
        wait(&process, &operation, |_| ());
    }
    outcome
}

/// The operations of one scope. Dropping it takes back those that are not done.
#[derive(Default)]
struct Lent {
    started: Mutex<Started>,
}

#[derive(Default)]
struct Started {
    all: Vec<(Arc<Process>, Arc<Operation>)>,
    tidy_at: usize,
}

impl<'scope> Scope<'scope, '_> {
    /// Starts an operation of this scope.
    pub(super) fn lend(&self, process: &Arc<Process>, work: Work<'scope>) -> Arc<Operation> {
        // SAFETY: only `scope` makes a `Scope`, and drops it before it returns. Its `body` is called for any `'scope` that is not
        // longer than `'env`, and so knows no memory for it but what lasts for `'env`, which is longer than that call.
        unsafe { self.lent.start(process, work) }
    }
}

impl<'scope> Scope<'scope, '_> {
    /// Posts a receive into memory of this scope.
    pub(super) fn lend_memory<T: Plain + Send + 'static>(
        &self,
        mailbox: &Mailbox,
        from: Whose,
        memory: &'scope mut [T],
    ) -> (Arc<Operation>, PostedLent) {
        // SAFETY: the receive becomes the work of an operation of this scope, at once. `Lent` drops that before `'scope` ends.
        let receive = unsafe { mailbox.post_lent(from, memory) };
        let posted = receive.posted();
        let operation = self.lend(posted.process(), Box::new(receive));
        (operation, posted)
    }
}

impl Lent {
    /// Starts an operation that refers to memory of `'scope`.
    ///
    /// # Safety
    ///
    /// `self` is dropped before `'scope` ends.
    unsafe fn start<'scope>(&self, process: &Arc<Process>, work: Work<'scope>) -> Arc<Operation> {
        // SAFETY: only the lifetime changes. The work lives in the operation, which is entered below before anybody else can
        // have it. It is dropped when it is done, and when `Lent` is dropped, at the latest: `withdraw` takes the
        // operation's lock, under which every step runs. That is before `'scope` ends, as the caller promised.
        let work = unsafe { core::mem::transmute::<Work<'scope>, Work<'static>>(work) };
        let operation = Arc::new(Operation::new(work));
        let mut started = lock(&self.started);
        if started.all.len() >= started.tidy_at {
            // What is done has dropped its work.
            started.all.retain(|(_, operation)| !operation.is_done());
            started.tidy_at = FEW.max(started.all.len() * 2);
        }
        let entry = (Arc::clone(process), Arc::clone(&operation));
        started.all.push(entry);
        operation
    }

    /// One that is not done yet.
    fn unfinished(&self) -> Option<(Arc<Process>, Arc<Operation>)> {
        let mut started = lock(&self.started);
        while let Some((_, operation)) = started.all.last() {
            if !operation.is_done() {
                return started.all.last().cloned();
            }
            started.all.pop();
        }
        None
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        // The oldest first: those behind it need not be moved on one by one.
        for (_, operation) in &lock(&self.started).all {
            operation.withdraw();
        }
    }
}

impl fmt::Debug for Scope<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope").finish_non_exhaustive()
    }
}
