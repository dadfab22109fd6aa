//! Tasks that move from process to process.
//!
//! Such a task is a value that can be serialised, with a function that makes one step. Between two steps it is only that value,
//! so it can go on in another process: because it asks to, or because one process has more tasks than workers and another has
//! free workers. No pointer travels, so the addresses of code and heap do not matter.
//!
//! The process that started a task is its *home*. A process that sends a task on tells its home where it went, and its state.
//! If the process that has it dies, the home restarts it from that state: its steps since then are made again, elsewhere, and
//! its result is delivered once (docs/design/migration.md).
//!
//! | file | subject |
//! | --- | --- |
//! | `local_tasks.rs` | the tasks that are here: steps, departures, arrivals |
//! | `home.rs` | the tasks that were started here, wherever they are |
//! | `wire.rs` | what goes from process to process |

mod error;
mod home;
mod kind;
mod local_tasks;
mod wire;

pub use error::RemoteTaskError;
pub use home::RemoteTask;
pub use kind::{Migrate, Step};
use mizzen_core::{Error, Rank};

use crate::deck::Deck;

impl Deck {
    /// Lets tasks of this kind run in this process, on its workers, for as long as it has a [`Deck`].
    ///
    /// # Errors
    ///
    /// [`MailboxError`](crate::MailboxError) if the process has no room for another mailbox.
    pub fn register<T: Migrate>(&self) -> Result<(), Error> {
        local_tasks::of::<T>(self).map(drop)
    }

    /// Starts a task in the process `rank`, or here if that process has not registered this kind of task. A task that makes only
    /// one step is simply a function that runs there.
    ///
    /// # Errors
    ///
    /// As [`register`](Self::register): this process is the task's home, so it registers the kind, too.
    pub fn spawn_at<T: Migrate>(
        &self,
        rank: impl Into<Rank>,
        task: T,
    ) -> Result<RemoteTask<T::Output>, Error> {
        local_tasks::of::<T>(self)?.launch(rank.into(), task)
    }

    /// How many tasks of this kind are in this process now.
    pub fn tasks_here<T: Migrate>(&self) -> usize {
        local_tasks::of::<T>(self).map_or(0, |local_tasks| local_tasks.count())
    }
}
