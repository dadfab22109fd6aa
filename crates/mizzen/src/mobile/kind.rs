//! What a kind of mobile task is.

use mizzen_core::Rank;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::deck::Deck;

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
