//! Communication that goes on while a closure computes.
//!
//! | file | subject |
//! | --- | --- |
//! | `pending` | what a program holds of one of them |
//! | `wait` | waiting for one of them |
//! | `receive` | posted receives into borrowed memory |
//! | `lent` | operations that refer to memory of a scope, and when it is its owner's again |

mod lent;
mod pending;
mod receive;
mod wait;

use std::sync::Arc;

use crate::address::MailboxRef;
use crate::incoming::{Finishing, Incoming};
use crate::message::Message;
use crate::operations::{Stepped, Steps, Work};
use crate::posting::{Posted, Posting};
use crate::process::Process;

pub use lent::{Scope, scope};
pub use pending::{Pending, Transferred};
pub use receive::{Filled, PendingReceive};

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
        let total = message.all_bytes() as u64;
        match Posting::begin(to, message) {
            Posted::Now(outcome) => Pending::done(outcome, total),
            Posted::UnderWay(posting) => {
                let process = Arc::clone(posting.process());
                self.start(process, posting, total)
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
        let total = incoming.pending_bytes() as u64;
        let mut finishing = match Finishing::new(incoming) {
            Ok(finishing) => Box::new(finishing),
            Err(error) => return Pending::done(Err(error.into()), total),
        };
        match finishing.step() {
            Stepped::Done(outcome) => Pending::done(outcome, total),
            Stepped::Moved | Stepped::Idle => self.start(process, finishing, total),
        }
    }

    fn start(&self, process: Arc<Process>, work: Work<'scope>, total: u64) -> Pending<'scope> {
        let operation = self.lend(&process, work);
        process.move_on_later(Arc::clone(&operation));
        Pending::under_way(process, operation, total)
    }
}
