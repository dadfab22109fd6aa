//! Communication that goes on while a closure computes.
//!
//! | file | subject |
//! | --- | --- |
//! | `wait` | waiting for one of them |
//! | `receive` | posted receives into borrowed memory |
//! | `lent` | operations that refer to memory of a scope, and when it is its owner's again |

mod lent;
mod receive;
mod wait;

use core::fmt;
use core::marker::PhantomData;
use std::sync::Arc;

use crate::address::MailboxRef;
use crate::error::Result;
use crate::incoming::{Finishing, Incoming};
use crate::message::Message;
use crate::operations::{Operation, Stepped, Steps};
use crate::posting::{Posted, Posting};
use crate::process::Process;

pub use lent::{Scope, scope};
pub use receive::{Filled, PendingReceive};
use wait::wait;

/// Communication under way. It is done when the scope ends, at the latest. Dropping this neither stops it nor waits for it.
pub struct Pending<'scope>(State<'scope>);

enum State<'scope> {
    Done(Result<()>),
    UnderWay {
        process: Arc<Process>,
        operation: Arc<Operation>,
        _scope: PhantomData<&'scope ()>,
    },
}

impl<'scope> Scope<'scope, '_> {
    /// Posts a message. If there is no room for it now, it goes on while the closure computes: when it is its turn, and, if it
    /// is longer than what may be unread (64 MiB), while it is read. What is posted to the same mailbox later comes after
    /// it.
    ///
    /// A message of any length can be posted in this way to a rank that does the same, or to this rank itself, and read in the
    /// same scope:
    ///
    /// ```
    /// use mizzen::Message;
    ///
    /// mizzen::local(1, |deck| {
    ///     let inbox = deck.mailbox()?;
    ///     let address = inbox.address();
    ///     let (long, mut copy) = (vec![7u8; 70 << 20], vec![0u8; 70 << 20]);
    ///     deck.scope(|scope| {
    ///         let mut message = Message::new();
    ///         message.pack_cheaper(&long[..]);
    ///         let posted = scope.post(&address, message);
    ///         assert!(!posted.is_done());
    ///         inbox.retrieve()?.unpack_express_into(&mut copy[..])?;
    ///         posted.wait()
    ///     })?;
    ///     assert!(copy == long);
    ///     Ok(())
    /// }).unwrap();
    /// ```
    pub fn post(&self, to: &MailboxRef, message: Message<'scope>) -> Pending<'scope> {
        match Posting::begin(to, message) {
            Posted::Now(outcome) => Pending(State::Done(outcome)),
            Posted::UnderWay(posting) => {
                let process = Arc::clone(posting.process());
                self.start(process, posting)
            }
        }
    }

    /// Fills the memory of a received message's cheaper pieces, while the closure computes if the message has yet to come. That
    /// memory can be read when the scope has ended.
    ///
    /// ```
    /// mizzen::local(1, |deck| {
    ///     let inbox = deck.mailbox()?;
    ///     inbox.address().send(&[7u64; 1000][..])?;
    ///     let mut values = [0u64; 1000];
    ///     deck.scope(|scope| {
    ///         let mut incoming = inbox.retrieve()?;
    ///         incoming.unpack_cheaper(&mut values[..])?;
    ///         scope.finish(incoming).wait()
    ///     })?;
    ///     assert_eq!(values, [7; 1000]);
    ///     Ok(())
    /// }).unwrap();
    /// ```
    pub fn finish(&self, incoming: Incoming<'scope>) -> Pending<'scope> {
        let process = Arc::clone(&incoming.process);
        let mut finishing = match Finishing::new(incoming) {
            Ok(finishing) => Box::new(finishing),
            Err(error) => return Pending(State::Done(Err(error.into()))),
        };
        match finishing.step() {
            Stepped::Done(outcome) => Pending(State::Done(outcome)),
            Stepped::Moved | Stepped::Idle => self.start(process, finishing),
        }
    }

    fn start(&self, process: Arc<Process>, work: Box<dyn Steps + 'scope>) -> Pending<'scope> {
        let operation = self.lend(&process, work);
        process.move_on_later(Arc::clone(&operation));
        Pending(State::UnderWay {
            process,
            operation,
            _scope: PhantomData,
        })
    }
}

impl Pending<'_> {
    /// Whether it is done. Moves it on, if it can go on.
    #[must_use]
    pub fn is_done(&self) -> bool {
        match &self.0 {
            State::Done(_) => true,
            State::UnderWay { operation, .. } => {
                // Not the others: who asks ten thousand would move on each of them as often.
                operation.is_done() || operation.step() && operation.is_done()
            }
        }
    }

    /// Waits until it is done, and moves on whatever else is under way in this process meanwhile.
    ///
    /// # Errors
    ///
    /// As those of [`MailboxRef::post`] and [`Incoming::finish`].
    pub fn wait(self) -> Result<()> {
        match self.0 {
            State::Done(outcome) => outcome,
            State::UnderWay {
                process, operation, ..
            } => {
                wait(&process, &operation);
                // Nobody else has this, and the scope has not ended.
                operation.take_outcome().unwrap_or(Ok(()))
            }
        }
    }
}

impl fmt::Debug for Pending<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_done = match &self.0 {
            State::Done(_) => true,
            State::UnderWay { operation, .. } => operation.is_done(),
        };
        f.debug_struct("Pending")
            .field("is_done", &is_done)
            .finish()
    }
}
