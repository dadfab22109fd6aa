//! The program's functions behind a service: plain, async, raw.

use core::cell::Cell;
use core::future::Future;
use core::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::request::{Asked, Request};
use super::session::Session;
use super::wire::Kind;
use mizzen_core::Gone;
use mizzen_core::service::{Workers, catch_panics, panic_message, step_aside};

/// What carries out calls.
pub(super) trait Handler: Send + Sync {
    /// Gives the session back, unless something still needs it.
    fn handle(&self, asked: Asked<'_>) -> Option<Arc<Session>>;

    /// A process on which the service depends is gone.
    fn lost(&self, _: Gone) {}
}

thread_local! {
    /// The call that this thread carries out.
    static CURRENT: Cell<Option<(Arc<Session>, u64)>> = const { Cell::new(None) };
}

/// Inside a service's function: whether the caller has stopped waiting, so that there is no point in going on.
///
/// An async function need not ask: it ends where it awaits. Outside a service's function this is `false`.
///
/// ```
/// assert!(!mizzen::is_cancelled());
/// ```
#[must_use]
pub fn is_cancelled() -> bool {
    // Whoever asks this takes long: let another worker look for what comes, also for the news that this asks for.
    step_aside();
    let current = CURRENT.take();
    let is_cancelled = current
        .as_ref()
        .is_some_and(|(session, call)| session.is_cancelled(*call));
    CURRENT.set(current);
    is_cancelled
}

/// A function from arguments to a result.
pub(super) struct Plain<F, A>(pub(super) F, pub(super) PhantomData<fn(A)>);

impl<A, R, F> Handler for Plain<F, A>
where
    A: DeserializeOwned,
    R: Serialize,
    F: Fn(A) -> R + Send + Sync,
{
    fn handle(&self, asked: Asked<'_>) -> Option<Arc<Session>> {
        let (call, wanted) = (asked.header.call, asked.is_wanted());
        let (session, arguments) = asked.read()?;
        let function = || (self.0)(arguments);
        carry_out(session, call, wanted, function, |session, result| {
            session.answer(call, Kind::Done, &result);
        })
    }
}

/// Carries out a call. What the function returns is given to `answer`, if it is wanted.
#[inline]
pub(super) fn carry_out<O>(
    session: Arc<Session>,
    call: u64,
    wanted: bool,
    function: impl FnOnce() -> O,
    answer: impl FnOnce(&Session, O),
) -> Option<Arc<Session>> {
    let outer = CURRENT.replace(Some((session, call)));
    let outcome = catch_unwind(AssertUnwindSafe(function));
    let (session, call) = CURRENT.replace(outer)?;
    match outcome {
        Ok(result) if wanted => answer(&session, result),
        Err(panic) if wanted => session.answer(call, Kind::Panicked, &panic_message(&*panic)),
        _ => (),
    }
    session.end(call);
    Some(session)
}

/// Another handler, and a function that is told of losses.
pub(super) struct Watching<H, L>(pub(super) H, pub(super) L);

impl<H: Handler, L: Fn(Gone) + Send + Sync> Handler for Watching<H, L> {
    fn handle(&self, asked: Asked<'_>) -> Option<Arc<Session>> {
        self.0.handle(asked)
    }

    fn lost(&self, gone: Gone) {
        (self.1)(gone);
    }
}

/// A function from arguments to a future of a result.
pub(super) struct Async<F, A> {
    pub(super) function: F,
    pub(super) workers: Weak<Workers>,
    pub(super) arguments: PhantomData<fn(A)>,
}

impl<A, R, O, F> Handler for Async<F, A>
where
    A: DeserializeOwned,
    R: Serialize,
    O: Future<Output = R> + Send + 'static,
    F: Fn(A) -> O + Send + Sync,
{
    fn handle(&self, asked: Asked<'_>) -> Option<Arc<Session>> {
        let (call, wanted) = (asked.header.call, asked.is_wanted());
        let (session, arguments) = asked.read()?;
        let workers = self.workers.upgrade()?;
        let future = match catch_unwind(AssertUnwindSafe(|| (self.function)(arguments))) {
            Ok(future) => future,
            Err(panic) => {
                if wanted {
                    session.answer(call, Kind::Panicked, &panic_message(&*panic));
                }
                return Some(session);
            }
        };
        let answering = Arc::clone(&session);
        let (runnable, task) = workers.prepare(async move {
            match catch_panics(future).await {
                Ok(result) if wanted => answering.answer(call, Kind::Done, &result),
                Err(panic) if wanted => {
                    answering.answer(call, Kind::Panicked, &panic_message(&*panic));
                }
                _ => (),
            }
            answering.end(call);
        });
        // Most end at once, or soon come to where they wait.
        runnable.run();
        if wanted {
            session.keep(call, task);
        } else {
            task.detach();
        }
        Some(session)
    }
}

/// A function that opens requests itself.
pub(super) struct Raw<F>(pub(super) F);

impl<F: Fn(Request) + Send + Sync> Handler for Raw<F> {
    fn handle(&self, asked: Asked<'_>) -> Option<Arc<Session>> {
        let (session, call) = (Arc::clone(&asked.session), asked.header.call);
        let outer = CURRENT.replace(Some((session, call)));
        if let Some(request) = Request::new(asked) {
            // The reply is dropped by a panic, which tells the caller.
            let _ = catch_unwind(AssertUnwindSafe(|| (self.0)(request)));
        }
        let (session, _) = CURRENT.replace(outer)?;
        Some(session)
    }
}
