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

use crate::blocking::block_in_place;
use crate::error::{Error, TaskError};

/// A task that workers of this process run, made by `Deck::spawn` and `Deck::spawn_async`. [`join`](Self::join) gives its
/// result, and so does `await` in any async task. If this is dropped, the task goes on.
pub struct Task<T>(Option<Running<T>>);

/// A task on the workers, with what its panic carried; nothing if it was dropped.
type Running<T> = async_task::FallibleTask<Result<T, Panic>>;

/// What a panic carries.
type Panic = Box<dyn Any + Send>;

impl<T> Task<T> {
    pub(crate) fn new(task: async_task::Task<Result<T, Panic>>) -> Self {
        Self(Some(task.fallible()))
    }

    /// Waits for the result. While a worker waits here, another takes its place.
    ///
    /// # Errors
    ///
    /// [`TaskError::Panicked`] if the task panicked, with what the panic said; [`TaskError::Dropped`] if the process left its job
    /// before the task ended.
    pub fn join(self) -> Result<T, Error> {
        block_on(self)
    }

    /// Whether it has ended.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.0.as_ref().is_none_or(Running::is_finished)
    }

    /// Ends the task: one that has not begun never does, and an async one ends where it waits. A closure that runs is not
    /// interrupted.
    pub fn cancel(mut self) {
        drop(self.0.take());
    }
}

impl<T> Future for Task<T> {
    type Output = Result<T, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<T, Error>> {
        let Some(task) = &mut self.0 else {
            return Poll::Pending;
        };
        Pin::new(task).poll(context).map(|ended| match ended {
            Some(Ok(value)) => Ok(value),
            Some(Err(panic)) => Err(TaskError::Panicked(panic_message(&*panic)).into()),
            None => Err(TaskError::Dropped.into()),
        })
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
        block_in_place(|| {
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
pub async fn catch_panics<T>(future: impl Future<Output = T>) -> Result<T, Panic> {
    let mut future = pin!(future);
    poll_fn(
        move |context| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
            Ok(polled) => polled.map(Ok),
            Err(panic) => Poll::Ready(Err(panic)),
        },
    )
    .await
}

/// What a panic said.
#[must_use]
pub fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("without words").to_owned()
}
