//! Posting receives.

use std::sync::Arc;

use super::posted::{Exchange, Receive, Whose};
use super::state::Mailbox;
use crate::error::{Error, RetrieveError};
use crate::plain::Plain;
use crate::rank::Rank;

impl Mailbox {
    /// Gives memory for a message before it comes: the message goes straight there.
    ///
    /// Each message is for the oldest posted receive that wants it, in the order in which messages come; `retrieve` in all its
    /// forms gets those that no posted receive wanted. A receive takes a message of one plain piece, what
    /// [`send`](crate::MailboxRef::send) sends, of as many values as there is room for in `memory`, or of fewer. A message that
    /// does not fit ends the receive with an error that says why, and goes to `retrieve`.
    ///
    /// Messages are moved on by whoever waits: for this receive, for another, or for anything else of this process. No thread is
    /// made for a receive. See `docs/waiting.md`.
    ///
    /// ```
    /// mizzen::local(2, |deck| {
    ///     if deck.rank() == 1 {
    ///         return deck.fetch("rows")?.send(&[1.5f64, 2.5][..]);
    ///     }
    ///     let inbox = deck.mailbox()?;
    ///     let mut row = inbox.post_receive(vec![0.0f64; 1000]);
    ///     deck.bind("rows", &inbox)?;
    ///     // The program computes something.
    ///     let row = row.wait()?;
    ///     assert_eq!((&row[..], row.source().0), (&[1.5, 2.5][..], 1));
    ///     // The same memory again.
    ///     let next = inbox.post_receive(row.into_memory());
    ///     assert_eq!(next.cancel().expect("nothing came").len(), 1000);
    ///     Ok(())
    /// }).unwrap();
    /// ```
    pub fn post_receive<T: Plain + Send + 'static>(&self, memory: Vec<T>) -> Receive<T> {
        Receive::post(self.exchange(), Whose::Anybody, memory)
    }

    /// The same for a message of one rank.
    ///
    /// ```
    /// mizzen::local(3, |deck| {
    ///     if deck.rank() != 0 {
    ///         return deck.fetch("parts")?.send(&[deck.rank().0; 3]);
    ///     }
    ///     let inbox = deck.mailbox()?;
    ///     let mut second = inbox.post_receive_from(2, vec![0u32; 3])?;
    ///     let mut first = inbox.post_receive_from(1, vec![0u32; 3])?;
    ///     deck.bind("parts", &inbox)?;
    ///     assert_eq!(second.wait()?.into_values(), [2; 3]);
    ///     assert_eq!(first.wait()?.into_values(), [1; 3]);
    ///     Ok(())
    /// }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// [`RetrieveError::NoSuchRank`] if the job has no such rank.
    pub fn post_receive_from<T: Plain + Send + 'static>(
        &self,
        rank: impl Into<Rank>,
        memory: Vec<T>,
    ) -> Result<Receive<T>, Error> {
        let from = self.whose(rank.into())?;
        Ok(Receive::post(self.exchange(), from, memory))
    }

    /// The messages of one rank.
    pub(crate) fn whose(&self, rank: Rank) -> Result<Whose, Error> {
        let size = self.process.size;
        if rank.0 >= size {
            return Err(RetrieveError::NoSuchRank { rank, size }.into());
        }
        let over = self.process.peers.latest_gone(rank);
        Ok(Whose::Rank(rank, over.map(|gone| gone.process())))
    }

    /// Where its receives and its messages meet. It has the places from now on.
    pub(super) fn exchange(&self) -> &Arc<Exchange> {
        let exchange = self.exchange.get_or_init(|| {
            let (process, core) = (Arc::clone(&self.process), Arc::clone(&self.core));
            Exchange::new(process, core)
        });
        if !self.places.is_elsewhere() {
            self.attend();
            let elsewhere = Arc::clone(exchange);
            exchange.take_over(self.places.move_out(elsewhere));
        }
        exchange
    }
}
