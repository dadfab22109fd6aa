//! What a program holds of a task.

use core::fmt;
use core::future::{Future, poll_fn};
use core::pin::{Pin, pin};
use core::task::{Context, Poll, Waker};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Wake;
use std::thread::Thread;

use crate::blocking::without_place;

/// Something that a worker of this process runs: made by `Deck::run` and
/// `Deck::run_async`. Its result is got by [`join`](Self::join), or by `await` in any async task. If it
/// is dropped, the task goes on.
pub struct Task<T>(Option<async_task::Task<T>>);

impl<T> Task<T> {
    pub(crate) fn new(task: async_task::Task<T>) -> Self {
        Self(Some(task))
    }

    /// Waits for the result. A worker that waits here gives its place to another meanwhile.
    ///
    /// # Panics
    ///
    /// If the task panicked, with the same panic.
    pub fn join(self) -> T {
        block_on(self)
    }

    /// Whether it has ended.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.0.as_ref().is_none_or(async_task::Task::is_finished)
    }

    /// Ends the task: one that has not begun never does, and an async one ends where it waits. A closure that runs is not
    /// interrupted.
    pub fn cancel(mut self) {
        drop(self.0.take());
    }
}

impl<T> Future for Task<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        match &mut self.0 {
            Some(task) => Pin::new(task).poll(context),
            None => Poll::Pending,
        }
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        if let Some(task) = self.0.take() {
            task.detach();
        }
    }
}

impl<T> fmt::Debug for Task<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Task")
            .field("is_finished", &self.is_finished())
            .finish()
    }
}

/// Runs a future on this thread.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    struct Parked {
        thread: Thread,
        woken: AtomicBool,
    }
    impl Wake for Parked {
        fn wake(self: Arc<Self>) {
            self.woken.store(true, Ordering::Release);
            self.thread.unpark();
        }
    }
    let parked = Arc::new(Parked {
        thread: std::thread::current(),
        woken: AtomicBool::new(false),
    });
    let waker = Waker::from(Arc::clone(&parked));
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return value;
        }
        without_place(|| {
            while !parked.woken.swap(false, Ordering::Acquire) {
                std::thread::park();
            }
        });
    }
}

/// The same future, which ends with the panic of the original instead of passing it on.
///
/// # Errors
///
/// What the panic carried.
pub async fn catch_panics<T>(future: impl Future<Output = T>) -> Result<T, Box<dyn Any + Send>> {
    let mut future = pin!(future);
    poll_fn(
        move |context| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
            Ok(polled) => polled.map(Ok),
            Err(panic) => Poll::Ready(Err(panic)),
        },
    )
    .await
}
