//! The tasks that were started here, wherever they are.

use core::fmt;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use serde::de::DeserializeOwned;

use super::error::RemoteTaskError;
use super::wire::{Packed, TaskId};
use mizzen_core::service::{block_in_place, lock};
use mizzen_core::{Error, ProcessId};

/// What became of a task.
type Ended<O> = Result<O, RemoteTaskError>;

/// A task that was started by [`Deck::spawn_at`](crate::Deck::spawn_at), wherever it is. If this is dropped, the task goes on.
pub struct RemoteTask<O> {
    shared: Arc<Shared<O>>,
}

struct Shared<O> {
    ended: Mutex<Option<Ended<O>>>,
    news: Condvar,
}

impl<O> RemoteTask<O> {
    /// Waits for the result.
    ///
    /// # Errors
    ///
    /// [`RemoteTaskError`] if there is none.
    pub fn join(self) -> Result<O, Error> {
        let ended = block_in_place(|| {
            let mut ended = lock(&self.shared.ended);
            loop {
                match ended.take() {
                    Some(ended) => return ended,
                    None => {
                        ended = self
                            .shared
                            .news
                            .wait(ended)
                            .unwrap_or_else(PoisonError::into_inner);
                    }
                }
            }
        });
        ended.map_err(Error::from)
    }

    /// Whether the result is there.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        lock(&self.shared.ended).is_some()
    }
}

impl<O> fmt::Debug for RemoteTask<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteTask")
            .field("is_finished", &self.is_finished())
            .finish()
    }
}

/// What a home knows of its tasks.
pub(super) struct Home<O> {
    records: Mutex<Records<O>>,
}

struct Records<O> {
    next: u64,
    tasks: HashMap<u64, Record<O>>,
    gone: HashSet<ProcessId>,
}

/// A task, as its home knows it.
struct Record<O> {
    /// What it was when it last went anywhere.
    task: Packed,
    /// Where it went.
    at: ProcessId,
    remote: Arc<Shared<O>>,
}

impl<O: DeserializeOwned> Home<O> {
    pub(super) fn new() -> Self {
        Self {
            records: Mutex::new(Records {
                next: 0,
                tasks: HashMap::new(),
                gone: HashSet::new(),
            }),
        }
    }

    /// A new task, which is here.
    pub(super) fn begin(&self, here: ProcessId, state: Vec<u8>) -> (Packed, RemoteTask<O>) {
        let mut records = lock(&self.records);
        let number = records.next;
        records.next += 1;
        let task = Packed {
            id: TaskId::new(here, number, 0),
            moves: 0,
            state: state.into(),
        };
        let shared = Arc::new(Shared {
            ended: Mutex::new(None),
            news: Condvar::new(),
        });
        let record = Record {
            task: task.clone(),
            at: here,
            remote: Arc::clone(&shared),
        };
        records.tasks.insert(number, record);
        (task, RemoteTask { shared })
    }

    /// A task went to another process. If that one is gone already, it is returned, to go on here.
    pub(super) fn note_left(&self, here: ProcessId, task: Packed, to: ProcessId) -> Option<Packed> {
        let mut records = lock(&self.records);
        let is_gone = records.gone.contains(&to);
        let record = records.tasks.get_mut(&task.id.number)?;
        let known = &record.task;
        // News of an earlier attempt, or of an earlier move that comes late.
        if task.id != known.id || task.moves <= known.moves {
            return None;
        }
        record.task = task;
        record.at = to;
        is_gone.then(|| record.start_again(here))
    }

    /// A process is gone: its tasks go on from where it got them.
    pub(super) fn lose(&self, here: ProcessId, gone: ProcessId) -> Vec<Packed> {
        let mut records = lock(&self.records);
        records.gone.insert(gone);
        let lost = records.tasks.values_mut();
        lost.filter(|record| record.at == gone)
            .map(|record| record.start_again(here))
            .collect()
    }

    /// A task has ended. What ends twice counts once. A result of an earlier attempt is as good as one of the present; that an
    /// earlier attempt panicked, perhaps because its process was about to be lost, is not the end of the present one.
    pub(super) fn end(&self, id: TaskId, outcome: Ended<O>) {
        let record = {
            let mut records = lock(&self.records);
            let known = records.tasks.get(&id.number).map(|record| record.task.id);
            if known.is_none_or(|known| outcome.is_err() && id != known) {
                return;
            }
            records.tasks.remove(&id.number)
        };
        let Some(record) = record else {
            return;
        };
        *lock(&record.remote.ended) = Some(outcome);
        record.remote.news.notify_all();
    }
}

impl<O> Record<O> {
    fn start_again(&mut self, here: ProcessId) -> Packed {
        self.task.id.attempt += 1;
        self.at = here;
        self.task.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::Home;
    use crate::migration::RemoteTaskError;
    use mizzen_core::{Incarnation, ProcessId, Rank};

    #[test]
    fn the_panic_of_an_earlier_attempt_does_not_end_the_present_one() {
        let process = |rank| ProcessId::new(Rank(rank), Incarnation(0));
        let (here, there) = (process(0), process(1));
        let home: Home<u32> = Home::new();
        let (mut task, remote) = home.begin(here, Vec::new());
        task.moves += 1;
        let stale = task.id;
        assert!(home.note_left(here, task, there).is_none());
        let again = home.lose(here, there).remove(0);
        let panicked = RemoteTaskError::Panicked {
            task: "counts",
            rank: Rank(1),
            message: "a stale copy panicked".into(),
        };
        home.end(stale, Err(panicked));
        assert!(!remote.is_finished(), "the present attempt goes on");
        home.end(again.id, Ok(7));
        assert_eq!(remote.join().unwrap(), 7);
    }
}
