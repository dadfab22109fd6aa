//! The items of one map in one process: waiting, given away, taken over, done.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::lending::{Counts, Lender, NoResult};
use super::report::{PoolError, Report};
use mizzen_core::service::{LONGEST_UNREAD, decode, lock};
use mizzen_core::{Endpoint, Gone, ProcessId, Rank, UnpackError};

/// How many bytes of items are given away at once. Enough that long items keep their takers busy, few enough that one answer
/// holds them: an answer that is too long would never arrive.
const PORTION_BYTES: usize = 8 << 20;
/// The longest item that is given away: a message holds it, with some words around it.
const LONGEST_LENT: usize = LONGEST_UNREAD - 4096;

/// What a thread has to do next.
pub(super) enum Work<T> {
    /// One of our own items.
    Own(usize, T),
    /// An item of another process.
    Foreign(Foreign),
    /// Nothing will come any more.
    Over,
}

/// An item of another process, taken over.
pub(super) struct Foreign {
    pub(super) owner: ProcessId,
    pub(super) index: u64,
    pub(super) item: Vec<u8>,
}

/// A result on its way to the thread that takes them.
pub(super) enum Arrived<R> {
    /// Of an item that was run here.
    Here(R),
    /// Of one that was run elsewhere.
    Packed(Vec<u8>),
    Failed(PoolError),
}

/// How far a map is in one process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tally {
    pub(super) done: usize,
    pub(super) total: usize,
    /// Processes that have items of ours.
    pub(super) ranks_at_work: usize,
    pub(super) works_itself: bool,
}

/// The items of one map in one process.
pub(super) struct Board<T, R> {
    process: Endpoint,
    /// How many items there are.
    total: usize,
    state: Mutex<State<T, R>>,
    /// There is work, or the end of it.
    work: Condvar,
    /// There is something for the calling thread.
    news: Condvar,
}

struct State<T, R> {
    waiting: VecDeque<(usize, Item<T>)>,
    given: HashMap<u64, Given>,
    foreign: VecDeque<Foreign>,
    arrived: VecDeque<(usize, Arrived<R>)>,
    /// Which items have results.
    done: Vec<bool>,
    left: usize,
    /// Items of others that threads of ours run just now.
    running: usize,
    /// Processes that get nothing any more.
    gone: HashSet<ProcessId>,
    /// The calling thread shall not wait any longer.
    urgent: bool,
    /// It wants to be called when fewer items than this wait here; 0: only when a thread finds none.
    low: usize,
    /// No more work will come.
    over: bool,
    report: Report,
}

enum Item<T> {
    Here(T),
    /// It cannot travel: it is run here.
    Stays(T),
    Packed(Vec<u8>),
}

/// An item that another process has.
struct Given {
    to: ProcessId,
    item: Vec<u8>,
}

