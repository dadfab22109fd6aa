//! Tasks, and the workers that run them.
//!
//! A process has as many workers as cores. A worker that has nothing to do looks for work itself, wherever it can come from:
//! the queue of tasks, the mailboxes of services, the mailboxes that tasks await, and the networks. So a message that finds an
//! idle worker needs no thread in between that takes it and wakes another. Only one idle worker looks, the *watcher*; the
//! others are parked until it has found something and wakes one of them to watch in its place.
//!
//! A worker that blocks gives up its place: another goes on meanwhile, and the blocked thread goes on as soon as the
//! system has woken it, whatever the workers compute (docs/design/workers.md).
//!
//! | file | subject |
//! | --- | --- |
//! | `roster.rs` | the queue, and from where else work comes; who works, watches, is parked or blocked is `crates/lane/src/roster.rs` |
//! | `worker.rs` | what a worker does |
//! | `pace.rs` | whether work takes longer than waking another worker |
//! | `paced.rs` | tasks that have another worker watch if they take long |
//! | `source.rs` | where work comes from besides the queue |
//! | `task.rs` | what a program holds of a task |

mod pace;
mod paced;
mod roster;
mod source;
mod task;
mod worker;

use std::sync::{Arc, Weak};

pub use pace::Pace;
pub use roster::Workers;
pub use source::{Source, Worker};
pub use task::{Task, catch_panics, panic_message};
use worker::WorkerThread;
pub(crate) use worker::on_worker;

use crate::bells::Bells;
use crate::links::Links;
use crate::progress::Progress;

/// The workers of a process; they start when there is work.
pub(crate) fn workers(
    progress: Weak<dyn Progress>,
    bells: Arc<Bells>,
    links: Arc<Links>,
) -> Arc<Workers> {
    Workers::new(progress, bells, links, worker_count(), WorkerThread::start)
}

/// The variable that says how many workers a process has.
const WORKERS: &str = "MIZZEN_WORKERS";

/// How many workers a process has: as many as it may use cores, unless `MIZZEN_WORKERS` says otherwise.
pub fn worker_count() -> usize {
    let said = std::env::var(WORKERS).ok().and_then(|n| n.parse().ok());
    said.filter(|n| *n > 0)
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, std::num::NonZero::get))
}
