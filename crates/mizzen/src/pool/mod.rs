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
//! | `agent.rs` | the service by which others ask for items and deliver results |
//! | `crew.rs` | the threads that run items, and the calling thread, which fetches more and takes results |
//! | `report.rs`, `progress.rs` | what happened, and what happens |

mod agent;
mod board;
mod crew;
mod progress;
mod report;
mod settings;

use core::ops::ControlFlow;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

pub use report::{Outcome, PoolError, Report};

use crate::deck::Deck;
use mizzen_core::Error;
use settings::Settings;

/// A map over all processes, being set up: from [`Deck::pool`].
#[derive(Debug)]
#[must_use = "nothing happens before `map` or `for_each`"]
pub struct Pool<'d> {
    deck: &'d Deck,
    settings: Settings,
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
                threads: mizzen_core::service::places(),
                progress: None,
                help_for: None,
            },
        }
    }
}

impl Pool<'_> {
    /// How many threads of this process run items. Without it: as many as it may use cores.
    pub fn threads(mut self, threads: usize) -> Self {
        self.settings.threads = threads.max(1);
        self
    }

    /// A name for what is done: shown with the progress. Maps of the same name are told apart by their order, which must be the
    /// same in all processes; maps that go on at the same time need different names.
    pub fn name(mut self, name: &str) -> Self {
        name.clone_into(&mut self.settings.name);
        self
    }

    /// Whether to show how far it is. Without it: if somebody looks, that is, on a terminal.
    pub fn progress(mut self, shown: bool) -> Self {
        self.settings.progress = Some(shown);
        self
    }

    /// Helps others only for so long: then this process finishes what it has taken over, and its own items, and goes on. It may
    /// also come late, or not at all.
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

    /// Runs `function` for each item and hands the results over as they come, each once, with the position of its item. `take` is
    /// called by the calling thread; if it breaks, what has not begun is left undone.
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
        crew::run(self.deck, &self.settings, items, &function, take)
    }
}
