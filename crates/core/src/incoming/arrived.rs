//! Waiting as a task until all of a long message is here.

use super::unpack::Incoming;
use crate::blocking::block_in_place;
use crate::error::{Error, UnpackError};

impl Incoming<'_> {
    /// Waits, as a task, until all of the message is here: to unpack it does not block then. A message that is here already is
    /// returned as it is; of a longer one, a worker collects the rest in memory of this process.
    ///
    /// Dropping the future drops the message.
    ///
    /// ```
    /// mizzen::local(2, |deck| {
    ///     if deck.rank() == 1 {
    ///         return deck.fetch("frames")?.send(&vec![7u8; 1 << 20][..]);
    ///     }
    ///     let mut frames = deck.mailbox()?;
    ///     deck.bind("frames", &frames)?;
    ///     let task = deck.spawn_async(async move {
    ///         let mut frame = frames.retrieve_async().await?.arrived().await?;
    ///         frame.unpack_vec::<u8>()
    ///     });
    ///     assert_eq!(task.join()??, vec![7; 1 << 20]);
    ///     Ok(())
    /// }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// As [`detach`](Self::detach).
    pub async fn arrived(self) -> Result<Incoming<'static>, Error> {
        if !self.pending.is_empty() {
            return Err(UnpackError::Pending.into());
        }
        let incoming = self.without_pending();
        if incoming.is_all_here() {
            return Ok(incoming);
        }
        let workers = incoming.process.workers().clone();
        let collect = async move { block_in_place(|| incoming.detach()) };
        workers.spawn(collect).await?
    }
}
