//! What a worker does.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::Duration;

use super::crew::{Crew, Parked};
use super::source::{Source, Worker};
use crate::blocking::{Place, set_place};
use crate::progress::{Progress, Then};
use crate::wait::{Crowd, Patience, Step, spin};

/// A parked worker that is not needed ends after this long.
const IDLE_END: Duration = Duration::from_secs(5);

/// A worker's own state.
pub(crate) struct Seat {
    crew: Arc<Crew>,
    progress: Arc<dyn Progress>,
    parked: Arc<Parked>,
    /// Whether it is the one that looks for what comes.
    watches: Cell<bool>,
    /// Whether it is blocked, and another has its place.
    away: Cell<bool>,
    /// Whether it said that it looks at the networks all the time.
    polls: Cell<bool>,
    sources: RefCell<Vec<Arc<dyn Source>>>,
    version: Cell<u64>,
    next_source: Cell<usize>,
}

thread_local! {
    static SEAT: RefCell<Option<std::rc::Rc<Seat>>> = const { RefCell::new(None) };
}

/// The state of the calling thread, if it is a worker.
pub(crate) fn with_seat<T>(use_it: impl FnOnce(Option<&Seat>) -> T) -> T {
    let seat = SEAT.with_borrow(Clone::clone);
    use_it(seat.as_deref())
}

/// What comes next takes long: if the calling thread is a worker, another shall watch.
pub fn step_aside() {
    with_seat(|seat| seat.into_iter().for_each(Worker::step_aside));
}

impl Worker for Seat {
    fn step_aside(&self) {
        if self.watches.replace(false) {
            self.stop_polling();
            self.crew.stop_watching();
        } else if !self.crew.is_watched() {
            // It found its work before anybody had begun to watch.
            self.crew.call_somebody();
        }
    }

    fn progress(&self) -> &dyn Progress {
        &*self.progress
    }
}

impl Place for Seat {
    fn leave(&self) -> bool {
        if self.away.replace(true) {
            return false;
        }
        self.step_aside();
        self.crew.give_place();
        true
    }

    fn come_back(&self) {
        self.crew.take_place();
        self.away.set(false);
    }
}

impl Seat {
    /// Starts a worker.
    pub(super) fn start(crew: &Arc<Crew>, progress: Arc<dyn Progress>) -> std::io::Result<()> {
        let crew = Arc::clone(crew);
        std::thread::Builder::new()
            .name("mizzen-worker".into())
            .spawn(move || {
                let seat = std::rc::Rc::new(Self {
                    crew,
                    progress,
                    parked: Parked::new(),
                    watches: Cell::new(false),
                    away: Cell::new(false),
                    polls: Cell::new(false),
                    sources: RefCell::default(),
                    version: Cell::new(0),
                    next_source: Cell::new(0),
                });
                SEAT.set(Some(std::rc::Rc::clone(&seat)));
                set_place(Some(std::rc::Rc::clone(&seat) as _));
                seat.work();
                SEAT.set(None);
                set_place(None);
            })
            .map(drop)
    }

    pub(crate) fn crew(&self) -> &Arc<Crew> {
        &self.crew
    }

    fn start_polling(&self) {
        if !self.polls.replace(true) {
            self.progress.add_poller();
        }
    }

    fn stop_polling(&self) {
        if self.polls.replace(false) {
            self.progress.remove_poller(Then::Sleeps);
        }
    }

    fn work(&self) {
        let crowd = Crowd::default();
        while !self.crew.is_stopped() {
            if self.crew.has_surplus() {
                if !self.park() {
                    return;
                }
                continue;
            }
            if self.look() {
                continue;
            }
            if let Some(task) = self.crew.next_task() {
                task.run();
                continue;
            }
            if self.crew.start_watching() {
                self.watches.set(true);
                self.watch(&crowd);
                self.step_aside();
            } else if !self.park() {
                return;
            }
        }
    }

    /// Looks at everything until there was something.
    fn watch(&self, crowd: &Crowd) {
        let mut patience = Patience::until(None, crowd);
        while !self.crew.is_stopped() && !self.crew.has_surplus() {
            if let Some(task) = self.crew.next_task() {
                self.step_aside();
                task.run();
                return;
            }
            if self.look() {
                if !self.watches.get() {
                    return;
                }
                patience = Patience::until(None, crowd);
                continue;
            }
            spin(patience.quick_looks(), || self.is_likely());
            match patience.step() {
                Step::Sleep(nap) => {
                    self.stop_polling();
                    self.sleep(nap);
                }
                Step::Again | Step::Expired(_) => self.start_polling(),
            }
        }
    }

    /// Looks once at each source until one had something, beginning with another one each time.
    fn look(&self) -> bool {
        if self.version.get() != self.crew.sources_version() {
            let (version, sources) = self.crew.sources();
            *self.sources.borrow_mut() = sources;
            self.version.set(version);
        }
        let sources = self.sources.borrow();
        let count = sources.len();
        let first = self.next_source.get();
        (0..count).any(|turn| {
            let index = (first + turn) % count;
            let found = sources[index].look(self);
            if found {
                self.next_source.set(index);
            }
            found
        })
    }

    /// Whether the source of the last work has more, as far as a quick look tells; or there is a task.
    #[inline]
    fn is_likely(&self) -> bool {
        let sources = self.sources.borrow();
        sources
            .get(self.next_source.get())
            .is_some_and(|source| source.is_likely())
            || self.crew.has_tasks()
    }

    fn sleep(&self, nap: Duration) {
        let sources = self.sources.borrow().clone();
        self.crew.bells.doze(
            nap,
            |bell| {
                self.crew.set_asleep(Some(bell));
                for source in &sources {
                    source.watch(bell);
                }
            },
            || {
                self.crew.has_tasks()
                    || self.crew.is_stopped()
                    || self.crew.has_surplus()
                    || self.version.get() != self.crew.sources_version()
                    || sources.iter().any(|source| source.is_ready())
            },
            || {
                self.crew.set_asleep(None);
                for source in &sources {
                    source.unwatch();
                }
            },
        );
    }

    /// Waits until it is called. `false`: it was not needed for long, and ends.
    fn park(&self) -> bool {
        self.step_aside();
        // What has ended is not to be held while it waits.
        self.sources.take();
        self.version.set(0);
        self.crew.park(&self.parked);
        // What came after the last look is seen to by the watcher; if there is none, by whom it calls.
        self.crew.call_somebody();
        loop {
            if self.parked.was_called() {
                return true;
            }
            std::thread::park_timeout(IDLE_END);
            if !self.parked.is_called() && self.crew.unpark_to_end(&self.parked) {
                self.crew.end_thread();
                return false;
            }
        }
    }
}
