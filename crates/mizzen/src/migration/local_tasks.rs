//! The tasks that are here: steps, departures, arrivals.

use std::any::Any;
use std::collections::{HashMap, HashSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;

use super::error::RemoteTaskError;
use super::home::{Home, RemoteTask};
use super::kind::{Migrate, Step};
use super::wire::{Packed, TaskId, TaskMessage};
use tracing::{debug, trace};

use crate::deck::{Deck, Kept, WeakDeck};
use crate::rpc::{Client, Service};
use mizzen_core::service::{
    Pace, block_in_place, decode, lock, lock_patiently, panic_message, step_aside, try_lock,
};
use mizzen_core::{Error, Gone, Incarnation, ProcessId, Rank};

/// How long to wait for a process that does not answer to its name.
const PATIENCE: Duration = Duration::from_millis(20);
/// How long nothing is sent to a process that could not be reached.
const AVOIDED: Duration = Duration::from_millis(50);

/// How often a process that has too many tasks asks others whether they have free workers, and how many of them.
const ASK_EVERY: Duration = Duration::from_millis(1);
const ASKED_AT_ONCE: u32 = 8;

/// Where tasks of a kind run in this process; from the first use on.
pub(super) fn of<T: Migrate>(deck: &Deck) -> Result<Arc<LocalTasks<T>>, Error> {
    let open = deck.keep(|deck| {
        let (local_tasks, service) = LocalTasks::<T>::open(deck)?;
        let service = Mutex::new(Some(service));
        Ok(Open {
            local_tasks,
            service,
        })
    })?;
    Ok(Arc::clone(&open.local_tasks))
}

/// The tasks of one kind that are here, and the service that others send tasks to.
struct Open<T: Migrate> {
    local_tasks: Arc<LocalTasks<T>>,
    service: Mutex<Option<Service>>,
}

impl<T: Migrate> Kept for Open<T> {
    fn close(&self) {
        drop(lock(&self.service).take());
        self.local_tasks.close();
    }

    fn as_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

/// Where tasks of one kind run in this process.
pub(super) struct LocalTasks<T: Migrate> {
    deck: WeakDeck,
    me: ProcessId,
    size: u32,
    workers: usize,
    /// How long tasks stay here.
    pace: Pace,
    home: Home<T::Output>,
    /// Tasks that are here: run, or wait to be.
    count: AtomicUsize,
    /// Processes with free workers.
    idle: Mutex<VecDeque<Rank>>,
    has_idle: AtomicUsize,
    asking: Mutex<Asking>,
    ways: Mutex<HashMap<Rank, Arc<Mutex<Way>>>>,
    /// Homes that died, at most one for each life of a process, and their number.
    dead: Mutex<HashSet<ProcessId>>,
    deaths: AtomicUsize,
}

/// Who was asked last whether it has free workers, and when.
#[derive(Default)]
struct Asking {
    last: Option<Instant>,
    next: u32,
}

/// The way to the tasks of another process.
enum Way {
    Unknown,
    Open(Box<Client<TaskMessage, ()>>),
    Avoided(Instant),
}

/// A task that is here.
struct Resident<T> {
    task: T,
    packed: Packed,
}

impl<T: Migrate> LocalTasks<T> {
    /// Opens it; the service is what others send tasks to.
    fn open(deck: &Deck) -> Result<(Arc<Self>, Service), Error> {
        let local_tasks = Arc::new(Self {
            deck: deck.downgrade(),
            me: deck.process.id(),
            size: deck.size(),
            workers: mizzen_core::service::worker_count(),
            pace: Pace::new(),
            home: Home::new(),
            count: AtomicUsize::new(0),
            idle: Mutex::default(),
            has_idle: AtomicUsize::new(0),
            asking: Mutex::default(),
            ways: Mutex::default(),
            dead: Mutex::default(),
            deaths: AtomicUsize::new(0),
        });
        let (handles, hears) = (Arc::clone(&local_tasks), Arc::clone(&local_tasks));
        let service = Service::of_all(
            &deck.process,
            &name::<T>(),
            move |message| handles.handle(message),
            move |gone| hears.lose(gone),
        )?;
        Ok((local_tasks, service))
    }

    pub(super) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Starts a task whose home is here.
    pub(super) fn launch(
        self: &Arc<Self>,
        rank: Rank,
        task: T,
    ) -> Result<RemoteTask<T::Output>, Error> {
        let state = postcard::to_allocvec(&task).map_err(encoding::<T>)?;
        let (packed, remote) = self.home.begin(self.me, state);
        let resident = Resident { task, packed };
        self.count.fetch_add(1, Ordering::Relaxed);
        let resident = if rank == self.me.rank {
            Some(resident)
        } else {
            self.send(resident, rank)
        };
        if let Some(resident) = resident {
            self.go_on_later(resident);
        }
        Ok(remote)
    }

    /// What came from another process.
    fn handle(self: &Arc<Self>, message: TaskMessage) {
        match message {
            TaskMessage::Task(packed) => {
                // Tasks have a pace of their own: most of what else comes here is quick.
                if self.pace.is_slow() {
                    step_aside();
                }
                self.count.fetch_add(1, Ordering::Relaxed);
                self.pace.time(|| self.resume(packed));
            }
            // A task of an earlier life of this rank: nobody waits for it any more.
            TaskMessage::Left { task, .. } if task.id.home() != self.me => (),
            TaskMessage::Ended { id, .. } if id.home() != self.me => (),
            TaskMessage::Left { task, to } => {
                let to = ProcessId::new(Rank(to.0), Incarnation(to.1));
                if let Some(again) = self.home.note_left(self.me, task, to) {
                    self.start_again(again);
                }
            }
            TaskMessage::Ended { id, rank, outcome } => {
                let outcome = outcome.as_ref().map(|bytes| &bytes[..]);
                self.end_here(id, Rank(rank), outcome.map_err(Clone::clone));
            }
            TaskMessage::Busy { rank } => {
                if self.count() < self.workers {
                    let rank_here = self.me.rank.0;
                    let _ = self.post(Rank(rank), &TaskMessage::Idle { rank: rank_here });
                }
            }
            TaskMessage::Idle { rank } => {
                let mut idle = lock(&self.idle);
                if !idle.contains(&Rank(rank)) {
                    idle.push_back(Rank(rank));
                    self.has_idle.store(idle.len(), Ordering::Release);
                }
            }
        }
    }

    /// A packed task goes on here, in this thread.
    fn resume(self: &Arc<Self>, packed: Packed) {
        match self.decode(&packed.state) {
            Ok(task) => self.run(Resident { task, packed }),
            Err(error) => {
                let message = format!("its state cannot be read there: {error}");
                self.end(&packed, Err(message));
            }
        }
    }

    /// A task of a process that was lost goes on here.
    fn start_again(self: &Arc<Self>, packed: Packed) {
        debug!(task = T::NAME, rank = %self.me, "task of a lost rank goes on here");
        self.count.fetch_add(1, Ordering::Relaxed);
        let local_tasks = Arc::clone(self);
        if let Some(deck) = self.deck.upgrade() {
            drop(deck.spawn(move || local_tasks.resume(packed)));
        }
    }

    fn go_on_later(self: &Arc<Self>, resident: Resident<T>) {
        let local_tasks = Arc::clone(self);
        if let Some(deck) = self.deck.upgrade() {
            drop(deck.spawn(move || local_tasks.run(resident)));
        }
    }

    /// Makes steps until the task ends or goes elsewhere.
    fn run(self: &Arc<Self>, mut resident: Resident<T>) {
        let Some(deck) = self.deck.upgrade() else {
            return;
        };
        let mut deaths = 0;
        loop {
            if self.is_orphan(&resident, &mut deaths) {
                return self.one_less();
            }
            if let Some(rank) = self.somebody_idle() {
                match self.send(resident, rank) {
                    None => return,
                    Some(back) => resident = back,
                }
            }
            let step = catch_unwind(AssertUnwindSafe(|| resident.task.step(&deck)));
            match step {
                Ok(Step::Again) => (),
                Ok(Step::Move(rank)) if rank == self.me.rank => (),
                Ok(Step::Move(rank)) => match self.send(resident, rank) {
                    None => return,
                    Some(back) => resident = back,
                },
                Ok(Step::Done(output)) => {
                    let outcome = postcard::to_allocvec(&output);
                    let outcome =
                        outcome.map_err(|error| format!("its result cannot be sent: {error}"));
                    return self.end(&resident.packed, outcome);
                }
                Err(panic) => return self.end(&resident.packed, Err(panic_message(&*panic))),
            }
        }
    }

    /// Whether the home of a task died: nobody waits for its result. `deaths` is how many of them its last look saw.
    #[inline]
    fn is_orphan(&self, resident: &Resident<T>, deaths: &mut usize) -> bool {
        let now = self.deaths.load(Ordering::Acquire);
        if now == *deaths {
            return false;
        }
        *deaths = now;
        lock(&self.dead).contains(&resident.packed.id.home())
    }

    /// A process that has a free worker, if we have more tasks than workers.
    #[inline]
    fn somebody_idle(&self) -> Option<Rank> {
        if self.count() <= self.workers {
            return None;
        }
        if self.has_idle.load(Ordering::Acquire) == 0 {
            self.ask_who_is_idle();
            return None;
        }
        let mut idle = lock(&self.idle);
        let rank = idle.pop_front();
        self.has_idle.store(idle.len(), Ordering::Release);
        rank
    }

    /// Sends a task to another process, and tells its home. If it cannot go, it is returned.
    fn send(self: &Arc<Self>, mut resident: Resident<T>, rank: Rank) -> Option<Resident<T>> {
        let mut state = core::mem::take(&mut resident.packed.state).into_vec();
        state.clear();
        match postcard::to_extend(&resident.task, state) {
            Ok(state) => resident.packed.state = state.into(),
            // It stays; if it ends, its result may be sent.
            Err(_) => return Some(resident),
        }
        resident.packed.moves += 1;
        let message = TaskMessage::Task(resident.packed);
        let to = self.post(rank, &message);
        let TaskMessage::Task(packed) = message else {
            return None;
        };
        let Some(to) = to else {
            let task = resident.task;
            return Some(Resident { task, packed });
        };
        trace!(task = T::NAME, moves = packed.moves, %to, from = %self.me, "task moved");
        self.tell_home(packed, to);
        self.one_less();
        None
    }

    fn tell_home(self: &Arc<Self>, task: Packed, to: ProcessId) {
        let home = task.id.home();
        if home == self.me {
            if let Some(again) = self.home.note_left(self.me, task, to) {
                self.start_again(again);
            }
            return;
        }
        let to = (to.rank.0, to.incarnation.0);
        self.post_surely(home, &TaskMessage::Left { task, to });
    }

    fn end(self: &Arc<Self>, packed: &Packed, outcome: Result<Vec<u8>, String>) {
        let (id, rank) = (packed.id, self.me.rank);
        if id.home() == self.me {
            self.end_here(id, rank, outcome.as_deref().map_err(Clone::clone));
        } else {
            let ended = TaskMessage::Ended {
                id,
                rank: rank.0,
                outcome: outcome.map(Into::into),
            };
            self.post_surely(id.home(), &ended);
        }
        self.one_less();
    }

    /// A task of which this is the home has ended.
    fn end_here(&self, id: TaskId, rank: Rank, outcome: Result<&[u8], String>) {
        let outcome = match outcome {
            Ok(bytes) => self
                .decode(bytes)
                .map_err(|cause| RemoteTaskError::Encoding {
                    task: T::NAME,
                    cause,
                }),
            Err(message) => Err(RemoteTaskError::Panicked {
                task: T::NAME,
                rank,
                message,
            }),
        };
        self.home.end(id, outcome);
    }

    /// A value that came here.
    fn decode<V: DeserializeOwned>(&self, bytes: &[u8]) -> Result<V, String> {
        let deck = self.deck.upgrade().ok_or("the process has left its job")?;
        decode(&deck.process, bytes).map_err(|error| error.to_string())
    }

    /// A task has ended, or went elsewhere.
    fn one_less(&self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }

    /// Asks some of the others, now and then, whether they have free workers.
    #[cold]
    fn ask_who_is_idle(&self) {
        let Some(mut asking) = try_lock(&self.asking) else {
            return;
        };
        if asking.last.is_some_and(|last| last.elapsed() < ASK_EVERY) {
            return;
        }
        asking.last = Some(Instant::now());
        let busy = TaskMessage::Busy {
            rank: self.me.rank.0,
        };
        for _ in 0..ASKED_AT_ONCE.min(self.size - 1) {
            asking.next = (asking.next + 1) % self.size;
            if asking.next == self.me.rank.0 {
                asking.next = (asking.next + 1) % self.size;
            }
            let _ = self.post(Rank(asking.next), &busy);
        }
    }

    /// Sends something to another process: which life of it that is. `None` if it is not there.
    fn post(&self, rank: Rank, message: &TaskMessage) -> Option<ProcessId> {
        if rank.0 >= self.size {
            return None;
        }
        let way = Arc::clone(
            lock(&self.ways)
                .entry(rank)
                .or_insert_with(|| Arc::new(Mutex::new(Way::Unknown))),
        );
        let mut way = lock_patiently(&way);
        let client = match core::mem::replace(&mut *way, Way::Unknown) {
            Way::Avoided(until) if Instant::now() < until => {
                *way = Way::Avoided(until);
                return None;
            }
            Way::Open(client) => Some(client),
            Way::Unknown | Way::Avoided(_) => self.find(rank),
        };
        let sent = client.and_then(|mut client| {
            client.notify(message).ok()?;
            let to = client.server()?;
            Some((client, to))
        });
        match sent {
            Some((client, to)) => {
                *way = Way::Open(client);
                Some(to)
            }
            None => {
                *way = Way::Avoided(Instant::now() + AVOIDED);
                None
            }
        }
    }

    /// Sends to a home what it waits for: again and again, unless that life of it is gone.
    fn post_surely(&self, home: ProcessId, message: &TaskMessage) {
        loop {
            let there = self.post(home.rank, message);
            let Some(deck) = self.deck.upgrade() else {
                return;
            };
            if there.is_some() || deck.process.is_life_gone(home) {
                return;
            }
            block_in_place(|| std::thread::sleep(AVOIDED));
        }
    }

    /// Nothing is sent any more.
    fn close(&self) {
        lock(&self.ways).clear();
    }

    #[cold]
    fn find(&self, rank: Rank) -> Option<Box<Client<TaskMessage, ()>>> {
        let mut client = self.deck.upgrade()?.client_at(rank, &name::<T>()).ok()?;
        client.set_timeout(PATIENCE);
        Some(Box::new(client))
    }

    /// A process is gone: tasks that it had go on here, and tasks of which it was the home end, unless it left in order.
    fn lose(self: &Arc<Self>, gone: Gone) {
        lock(&self.ways).remove(&gone.rank());
        if gone.is_failure() && lock(&self.dead).insert(gone.process()) {
            self.deaths.fetch_add(1, Ordering::Release);
        }
        for task in self.home.lose(self.me, gone.process()) {
            self.start_again(task);
        }
    }
}

/// The name of the service.
fn name<T: Migrate>() -> String {
    format!("mobile {}", T::NAME)
}

fn encoding<T: Migrate>(error: postcard::Error) -> RemoteTaskError {
    RemoteTaskError::Encoding {
        task: T::NAME,
        cause: error.to_string(),
    }
}
