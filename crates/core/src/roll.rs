//! The threads of this OS process that wait: for what, for whom, since when, called from where.
//!
//! A wait is noted when it has lasted for a quarter of a second, by its own thread, which wakes up several times a second in any
//! case. Shorter ones cost a look at the clock, which the thread has in its hand already. One table for all: a process joins one
//! job, and what others of a local job wait for is nobody's question.
//!
//! When a wait has lasted for longer than the user said, the agent is told; that it may come to ask all for their waits is
//! `host/keeper.rs`.

use core::cell::Cell;
use core::num::NonZero;
use core::panic::Location;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

pub use mizzen_proto::rollcall::{Kind, Operation};
use mizzen_proto::rollcall::{MAX_WHOM, Place, Wait};

use crate::caller;
use crate::lock::lock;
use crate::rank::Rank;

/// The name of threads that carry out calls and tasks.
pub(crate) const WORKER_NAME: &str = "mizzen-worker";

static ROLL: Mutex<Roll> = Mutex::new(Roll {
    last: 0,
    waits: BTreeMap::new(),
    teller: None,
});
/// After how many milliseconds a wait is told; 0: never.
static OVERDUE: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// The wait of this thread that was noted last.
    static MINE: Cell<u64> = const { Cell::new(0) };
}

struct Roll {
    last: u64,
    waits: BTreeMap<u64, Entry>,
    teller: Option<Weak<dyn Teller>>,
}

struct Entry {
    what: WaitsFor,
    at: Option<&'static Location<'static>>,
    since: Instant,
    thread: String,
    serves: bool,
    /// When it is told, if it lasts as long.
    overdue: Option<Duration>,
}

/// What a thread waits for.
#[derive(Clone, Debug)]
pub struct WaitsFor {
    /// The kind of it.
    pub kind: Kind,
    /// In words, after "waits".
    pub what: String,
    /// The ranks that can end it; none: anybody, or it is not known.
    pub whom: Vec<Rank>,
    /// Called from where, if no call around it is known.
    pub at: Option<&'static Location<'static>>,
    /// In which operation of a group.
    pub operation: Option<Operation>,
}

impl WaitsFor {
    /// For something of one rank.
    pub fn one(kind: Kind, whom: Rank, what: impl Into<String>) -> Self {
        Self::some(kind, vec![whom], what)
    }

    /// For something of one of some ranks; of none in particular, if there are none.
    pub fn some(kind: Kind, whom: Vec<Rank>, what: impl Into<String>) -> Self {
        Self {
            kind,
            what: what.into(),
            whom,
            at: None,
            operation: None,
        }
    }

    /// Called from there.
    #[must_use]
    pub fn called_from(mut self, at: &'static Location<'static>) -> Self {
        self.at = Some(at);
        self
    }
}

/// Who tells the agent of this process that a thread has waited for long.
pub(crate) trait Teller: Send + Sync {
    fn tell_overdue(&self, waited: Duration);
}

/// Has waits told that last for longer than `overdue`; if that is not said, none.
pub(crate) fn tell(teller: &Arc<dyn Teller>, overdue: Option<Duration>) {
    let millis = overdue.map_or(0, |overdue| overdue.as_millis());
    OVERDUE.store(u64::try_from(millis).unwrap_or(u64::MAX), Ordering::Relaxed);
    lock(&ROLL).teller = Some(Arc::downgrade(teller));
}

/// All waits of this process, the longest first, at most so many; and how many there are.
pub(crate) fn call(most: usize) -> (Vec<Wait>, usize) {
    let roll = lock(&ROLL);
    let mut waits: Vec<&Entry> = roll.waits.values().collect();
    waits.sort_by_key(|entry| entry.since);
    let told = waits.iter().take(most).map(|entry| entry.told()).collect();
    (told, waits.len())
}

/// Notes what the calling thread waits for, unless that was done, here by `known` or by a wait around this one; and has it told if it
/// is overdue. Returns the number of the note, if it is of this wait.
#[cold]
pub(crate) fn note(
    known: Option<NonZero<u64>>,
    waited: Duration,
    what: impl FnOnce() -> WaitsFor,
) -> Option<NonZero<u64>> {
    // It may look at things that have locks of their own.
    let what = (known.is_none() && !is_noted()).then(what);
    let mut roll = lock(&ROLL);
    let number = match what {
        Some(what) => Some(roll.add(what, waited)),
        None => known,
    };
    // A wait inside of one that is noted keeps that one.
    let kept = number.map_or(MINE.get(), NonZero::get);
    if let Some(waited) = roll.overdue(kept) {
        let teller = roll.teller.clone();
        drop(roll);
        if let Some(teller) = teller.and_then(|teller| teller.upgrade()) {
            teller.tell_overdue(waited);
        }
    }
    number
}

/// A wait is over.
#[cold]
pub(crate) fn forget(number: NonZero<u64>) {
    lock(&ROLL).waits.remove(&number.get());
}

/// Whether the calling thread has a wait that is noted.
fn is_noted() -> bool {
    let mine = MINE.get();
    mine > 0 && lock(&ROLL).waits.contains_key(&mine)
}

impl Roll {
    fn add(&mut self, what: WaitsFor, waited: Duration) -> NonZero<u64> {
        self.last += 1;
        MINE.set(self.last);
        let thread = std::thread::current();
        let now = Instant::now();
        let overdue = match OVERDUE.load(Ordering::Relaxed) {
            0 => None,
            millis => Some(Duration::from_millis(millis)),
        };
        let entry = Entry {
            at: caller::current().or(what.at),
            what,
            since: now.checked_sub(waited).unwrap_or(now),
            thread: thread.name().unwrap_or("a thread without a name").into(),
            serves: thread.name() == Some(WORKER_NAME),
            overdue,
        };
        self.waits.insert(self.last, entry);
        NonZero::new(self.last).unwrap_or(NonZero::<u64>::MIN)
    }

    /// How long a wait has lasted, if that is to be told: then, and when it has lasted for twice as long.
    fn overdue(&mut self, number: u64) -> Option<Duration> {
        let entry = self.waits.get_mut(&number)?;
        let waited = entry.since.elapsed();
        if entry.overdue.is_none_or(|overdue| waited < overdue) {
            return None;
        }
        entry.overdue = Some(waited * 2);
        Some(waited)
    }
}

impl Entry {
    fn told(&self) -> Wait {
        let WaitsFor {
            kind,
            what,
            whom,
            operation,
            ..
        } = &self.what;
        let place = |at: &Location<'_>| Place {
            file: at.file().to_owned(),
            line: at.line(),
        };
        Wait {
            kind: *kind,
            what: what.clone(),
            whom: whom.iter().take(MAX_WHOM).map(|rank| rank.0).collect(),
            at: self.at.map(place),
            millis: u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX),
            thread: self.thread.clone(),
            serves: self.serves,
            operation: operation.clone(),
        }
    }
}
