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
mod harbour;
mod home;

use serde::Serialize;
use serde::de::DeserializeOwned;

pub(crate) use harbour::Harbour;
pub use home::Journey;

use crate::deck::Deck;
use crate::error::Error;
use crate::rank::Rank;

/// A task that can go from process to process: its state, and what it does in one step.
///
/// ```
/// use mizzen::{Deck, Mobile, Step};
///
/// /// Visits every rank, and adds up their numbers.
/// #[derive(serde::Serialize, serde::Deserialize)]
/// struct Sum {
///     next: u32,
///     sum: u32,
/// }
///
/// impl Mobile for Sum {
///     const NAME: &'static str = "sum";
///     type Output = u32;
///
///     fn step(&mut self, deck: &Deck) -> Step<u32> {
///         self.sum += deck.rank().0;
///         self.next += 1;
///         if self.next == deck.size() {
///             return Step::Done(self.sum);
///         }
///         Step::Move(self.next.into())
///     }
/// }
///
/// mizzen::local(3, |deck| {
///     deck.welcome::<Sum>()?;
///     if deck.rank() == 0 {
///         let journey = deck.spawn(0, Sum { next: 0, sum: 0 })?;
///         assert_eq!(journey.join()?, 3);
///     }
///     // Whoever is visited stays until it is over.
///     deck.finish()
/// }).unwrap();
/// ```
pub trait Mobile: Serialize + DeserializeOwned + Send + 'static {
    /// What this kind of task is called: the same in all processes.
    const NAME: &'static str;
    /// What it results in.
    type Output: Serialize + DeserializeOwned + Send + 'static;

    /// Makes one step, in the process of `deck`. If a process is lost, steps may be made twice, from the same state.
    fn step(&mut self, deck: &Deck) -> Step<Self::Output>;
}

/// How a mobile task goes on after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<O> {
    /// With the next step, here or wherever there is a free worker.
    Again,
    /// In that process. If it is not there, or does not [welcome](Deck::welcome) such tasks, here.
    Move(Rank),
    /// Not: this is its result.
    Done(O),
}

/// Why a mobile task has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JourneyError {
    /// Its step panicked.
    #[error("the task {task:?} panicked at rank {rank}: {message}")]
    Panicked {
        /// Its kind.
        task: &'static str,
        /// Where.
        rank: Rank,
        /// What the panic said.
        message: String,
    },
    /// It cannot be serialised, or not be read again.
    #[error("the task {task:?} or its result cannot go to another process: {cause}")]
    Encoding {
        /// Its kind.
        task: &'static str,
        /// What is wrong.
        cause: String,
    },
}

impl Deck {
    /// Lets mobile tasks of this kind run in this process, on its workers, for as long as it has a [`Deck`].
    ///
    /// # Errors
    ///
    /// [`MailboxError`](crate::MailboxError) if the process has as many mailboxes as it may.
    pub fn welcome<T: Mobile>(&self) -> Result<(), Error> {
        self.harbour::<T>().map(drop)
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
        self.harbour::<T>()?.launch(rank.into(), task)
    }

    /// How many mobile tasks of this kind are in this process now.
    pub fn tasks_here<T: Mobile>(&self) -> usize {
        self.harbour::<T>().map_or(0, |harbour| harbour.count())
    }
}
