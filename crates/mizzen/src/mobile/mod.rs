//! Tasks that go from process to process.
//!
//! A mobile task is a value that can be serialised, with a function that makes one step. Between two steps it is only that value,
//! so it can go on in another process: by its own wish, or because one process has more tasks than workers and another has
//! none. No pointer travels, so it does not matter where programs and heaps lie.
//!
//! The process that started a task is its *home*. Whoever sends a task on tells its home where it went and what it was then.
//! If the process that has it dies, the home lets it go on from there: its steps since then are made again, elsewhere, and its
//! result is delivered once (docs/design/mobile-tasks.md).
//!
//! | file | subject |
//! | --- | --- |
//! | `harbour.rs` | the tasks that are here: steps, departures, arrivals |
//! | `home.rs` | the tasks that were started here, wherever they are |
//! | `cargo.rs` | what goes from process to process |

mod cargo;
mod error;
mod harbour;
mod home;
mod kind;

pub use error::JourneyError;
pub use home::Journey;
pub use kind::{Mobile, Step};
use mizzen_core::{Error, Rank};

use crate::deck::Deck;

impl Deck {
    /// Lets mobile tasks of this kind run in this process, on its workers, for as long as it has a [`Deck`].
    ///
    /// # Errors
    ///
    /// [`MailboxError`](crate::MailboxError) if the process has as many mailboxes as it may.
    pub fn welcome<T: Mobile>(&self) -> Result<(), Error> {
        harbour::of::<T>(self).map(drop)
    }

    /// Starts a task in the process `rank`, or here if it does not welcome it. A task that makes only one step is simply a
    /// function that runs there.
    ///
    /// # Errors
    ///
    /// As [`welcome`](Self::welcome): this process is the task's home, so it welcomes it, too.
    pub fn spawn<T: Mobile>(
        &self,
        rank: impl Into<Rank>,
        task: T,
    ) -> Result<Journey<T::Output>, Error> {
        harbour::of::<T>(self)?.launch(rank.into(), task)
    }

    /// How many mobile tasks of this kind are in this process now.
    pub fn tasks_here<T: Mobile>(&self) -> usize {
        harbour::of::<T>(self).map_or(0, |harbour| harbour.count())
    }
}
