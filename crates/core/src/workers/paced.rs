//! Tasks that know how long their parts take: one that is quick is run by the watcher itself, one that is not has another worker
//! watch meanwhile.

use core::future::{Future, poll_fn};
use core::pin::pin;

use super::pace::Pace;
use crate::blocking::step_aside;

/// Who runs the first part of a task.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum First {
    /// Workers. Nothing is known of it, so it counts as slow.
    ByWorkers,
    /// Its maker, who has seen to it that somebody watches.
    ByCaller,
}

/// The same future, which has another worker watch if its parts take long.
pub(super) async fn in_pace<T>(future: impl Future<Output = T>, first: First) -> T {
    let pace = Pace::new();
    let mut future = pin!(future);
    let mut is_seen_to = first == First::ByCaller;
    poll_fn(|context| {
        if pace.is_slow() && !is_seen_to {
            step_aside();
        }
        is_seen_to = false;
        pace.time(|| future.as_mut().poll(context))
    })
    .await
}
