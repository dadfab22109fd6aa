//! Operations beside something else: on a worker, or on a thread of their own while this one computes.

use mizzen_core::Task;
use mizzen_core::service::block_in_place;

use super::member::Group;

impl Group {
    /// Does operations on a worker of this process, while the caller goes on. The task gives the group back, with what came of it, to who joins or awaits it.
    ///
    /// ```
    /// use mizzen::group::Sum;
    ///
    /// mizzen::local(2, |deck| {
    ///     let mut data = vec![1.0; 100_000];
    ///     let task = deck.group()?.start(move |group| {
    ///         group.all_reduce(&mut data, Sum).map(|()| data)
    ///     });
    ///     // Something else, and then, or with `.await` in an async task:
    ///     let (_group, data) = task.join()?;
    ///     assert_eq!(data?[99_999], 2.0);
    ///     Ok(())
    /// }).unwrap();
    /// ```
    pub fn start<R: Send + 'static>(
        mut self,
        operations: impl FnOnce(&mut Self) -> R + Send + 'static,
    ) -> Task<(Self, R)> {
        let process = self.parts().0.process.clone();
        let work = move || {
            let outcome = operations(&mut self);
            (self, outcome)
        };
        process.workers().spawn(async move { block_in_place(work) })
    }

    /// Does operations on a thread of their own, while this one does something else, both on what they borrow: returns when both are done. To begin a thread takes
    /// some 20 µs.
    ///
    /// ```
    /// use mizzen::group::Sum;
    ///
    /// mizzen::local(2, |deck| {
    ///     let mut group = deck.group()?;
    ///     let (mut border, inner) = (vec![1.0; 1000], vec![2.0; 100_000]);
    ///     let (combined, sum) = group.overlap(
    ///         |group| group.all_reduce(&mut border, Sum),
    ///         || inner.iter().sum::<f64>(),
    ///     );
    ///     combined?;
    ///     assert_eq!((border[0], sum), (2.0, 200_000.0));
    ///     Ok(())
    /// }).unwrap();
    /// ```
    ///
    /// # Panics
    ///
    /// If one of the two does.
    pub fn overlap<A: Send, B>(
        &mut self,
        operations: impl FnOnce(&mut Self) -> A + Send,
        meanwhile: impl FnOnce() -> B,
    ) -> (A, B) {
        std::thread::scope(|scope| {
            let operations = scope.spawn(|| operations(self));
            let meanwhile = meanwhile();
            match operations.join() {
                Ok(outcome) => (outcome, meanwhile),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }
}
