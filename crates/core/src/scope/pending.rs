//! What a program holds of communication that is under way in a scope.

use core::fmt;
use core::marker::PhantomData;
use std::sync::Arc;

use super::wait::wait;
use crate::caller::Caller;
use crate::error::Result;
use crate::operations::Operation;
use crate::process::Process;

/// Communication under way. It is done when the scope ends, at the latest. Dropping this neither stops it nor waits for it.
pub struct Pending<'scope> {
    state: State<'scope>,
    total: u64,
}

enum State<'scope> {
    Done(Result<()>),
    UnderWay {
        process: Arc<Process>,
        operation: Arc<Operation>,
        _scope: PhantomData<&'scope ()>,
    },
}

/// How far communication has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transferred {
    /// Bytes that went so far.
    pub bytes: u64,
    /// Bytes in all.
    pub total: u64,
}

impl Pending<'_> {
    pub(super) fn done(outcome: Result<()>, total: u64) -> Self {
        let state = State::Done(outcome);
        Self { state, total }
    }

    pub(super) fn under_way(process: Arc<Process>, operation: Arc<Operation>, total: u64) -> Self {
        Self {
            state: State::UnderWay {
                process,
                operation,
                _scope: PhantomData,
            },
            total,
        }
    }

    /// Whether it is done. Moves it on, if it can go on.
    #[must_use]
    pub fn is_done(&self) -> bool {
        match &self.state {
            State::Done(_) => true,
            State::UnderWay { operation, .. } => {
                // Not the others: who asks ten thousand would move on each of them as often.
                operation.is_done() || operation.step() && operation.is_done()
            }
        }
    }

    /// How far it has come. Moves it on, if it can go on. A message of a few MiB goes at once, between hosts, and a longer one in
    /// parts of some MiB.
    #[must_use]
    pub fn progress(&self) -> Transferred {
        let bytes = match &self.state {
            State::UnderWay { operation, .. } if !self.is_done() => operation.moved(),
            _ => None,
        };
        self.transferred(bytes.unwrap_or(self.total))
    }

    /// Waits until it is done, and moves on whatever else is under way in this process meanwhile.
    ///
    /// # Errors
    ///
    /// As those of [`MailboxRef::post`](crate::MailboxRef::post) and [`Incoming::finish`](crate::Incoming::finish).
    #[track_caller]
    pub fn wait(self) -> Result<()> {
        self.wait_with_progress(|_| ())
    }

    /// The same, and tells how far it has come: whenever more went, and at the end, if that is a good one. The function is called by
    /// this thread; what is under way goes on meanwhile only as far as the reactor moves it. If it panics, the scope ends as by any
    /// panic: what is not done is taken back.
    ///
    /// ```
    /// use mizzen::Message;
    ///
    /// mizzen::local(2, |deck| {
    ///     let inbox = deck.mailbox()?;
    ///     if deck.rank() == 0 {
    ///         deck.bind("inbox", &inbox)?;
    ///         assert_eq!(inbox.receive_vec::<u8>()?.len(), 80 << 20);
    ///         return Ok(());
    ///     }
    ///     let long = vec![7u8; 80 << 20];
    ///     let mut last = 0;
    ///     deck.scope(|scope| {
    ///         let mut message = Message::new();
    ///         message.pack_cheaper(&long[..]);
    ///         let posted = scope.post(&deck.fetch("inbox")?, message);
    ///         posted.wait_with_progress(|progress| {
    ///             last = progress.bytes;
    ///             println!("{} of {} bytes", progress.bytes, progress.total);
    ///         })
    ///     })?;
    ///     assert_eq!(last, 80 << 20);
    ///     Ok(())
    /// }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// As [`wait`](Self::wait).
    #[track_caller]
    pub fn wait_with_progress(self, mut tell: impl FnMut(Transferred)) -> Result<()> {
        let _call = Caller::enter();
        let total = self.transferred(self.total);
        let outcome = match self.state {
            State::Done(outcome) => outcome,
            State::UnderWay {
                process, operation, ..
            } => {
                wait(&process, &operation, |bytes| {
                    tell(Transferred { bytes, ..total });
                });
                // Nobody else has this, and the scope has not ended.
                operation.take_outcome().unwrap_or(Ok(()))
            }
        };
        outcome.inspect(|()| tell(total))
    }

    fn transferred(&self, bytes: u64) -> Transferred {
        let total = self.total;
        let bytes = bytes.min(total);
        Transferred { bytes, total }
    }
}

impl fmt::Debug for Pending<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_done = match &self.state {
            State::Done(_) => true,
            State::UnderWay { operation, .. } => operation.is_done(),
        };
        f.debug_struct("Pending")
            .field("is_done", &is_done)
            .finish()
    }
}
