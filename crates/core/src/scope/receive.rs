//! Posted receives into borrowed memory.

use core::fmt;
use core::marker::PhantomData;
use std::sync::Arc;

use super::lent::Scope;
use super::wait::wait;
use crate::caller::Caller;
use crate::error::{Result, RetrieveError};
use crate::mailbox::{Mailbox, PostedLent, Whose};
use crate::operations::Operation;
use crate::plain::Plain;
use crate::rank::Rank;

/// A posted receive into memory of a scope. It is done when the scope ends, at the latest. Dropping this neither withdraws it nor
/// waits for it.
pub struct PendingReceive<'scope> {
    operation: Arc<Operation>,
    posted: PostedLent,
    _scope: PhantomData<&'scope ()>,
}

/// What came of a posted receive of a scope. The values are in its memory, which can be read when the scope has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filled {
    count: usize,
    source: Rank,
}

impl<'scope> Scope<'scope, '_> {
    /// Gives borrowed memory for a message before it comes: the message goes straight there, while the closure computes.
    ///
    /// Which message that is, and which it cannot be, is as for [`Mailbox::post_receive`]. The scope's end waits for it, as for
    /// everything that is under way there; [`PendingReceive::cancel`] withdraws it, if no message is for it. If the closure panics,
    /// it is withdrawn, and a message that was already for it is lost.
    ///
    /// ```
    /// mizzen::local(2, |deck| {
    ///     let inbox = deck.mailbox()?;
    ///     let (mine, mut theirs) = ([deck.rank().0; 1000], [0u32; 1000]);
    ///     let received = deck.scope(|scope| {
    ///         let halo = scope.post_receive(&inbox, &mut theirs);
    ///         deck.bind(&format!("inbox {}", deck.rank()), &inbox)?;
    ///         deck.fetch(&format!("inbox {}", 1 - deck.rank().0))?.send(&mine[..])?;
    ///         // The program computes what does not need it.
    ///         halo.wait()
    ///     })?;
    ///     assert_eq!(theirs[..received.count()], [received.source().0; 1000]);
    ///     Ok(())
    /// }).unwrap();
    /// ```
    pub fn post_receive<T: Plain + Send + 'static>(
        &self,
        mailbox: &Mailbox,
        memory: &'scope mut [T],
    ) -> PendingReceive<'scope> {
        self.receive(self.lend_memory(mailbox, Whose::Anybody, memory))
    }

    /// The same for a message of one rank.
    ///
    /// ```
    /// mizzen::local(3, |deck| {
    ///     if deck.rank() != 0 {
    ///         return deck.fetch("parts")?.send(&[deck.rank().0; 2]);
    ///     }
    ///     let inbox = deck.mailbox()?;
    ///     let mut parts = vec![0u32; 4];
    ///     deck.scope(|scope| {
    ///         let (first, second) = parts.split_at_mut(2);
    ///         scope.post_receive_from(&inbox, 2, second)?;
    ///         scope.post_receive_from(&inbox, 1, first)?;
    ///         deck.bind("parts", &inbox)
    ///     })?;
    ///     assert_eq!(parts, [1, 1, 2, 2]);
    ///     Ok(())
    /// }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// [`RetrieveError::NoSuchRank`] if the job has no such rank.
    pub fn post_receive_from<T: Plain + Send + 'static>(
        &self,
        mailbox: &Mailbox,
        rank: impl Into<Rank>,
        memory: &'scope mut [T],
    ) -> Result<PendingReceive<'scope>> {
        let from = mailbox.whose(rank.into())?;
        Ok(self.receive(self.lend_memory(mailbox, from, memory)))
    }

    fn receive(&self, (operation, posted): (Arc<Operation>, PostedLent)) -> PendingReceive<'scope> {
        posted.process().move_on_later(Arc::clone(&operation));
        PendingReceive {
            operation,
            posted,
            _scope: PhantomData,
        }
    }
}

impl PendingReceive<'_> {
    /// Whether it is done, or has failed. Looks for messages, and does not wait.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.operation.is_done() || self.operation.step() && self.operation.is_done()
    }

    /// Waits until the message is in the memory, and moves on whatever else is under way in this process meanwhile.
    ///
    /// # Errors
    ///
    /// As those of [`Receive::wait`](crate::Receive::wait).
    #[track_caller]
    pub fn wait(self) -> Result<Filled> {
        let _call = Caller::enter();
        wait(self.posted.process(), &self.operation, |_| ());
        if let Some(outcome) = self.operation.take_outcome() {
            outcome?;
        }
        let (count, source) = self.posted.came().ok_or(RetrieveError::Closed)?;
        Ok(Filled { count, source })
    }

    /// Withdraws it: the next message is for the next receive, or for `retrieve`.
    ///
    /// # Errors
    ///
    /// The receive itself if a message is already for it: wait for it.
    pub fn cancel(self) -> core::result::Result<(), Self> {
        if !self.posted.withdraw() {
            return Err(self);
        }
        // The scope need not wait for it.
        self.operation.step();
        Ok(())
    }
}

impl Filled {
    /// How many values came. Those behind them are as they were.
    #[must_use]
    pub fn count(self) -> usize {
        self.count
    }

    /// Who sent them.
    #[must_use]
    pub fn source(self) -> Rank {
        self.source
    }
}

impl fmt::Debug for PendingReceive<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingReceive")
            .field("is_done", &self.operation.is_done())
            .finish()
    }
}