impl<T, R> Board<T, R> {
    pub(super) fn new(items: impl IntoIterator<Item = T>, process: Endpoint) -> Self {
        let items = items.into_iter().map(Item::Here);
        let waiting: VecDeque<_> = items.enumerate().collect();
        let left = waiting.len();
        Self {
            process,
            total: left,
            state: Mutex::new(State {
                waiting,
                given: HashMap::new(),
                foreign: VecDeque::new(),
                arrived: VecDeque::new(),
                done: vec![false; left],
                left,
                running: 0,
                gone: HashSet::new(),
                urgent: false,
                low: 0,
                over: false,
                report: Report::default(),
            }),
            work: Condvar::new(),
            news: Condvar::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State<T, R>> {
        lock(&self.state)
    }

    /// Items without a result.
    pub(super) fn left(&self) -> usize {
        self.state().left
    }

    /// How far it is.
    pub(super) fn tally(&self) -> Tally {
        let state = self.state();
        // Whoever is in neither queue is with a thread of ours.
        let elsewhere = state.waiting.len() + state.given.len();
        let works_itself = state.left > elsewhere;
        let helpers: HashSet<ProcessId> = state.given.values().map(|given| given.to).collect();
        Tally {
            done: state.report.by_rank.values().sum(),
            total: self.total,
            ranks_at_work: helpers.len() + usize::from(works_itself),
            works_itself,
        }
    }

    /// Whether no item of another process is being run here, and no result waits to be taken.
    pub(super) fn is_settled(&self) -> bool {
        let state = self.state();
        state.running == 0 && state.arrived.is_empty()
    }

    /// Items that no thread of ours has begun.
    pub(super) fn waiting_here(&self) -> usize {
        let state = self.state();
        state.waiting.len() + state.foreign.len()
    }

    /// Items were taken over.
    pub(super) fn take_over(&self, foreign: impl IntoIterator<Item = Foreign>) {
        self.state().foreign.extend(foreign);
        self.work.notify_all();
    }

    /// A result of one of our items. One that is there already is dropped.
    pub(super) fn finish(&self, index: usize, ran: Rank, result: Arrived<R>) {
        let mut state = self.state();
        match state.done.get_mut(index) {
            Some(done) if !*done => *done = true,
            Some(_) => {
                state.report.dropped += 1;
                return;
            }
            // Not one of ours: nonsense.
            None => return,
        }
        state.given.remove(&(index as u64));
        state.left -= 1;
        *state.report.by_rank.entry(ran).or_default() += 1;
        let failed = matches!(result, Arrived::Failed(_));
        state.arrived.push_back((index, result));
        // Others wait until the calling thread looks: waking it for each would cost as much as a short item.
        if failed || state.left == 0 {
            self.call(&mut state);
        }
    }

    /// An item of another process was run here.
    pub(super) fn note_helped(&self) {
        let mut state = self.state();
        state.report.helped += 1;
        state.running -= 1;
    }

    /// Calls the calling thread.
    fn call(&self, state: &mut State<T, R>) {
        state.urgent = true;
        self.news.notify_one();
    }

    /// Calls the calling thread if it is to fetch more: once, for it says again how few are too few.
    fn call_if_low(&self, state: &mut State<T, R>) {
        if state.waiting.len() + state.foreign.len() < state.low {
            state.low = 0;
            self.call(state);
        }
    }

    /// Results since the last call; waits as long as said, or until fewer than `low` items wait here.
    pub(super) fn arrived(&self, patience: Duration, low: usize) -> VecDeque<(usize, Arrived<R>)> {
        let mut state = self.state();
        if !patience.is_zero() {
            state.low = low;
            let waited = self
                .news
                .wait_timeout_while(state, patience, |state| !state.urgent);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.urgent = false;
        state.low = 0;
        core::mem::take(&mut state.arrived)
    }

    /// A process is gone: what it had is run again, and what was taken over from it is not wanted any more. How many items it had.
    pub(super) fn lose(&self, gone: Gone) -> usize {
        let mut state = self.state();
        state.gone.insert(gone.process());
        state.foreign.retain(|item| item.owner != gone.process());
        let has = |given: &Given| given.to == gone.process();
        let indices: Vec<u64> = state
            .given
            .iter()
            .filter_map(|(index, given)| has(given).then_some(*index))
            .collect();
        let had = indices.len();
        if had == 0 {
            return 0;
        }
        state.report.lost.push(gone);
        state.report.rerun += had;
        for index in indices {
            if let Some(given) = state.given.remove(&index) {
                let item = Item::Packed(given.item);
                state.waiting.push_front((index as usize, item));
            }
        }
        self.work.notify_all();
        had
    }

    /// What was taken over from a process is not wanted any more.
    pub(super) fn forget(&self, owner: Rank) {
        let mut state = self.state();
        state.foreign.retain(|item| item.owner.rank != owner);
    }

    /// What is not begun is left undone.
    pub(super) fn cancel(&self) {
        let mut state = self.state();
        state.report.cancelled = state.left > 0;
        state.waiting.clear();
        state.given.clear();
        state.left = 0;
        // Late results find no item.
        state.done.clear();
        state.arrived.clear();
    }

    /// Threads end when they have done what is here.
    pub(super) fn end(&self) {
        self.state().over = true;
        self.work.notify_all();
    }

    pub(super) fn report(&self) -> Report {
        self.state().report.clone()
    }
}

impl<T: DeserializeOwned, R> Board<T, R> {
    /// What a thread shall do next; waits for it.
    pub(super) fn next(&self) -> Work<T> {
        let mut state = self.state();
        loop {
            // One's own first: they need no way.
            if let Some((index, item)) = state.waiting.pop_front() {
                self.call_if_low(&mut state);
                match item {
                    Item::Here(item) | Item::Stays(item) => return Work::Own(index, item),
                    Item::Packed(bytes) => match decode(&self.process, &bytes) {
                        Ok(item) => return Work::Own(index, item),
                        Err(error) => {
                            drop(state);
                            let failed = encoding(index, &error);
                            let me = self.process.id().rank;
                            self.finish(index, me, Arrived::Failed(failed));
                            state = self.state();
                            continue;
                        }
                    },
                }
            }
            if let Some(foreign) = state.foreign.pop_front() {
                state.running += 1;
                self.call_if_low(&mut state);
                return Work::Foreign(foreign);
            }
            if state.over {
                return Work::Over;
            }
            // The calling thread fetches more, if there are any.
            self.call(&mut state);
            state = self
                .work
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

pub(super) fn encoding(index: usize, error: &UnpackError) -> PoolError {
    PoolError::Encoding {
        index,
        cause: error.to_string(),
    }
}

/// An item as it travels, or as one that stays.
fn pack<T: Serialize>(item: Item<T>) -> Result<Vec<u8>, Item<T>> {
    match item {
        Item::Packed(item) => Ok(item),
        Item::Stays(value) => Err(Item::Stays(value)),
        Item::Here(value) => match postcard::to_allocvec(&value) {
            Ok(item) if item.len() <= LONGEST_LENT => Ok(item),
            _ => Err(Item::Stays(value)),
        },
    }
}

impl<T: Serialize + Send, R: Send> Lender for Board<T, R> {
    fn lend(&self, to: ProcessId, want: usize, size: u32) -> Vec<(u64, Vec<u8>)> {
        let mut state = self.state();
        if state.gone.contains(&to) {
            return Vec::new();
        }
        // A share of what is left, so that all end at about the same time; from the end that our own threads come to last.
        let share = state.waiting.len().div_ceil(2 * size as usize);
        let mut lent = Vec::new();
        let mut bytes = 0;
        for _ in 0..want.min(share) {
            let Some((index, item)) = state.waiting.pop_back() else {
                break;
            };
            let item = match pack(item) {
                Ok(item) => item,
                Err(stays) => {
                    state.waiting.push_front((index, stays));
                    continue;
                }
            };
            bytes += item.len();
            if bytes > PORTION_BYTES && !lent.is_empty() {
                state.waiting.push_back((index, Item::Packed(item)));
                break;
            }
            let index = index as u64;
            let copy = item.clone();
            state.given.insert(index, Given { to, item });
            lent.push((index, copy));
        }
        lent
    }

    fn deliver(&self, from: Rank, index: u64, result: Result<Vec<u8>, NoResult>) {
        let Ok(index) = usize::try_from(index) else {
            return;
        };
        let result = match result {
            Ok(bytes) => Arrived::Packed(bytes),
            Err(NoResult::Panicked(message)) => Arrived::Failed(PoolError::Panicked {
                index,
                rank: from,
                message,
            }),
            Err(NoResult::TooLong { bytes, limit }) => Arrived::Failed(PoolError::TooLong {
                index,
                rank: from,
                bytes,
                limit,
            }),
        };
        self.finish(index, from, result);
    }

    fn is_finished(&self) -> bool {
        self.left() == 0
    }

    fn counts(&self) -> Counts {
        let state = self.state();
        let report = &state.report;
        Counts {
            items: report.by_rank.values().map(|count| *count as u64).sum(),
            reruns: report.rerun as u64,
            dropped: report.dropped as u64,
            helped: report.helped as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Board, Lender as _, Work};
    use mizzen_core::{Departure, Gone, Incarnation, ProcessId, Rank};

    #[test]
    fn what_the_dead_had_is_counted_as_run_again() {
        crate::local(1, |deck| {
            let board: Board<u64, u64> = Board::new(0..100, deck.process.clone());
            let other = ProcessId::new(Rank(1), Incarnation(0));
            let lent = board.lend(other, 10, 2).len();
            assert!(lent > 0);
            assert_eq!(
                board.tally().ranks_at_work,
                1,
                "only the other one has begun"
            );
            assert_eq!(board.lose(Gone::new(other, Departure::Died)), lent);
            assert_eq!(board.counts().reruns, lent as u64);
            assert_eq!(board.tally().ranks_at_work, 0);
            Ok(())
        })
        .unwrap();
    }

    #[test]
    fn the_calling_thread_is_called_once_when_little_is_left() {
        crate::local(1, |deck| {
            let board: Board<u64, u64> = Board::new(0..4, deck.process.clone());
            let take_one = || {
                assert!(matches!(board.next(), Work::Own(..)));
                std::mem::take(&mut board.state().urgent)
            };
            board.state().low = 3;
            assert!(!take_one(), "three are left");
            assert!(take_one(), "two are fewer than three");
            assert!(!take_one(), "it knows");
            Ok(())
        })
        .unwrap();
    }
}
