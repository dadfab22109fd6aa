//! A work pool over all processes of the job.
//!
//! All processes call [`Pool::map`] with the same function, each with items of its own (often only rank 0 has any). A process
//! runs its own items first; one that has none left asks the others for some, a few milliseconds' worth at a time, and sends
//! the results to their owner. The owner keeps what it gave away until the result is there: if the process that has it dies, it
//! is run again, and a result that comes twice counts once.
//!
//! | file | subject |
//! | --- | --- |
//! | `board.rs` | the items of one map in one process: waiting, given away, taken over, done |
//! | `lending.rs` | the service by which others ask for items and deliver results |
//! | `run.rs` | the threads that run items, and the calling thread, which fetches more and takes results |
//! | `report.rs`, `progress.rs` | what happened, and how far it is |

mod board;
mod lending;
mod progress;
mod report;
mod run;
mod settings;

use core::ops::ControlFlow;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

pub use progress::Progress;
pub use report::{Outcome, PoolError, Report};

use crate::deck::Deck;
use mizzen_core::Error;
use progress::Listener;
use settings::Settings;

/// A map over all processes that is being set up; made by [`Deck::pool`].
#[derive(Debug)]
#[must_use = "nothing happens before `map` or `for_each`"]
pub struct Pool<'d> {
    deck: &'d Deck,
    settings: Settings<'d>,
}

impl Deck {
    /// A work pool over all processes: "for all of these, on all our machines".
    ///
    /// ```
    /// let squares = mizzen::local(3, |deck| {
    ///     let items = if deck.rank() == 0 { (0..100u64).collect() } else { Vec::new() };
    ///     deck.pool().map(items, |x| x * x)
    /// })?;
    /// assert_eq!(squares[0][99], 99 * 99);
    /// assert!(squares[1].is_empty(), "each rank gets the results of its own items");
    /// # Ok::<(), mizzen::Error>(())
    /// ```
    pub fn pool(&self) -> Pool<'_> {
        Pool {
            deck: self,
            settings: Settings {
                name: String::new(),
                threads: mizzen_core::service::worker_count(),
                listener: Listener::Launcher,
                help_for: None,
            },
        }
    }
}

impl<'d> Pool<'d> {
    /// How many threads of this process run items. By default, as many as the process may use cores.
    pub fn threads(mut self, threads: usize) -> Self {
        self.settings.threads = threads.max(1);
        self
    }

    /// A name, shown with the progress. Maps of the same name are told apart by their order, which must be the same in all
    /// processes; maps that run at the same time need different names.
    pub fn name(mut self, name: &str) -> Self {
        name.clone_into(&mut self.settings.name);
        self
    }

    /// Calls `callback` with how far the map is: ten times a second, and once more when it is over. It runs on the calling
    /// thread, if this process has items. By default, the launcher shows the same; without a launcher, nothing is shown.
    ///
    /// ```
    /// mizzen::local(1, |deck| {
    ///     let mut said = Vec::new();
    ///     deck.pool()
    ///         .name("squares")
    ///         .on_progress(|progress| said.push(progress.to_string()))
    ///         .map(0..1000u64, |x| x * x)?;
    ///     let last = said.last().expect("it is told at the end in any case");
    ///     assert!(last.starts_with("squares: 1000 of 1000 items"), "{last}");
    ///     Ok(())
    /// }).unwrap();
    /// ```
    pub fn on_progress(mut self, callback: impl FnMut(&Progress) + 'd) -> Self {
        self.settings.listener = Listener::Callback(Box::new(callback));
        self
    }

    /// Tells nobody how far the map is, not even the launcher.
    pub fn quiet(mut self) -> Self {
        self.settings.listener = Listener::Nobody;
        self
    }

    /// Helps others for at most `time`; then this process finishes what it has taken over, and its own items, and returns. A
    /// process may also call `map` late, or not at all.
    pub fn help_for(mut self, time: Duration) -> Self {
        self.settings.help_for = Some(time);
        self
    }

    /// Runs `function` for each item, somewhere in the job, and returns the results in the order of the items.
    ///
    /// # Errors
    ///
    /// [`PoolError`] if the function panicked for an item.
    pub fn map<T, R>(
        self,
        items: impl IntoIterator<Item = T>,
        function: impl Fn(T) -> R + Sync,
    ) -> Result<Vec<R>, Error>
    where
        T: Serialize + DeserializeOwned + Send + 'static,
        R: Serialize + DeserializeOwned + Send + 'static,
    {
        Ok(self.map_reported(items, function)?.results)
    }

    /// As [`map`](Self::map), with an account of who did what.
    ///
    /// ```
    /// let outcomes = mizzen::local(2, |deck| deck.pool().map_reported(0..10u32, |x| x + 1))?;
    /// println!("{}", outcomes[0].report);
    /// # Ok::<(), mizzen::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`map`](Self::map).
    pub fn map_reported<T, R>(
        self,
        items: impl IntoIterator<Item = T>,
        function: impl Fn(T) -> R + Sync,
    ) -> Result<Outcome<R>, Error>
    where
        T: Serialize + DeserializeOwned + Send + 'static,
        R: Serialize + DeserializeOwned + Send + 'static,
    {
        let mut slots: Vec<Option<R>> = Vec::new();
        let report = self.for_each(items, function, |index, result| {
            if slots.len() <= index {
                slots.resize_with(index + 1, || None);
            }
            slots[index] = Some(result);
            ControlFlow::Continue(())
        })?;
        let results = slots.into_iter().flatten().collect();
        Ok(Outcome { results, report })
    }

    /// Runs `function` for each item and passes each result to `take` as it comes, once, with the position of its item. `take`
    /// runs on the calling thread; if it breaks, items that have not begun are not run.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    /// mizzen::local(2, |deck| {
    ///     let mut found = None;
    ///     deck.pool().for_each(0..1000u64, |x| x * x, |x, square| {
    ///         if square == 49 {
    ///             found = Some(x);
    ///             return ControlFlow::Break(());
    ///         }
    ///         ControlFlow::Continue(())
    ///     })?;
    ///     assert_eq!(found, Some(7));
    ///     Ok(())
    /// }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// As [`map`](Self::map).
    pub fn for_each<T, R>(
        self,
        items: impl IntoIterator<Item = T>,
        function: impl Fn(T) -> R + Sync,
        take: impl FnMut(usize, R) -> ControlFlow<()>,
    ) -> Result<Report, Error>
    where
        T: Serialize + DeserializeOwned + Send + 'static,
        R: Serialize + DeserializeOwned + Send + 'static,
    {
        run::run(self.deck, self.settings, items, &function, take)
    }
}
