//! Tasks, and the workers that run them.
//!
//! A process has as many workers as its share of the host's cores. A worker that has nothing to do looks for work itself, wherever it can come from:
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
//! | `source.rs` | where work comes from besides the queue |
//! | `task.rs` | what a program holds of a task |

mod pace;
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
pub use worker::step_aside;

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
/// The variable in which the launcher's agent says how many of the host's cores are this process's share.
const CORES: &str = "MIZZEN_CORES";

/// The fewest workers a process has if it may use so many cores: with one, a function that blocks outside of this library would
/// stop all others.
const FEWEST: usize = 2;

/// How many workers a process has: its share of the host's cores, at least two, and no more than it may use cores, unless
/// `MIZZEN_WORKERS` says otherwise.
pub fn worker_count() -> usize {
    let usable = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let said = |name| std::env::var(name).ok().and_then(|text| text.parse().ok());
    workers_of(said(WORKERS), said(CORES), usable)
}

fn workers_of(said: Option<usize>, share: Option<usize>, usable: usize) -> usize {
    let share = share.filter(|share| *share > 0);
    said.filter(|said| *said > 0)
        .unwrap_or_else(|| share.map_or(usable, |share| share.max(FEWEST).min(usable)))
}

#[cfg(test)]
mod tests {
    use super::workers_of;

    #[test]
    fn workers_are_what_was_said_or_the_share_of_the_cores_that_may_be_used() {
        assert_eq!(workers_of(None, None, 8), 8, "alone on the host");
        assert_eq!(workers_of(None, Some(2), 8), 2, "one of four");
        assert_eq!(workers_of(None, Some(4), 2), 2, "bound to two cores");
        assert_eq!(workers_of(None, Some(1), 8), 2, "one of many");
        assert_eq!(workers_of(None, Some(1), 1), 1, "one core");
        assert_eq!(workers_of(Some(5), Some(2), 8), 5, "said");
        assert_eq!(workers_of(Some(0), Some(0), 8), 8, "said nothing of use");
    }
}
