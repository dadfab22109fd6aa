//! A post as an operation: the same attempt as `try_post`, and then in steps until the message has gone.

use core::future::poll_fn;
use core::task::{Context, Poll};
use std::sync::Arc;

use crate::address::{MailboxRef, Opened};
use crate::error::{ArenaError, Error, PostError, Result};
use crate::link::LONGEST_TO_WAIT;
use crate::message::Message;
use crate::net::NetPost;
use crate::operations::{Operation, Stepped, Steps, stepped};
use crate::post_steps::MemoryPost;
use crate::process::Process;

/// A message on its way to a mailbox. Dropped before its end, it is taken back: if it was announced, its reader gets
/// `UnpackError::Retracted`.
pub(crate) struct Posting<'m> {
    to: MailboxRef,
    /// Not touched while its body is the driver's.
    message: Message<'m>,
    way: Way,
}

enum Way {
    Memory(MemoryPost),
    Net(NetPost),
}

/// What became of a message that was to be posted.
pub(crate) enum Posted<'m> {
    /// It is posted, or cannot be.
    Now(Result<()>),
    /// It found no room. To be moved on until it is done, and not to be moved in memory from its first step on.
    UnderWay(Box<Posting<'m>>),
}

impl<'m> Posting<'m> {
    /// Posts a message if there is room for it. If not, it takes its turn: what is posted to the mailbox later comes after it.
    pub(crate) fn begin(to: &MailboxRef, mut message: Message<'m>) -> Posted<'m> {
        match to.try_post(&mut message) {
            Err(Error::Post(
                PostError::Busy { .. } | PostError::Memory(ArenaError::AllOut { .. }),
            )) => (),
            done => return Posted::Now(done),
        }
        message.shrink();
        let way = match to.opened() {
            Err(error) => return Posted::Now(Err(error.into())),
            Ok(Opened::Memory { link, route }) => {
                Way::Memory(link.begin_post(&**to.process(), route))
            }
            Ok(Opened::Net(link)) => Way::Net(link.begin_post(to.mailbox())),
        };
        Posted::UnderWay(Box::new(Self {
            to: to.clone(),
            message,
            way,
        }))
    }

    /// The process that posts.
    pub(crate) fn process(&self) -> &Arc<Process> {
        self.to.process()
    }

    fn advance(&mut self) -> Result<Option<bool>, PostError> {
        let Self { to, message, way } = self;
        match (to.opened()?, way) {
            (Opened::Memory { link, route }, Way::Memory(post)) => {
                link.step_post(&**to.process(), route, message, post)
            }
            (Opened::Net(link), Way::Net(post)) => link.step_post(to.mailbox(), message, post),
            // A path does not change once it was found.
            _ => Ok(Some(true)),
        }
    }
}

impl MailboxRef {
    /// Posts for async tasks of any runtime; nothing blocks their thread. It is done when the message is on its way, or waits
    /// with less than the allowance (see [`post`](Self::post)) before it. If the future is dropped before that, the message was
    /// not posted, and lent buffers go back to the arena. A message that is longer than the allowance is posted while it is read:
    /// the process moves it on, also if the future is dropped.
    ///
    /// A message that refers to memory of its task cannot be posted in this way: pack it
    /// [safer](Message::pack_safer), lend it, or use a [scope](crate::Scope).
    ///
    /// ```
    /// use mizzen::Message;
    ///
    /// mizzen::local(1, |deck| {
    ///     let mut inbox = deck.mailbox()?;
    ///     let address = inbox.address();
    ///     let task = deck.spawn_async(async move {
    ///         let mut message = Message::new();
    ///         message.pack_safer(&7u64);
    ///         address.post_async(message).await
    ///     });
    ///     assert_eq!(inbox.receive::<u64>()?, 7);
    ///     task.join()?
    /// }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// As [`post`](Self::post).
    pub async fn post_async(&self, mut message: Message<'static>) -> Result<()> {
        self.open_async().await?;
        if message.all_bytes() > LONGEST_TO_WAIT {
            return match Posting::begin(self, message) {
                Posted::Now(outcome) => outcome,
                Posted::UnderWay(posting) => {
                    let operation = Arc::new(Operation::new(posting));
                    self.process().move_on_later(Arc::clone(&operation));
                    poll_fn(|context| match operation.poll_outcome(context.waker()) {
                        Some(outcome) => Poll::Ready(outcome),
                        None => Poll::Pending,
                    })
                    .await
                }
            };
        }
        let post = |context: &mut Context<'_>| self.poll_post(&mut message, context);
        Ok(poll_fn(post).await?)
    }
}

impl Steps for Posting<'_> {
    type Outcome = Result<()>;

    fn step(&mut self) -> Stepped {
        stepped(self.advance())
    }

    fn waits_for(&self) -> String {
        let (rank, len) = (self.to.rank(), self.message.all_bytes());
        format!("for rank {rank} to read: a message of {len} bytes to it is under way in a scope")
    }

    fn waits_for_whom(&self) -> Option<u32> {
        Some(self.to.rank().0)
    }

    fn moved(&self) -> u64 {
        match &self.way {
            Way::Memory(post) => post.moved(),
            Way::Net(post) => post.moved(),
        }
    }
}

impl Drop for Posting<'_> {
    fn drop(&mut self) {
        match (self.to.opened(), &mut self.way) {
            (Ok(Opened::Memory { link, route }), Way::Memory(post)) => {
                link.end_post(&**self.to.process(), route, post, false);
            }
            (Ok(Opened::Net(link)), Way::Net(post)) => {
                link.withdraw_post(self.to.mailbox(), post);
            }
            // It was opened before.
            _ => (),
        }
    }
}
