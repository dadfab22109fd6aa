//! What a kind of task is that can move.

use mizzen_core::Rank;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::deck::Deck;

/// A task that can move from process to process: its state, and what it does in one step.
///
/// ```
/// use mizzen::{Deck, Migrate, Step};
///
/// /// Visits every rank, and adds up their numbers.
/// #[derive(serde::Serialize, serde::Deserialize)]
/// struct Sum {
///     next: u32,
///     sum: u32,
/// }
///
/// impl Migrate for Sum {
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
///     deck.register::<Sum>()?;
///     if deck.rank() == 0 {
///         let remote = deck.spawn_at(0, Sum { next: 0, sum: 0 })?;
///         assert_eq!(remote.join()?, 3);
///     }
///     // Whoever is visited stays until it is over.
///     deck.finish()
/// }).unwrap();
/// ```
pub trait Migrate: Serialize + DeserializeOwned + Send + 'static {
    /// The name of this kind of task, the same in all processes.
    const NAME: &'static str;
    /// What it results in.
    type Output: Serialize + DeserializeOwned + Send + 'static;

    /// Makes one step, in the process of `deck`. After the loss of a process, steps may be made twice, from the same state.
    fn step(&mut self, deck: &Deck) -> Step<Self::Output>;
}

/// How a task goes on after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<O> {
    /// It makes its next step, here or wherever there is a free worker.
    Again,
    /// It moves to that process. If that one is gone, or has not [registered](Deck::register) such tasks, it goes on here.
    Move(Rank),
    /// It is done, with this result.
    Done(O),
}
