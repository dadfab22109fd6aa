//! Tasks, and the workers that run them.
//!
//! A process has as many workers as cores. A worker that has nothing to do looks itself at everything from which work can come:
//! the queue of tasks, the mailboxes of services, the mailboxes that tasks await, and the networks. So a message that finds an
//! idle worker needs no thread in between that takes it and wakes another. Only one idle worker looks, the *watcher*; the others
//! are parked until it has found something and calls one of them to watch in its place.
//!
//! A task that blocks gives up its place: another worker goes on in it meanwhile, and the blocked thread goes on by itself as
//! soon as the system has woken it, whatever the workers compute (docs/design/workers.md).
//!
//! | file | subject |
//! | --- | --- |
//! | `crew.rs` | who works, watches, is parked or blocked |
//! | `worker.rs` | what a worker does |
//! | `pace.rs` | whether work takes longer than waking another worker |
//! | `source.rs` | from where work comes besides the queue |
//! | `task.rs` | what a program holds of a task |

mod crew;
mod pace;
mod source;
mod task;
mod worker;

use std::sync::{Arc, Weak};

pub use crew::Crew;
pub use pace::Pace;
pub use source::{Source, Worker};
pub use task::Task;
pub use task::catch_panics;
use worker::Seat;
pub use worker::step_aside;
pub(crate) use worker::with_seat;

use crate::bells::Bells;
use crate::links::Links;
use crate::progress::Progress;

/// The workers of a process; they start when there is work.
pub(crate) fn workers(
    progress: Weak<dyn Progress>,
    bells: Arc<Bells>,
    links: Arc<Links>,
) -> Arc<Crew> {
    Crew::new(progress, bells, links, places(), Seat::start)
}

/// The variable that says how many workers a process has.
const WORKERS: &str = "MIZZEN_WORKERS";

/// How many workers a process has: as many as it may use cores, unless the user says otherwise.
pub fn places() -> usize {
    let said = std::env::var(WORKERS).ok().and_then(|n| n.parse().ok());
    said.filter(|n| *n > 0)
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, std::num::NonZero::get))
}
