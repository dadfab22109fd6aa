//! A whole job inside one OS process: ranks are threads, so that a parallel program can be tested under `cargo test`.

use std::net::{IpAddr, Ipv4Addr};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::slice;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, Weak};
use std::time::{Duration, Instant};

use mizzen_identity::{Authority, Credentials, Identity};
use mizzen_proto::boot::Network;
use mizzen_proto::membership::HostId;
use mizzen_proto::registry::Question;
use mizzen_proto::session::{ByteOrder, MemoryForm};

use crate::desk::{Answers, Desk};
use crate::endpoint::Endpoint;
use crate::error::{Departure, Error, Gone, JoinError, ReachError, Result};
use crate::memory::Memory;
use crate::names::NobodyKeeps;
use crate::net::{Control, Place, attach};
use crate::peers::Path;
use crate::process::{Neighbours, Process};
use crate::rank::{ChannelId, Incarnation, ProcessId, Rank};
use crate::threads::Ours;
use crate::together::link_together;

/// Runs a job of `size` ranks as threads of this process and returns what each rank returned.
///
/// The ranks share nothing but what `body` captures; they communicate as processes of one host would. If a rank fails or
/// panics, the others are told as if its process had died, and its failure is the result.
///
/// ```
/// let squares = mizzen::local(4, |deck| Ok(deck.rank().0 * deck.rank().0))?;
/// assert_eq!(squares, [0, 1, 4, 9]);
/// # Ok::<(), mizzen::Error>(())
/// ```
///
/// # Errors
///
/// The error of the rank that failed first.
///
/// # Panics
///
/// If a rank panics, or if `size` is 0.
pub fn local<T: Send>(size: u32, body: impl Fn(Endpoint) -> Result<T> + Sync) -> Result<Vec<T>> {
    assert!(size > 0, "a job has at least one rank");
    crate::log::show_if_asked();
    let universe = Arc::new(Universe {
        places: RwLock::default(),
        desk: Desk::new(size),
    });
    let mut decks = Vec::new();
    for rank in 0..size {
        let id = ProcessId::new(Rank(rank), Incarnation(0));
        let neighbours = Box::new(Local(Arc::clone(&universe)));
        let process = Process::new(id, size, "local".into(), Memory::Heap, neighbours)
            .map_err(JoinError::Memory)?;
        universe
            .places
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .push(Arc::downgrade(&process));
        decks.push(Endpoint::new(process));
    }
    run_ranks(decks, body, |gone| universe.tell_all(gone))
}

/// As [`local`], but ranks reach each other through TCP on the loopback interface only: for tests of the network path.
///
/// # Errors
///
/// As [`local`], or if the system refuses sockets.
///
/// # Panics
///
/// As [`local`].
#[doc(hidden)]
pub fn local_over_tcp<T: Send>(
    size: u32,
    body: impl Fn(Endpoint) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    over_tcp(size, Network::plain(), |_| MemoryForm::NATIVE, body)
}

/// As [`local_over_tcp`], over a network that is trusted: nothing is sealed. For who counts what a message costs.
///
/// # Errors
///
/// As [`local_over_tcp`].
///
/// # Panics
///
/// As [`local`].
#[doc(hidden)]
pub fn local_trusted<T: Send>(
    size: u32,
    body: impl Fn(Endpoint) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let network = Network {
        trusted: true,
        ..Network::plain()
    };
    over_tcp(size, network, |_| MemoryForm::NATIVE, body)
}

/// As [`local_over_tcp`], but ranks with an odd number say that the bytes of their numbers lie in the other order: for tests of hosts
/// that are unlike. What such a rank has in its memory is for the test to say.
///
/// # Errors
///
/// As [`local_over_tcp`].
///
/// # Panics
///
/// As [`local`].
#[doc(hidden)]
pub fn local_unlike<T: Send>(
    size: u32,
    body: impl Fn(Endpoint) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let ours = MemoryForm::NATIVE;
    let other = MemoryForm {
        byte_order: match ours.byte_order {
            ByteOrder::Little => ByteOrder::Big,
            ByteOrder::Big => ByteOrder::Little,
        },
        ..ours
    };
    let form_of = |rank| if rank % 2 == 0 { ours } else { other };
    over_tcp(size, Network::plain(), form_of, body)
}

fn over_tcp<T: Send>(
    size: u32,
    network: Network,
    form_of: impl Fn(u32) -> MemoryForm,
    body: impl Fn(Endpoint) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    assert!(size > 0, "a job has at least one rank");
    crate::log::show_if_asked();
    let ranks = Arc::new(Ranks {
        listeners: OnceLock::new(),
        desk: Desk::new(size),
    });
    let authority = Authority::new(CLUSTER, JOB).map_err(no_identity)?;
    let (mut decks, mut places, mut all) = (Vec::new(), Vec::new(), Vec::new());
    for rank in 0..size {
        let id = ProcessId::new(Rank(rank), Incarnation(0));
        let neighbours = Box::new(Networked(Arc::clone(&ranks)));
        let process = Process::new(id, size, "local".into(), Memory::Heap, neighbours)
            .map_err(JoinError::Memory)?;
        let place = Arc::downgrade(&process);
        let control: Weak<dyn Control> = place.clone();
        let credentials = credentials_of(&authority, id)?;
        let at = Place {
            address: Some(IpAddr::from(Ipv4Addr::LOCALHOST)),
            networks: slice::from_ref(&network),
            host: HostId(rank),
            spans: &[],
            others: &[],
            channels: &[],
            form: form_of(rank),
        };
        let networks = attach(&control, id, &credentials, &at)?;
        all.push(Listener {
            place: place.clone(),
            locator: networks.locator(),
            has_left: AtomicBool::new(false),
        });
        let _ = process.networks.set(networks);
        places.push(place);
        decks.push(Endpoint::new(process));
    }
    let _ = ranks.listeners.set(all);
    run_ranks(decks, body, |gone| {
        ranks.deliver(ranks.desk.end(gone.process(), gone.how()));
        for place in places.iter().filter_map(Weak::upgrade) {
            if place.id != gone.process() {
                place.fail(gone);
            } else if let Some(networks) = place.networks.get() {
                // Something of the failed rank lives on; as a dead process it would not.
                networks.leave(&*place, gone.how());
            }
        }
    })
}

/// What a launcher and an agent would give a process.
fn credentials_of(authority: &Authority, id: ProcessId) -> Result<Credentials, JoinError> {
    let who = Identity::new(CLUSTER, JOB, id.rank.0, id.incarnation.0);
    let who = who.map_err(no_identity)?;
    authority.credentials(&who).map_err(no_identity)
}

fn no_identity(error: impl core::fmt::Display) -> JoinError {
    JoinError::Agent(error.to_string())
}

const CLUSTER: &str = "local";
const JOB: [u8; 16] = [0; 16];

/// Runs each rank in a thread. A rank that fails is told to the others with `tell`.
fn run_ranks<T: Send>(
    decks: Vec<Endpoint>,
    body: impl Fn(Endpoint) -> Result<T> + Sync,
    tell: impl Fn(Gone) + Sync,
) -> Result<Vec<T>> {
    let first = Mutex::new(None);
    let run = |deck: Endpoint| {
        let id = deck.id();
        let failure = match catch_unwind(AssertUnwindSafe(|| body(deck))) {
            Ok(Ok(value)) => return Some(value),
            Ok(Err(error)) => Failure::Error(error),
            Err(panic) => Failure::Panic(panic),
        };
        first
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_or_insert(failure);
        tell(Gone::new(id, Departure::Died));
        None
    };
    // This thread only waits for the ranks.
    let ours = Ours::enter();
    let results: Vec<Option<T>> = std::thread::scope(|threads| {
        let ranks: Vec<_> = decks
            .into_iter()
            .map(|deck| threads.spawn(|| run(deck)))
            .collect();
        ranks
            .into_iter()
            .map(|rank| rank.join().unwrap_or_else(|panic| resume_unwind(panic)))
            .collect()
    });
    drop(ours);
    match first.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(Failure::Panic(panic)) => resume_unwind(panic),
        Some(Failure::Error(error)) => Err(error),
        None => Ok(results.into_iter().flatten().collect()),
    }
}

enum Failure {
    Error(Error),
    Panic(Box<dyn std::any::Any + Send>),
}

/// A job whose processes are all in this OS process.
#[derive(Debug)]
struct Universe {
    places: RwLock<Vec<Weak<Process>>>,
    desk: Desk,
}

impl Universe {
    fn place(&self, rank: Rank) -> Option<Arc<Process>> {
        self.places
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(rank.0 as usize)?
            .upgrade()
    }

    fn deliver(&self, answers: Answers) {
        for (to, answer) in answers {
            if let Some(place) = self.place(to.rank) {
                place.handle_answer(answer);
            }
        }
    }

    /// A rank failed: nobody shall wait for it.
    fn tell_all(&self, gone: Gone) {
        self.deliver(self.desk.end(gone.process(), gone.how()));
        let places = self
            .places
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        for place in places.iter().filter_map(Weak::upgrade) {
            if place.id == gone.process() {
                continue;
            }
            if let Some(link) = place.peers.link_to(gone.process()) {
                place.end_link(&link, gone.how());
            }
            place.fail(gone);
        }
    }
}

/// Ranks of the same OS process.
struct Local(Arc<Universe>);

impl Neighbours for Local {
    fn reach(
        &self,
        process: &Arc<Process>,
        _: ChannelId,
        first: ProcessId,
        _: Duration,
    ) -> Result<Path, ReachError> {
        let rank = first.rank;
        let life = ProcessId::new(rank, Incarnation(0));
        let left = || ReachError::Gone(Gone::new(life, Departure::Left));
        let other = self.0.place(rank).ok_or_else(left)?;
        if other.has_left() {
            return Err(left());
        }
        let path = link_together(process, &other);
        // Whoever left before it saw this link does not end it: then it is ended here, or the next one who asks for the way would wait
        // for somebody who is not there.
        if other.has_left() {
            if let Some(link) = process.peers.link_to(life).filter(|_| life != process.id) {
                process.end_link(&link, Departure::Left);
            }
            return Err(left());
        }
        Ok(path)
    }

    fn ask_name(&self, process: &Process, question: Question) -> Result<(), NobodyKeeps> {
        self.0.deliver(self.0.desk.ask(process.id, question));
        Ok(())
    }

    fn leave(&self, me: ProcessId, how: Departure) {
        self.0.deliver(self.0.desk.end(me, how));
        let places = &self.0.places;
        let places = places
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        for other in places.iter().filter_map(Weak::upgrade) {
            if let Some(link) = other.peers.link_to(me).filter(|_| other.id != me) {
                other.end_link(&link, how);
            }
        }
    }

    fn is_launched(&self) -> bool {
        true
    }

    fn longest_lonely_wait(&self) -> Option<Duration> {
        Some(LONELY)
    }

    fn others_are_gone(&self, process: &Process) -> bool {
        process.others().all(|rank| {
            let place = self.0.place(rank);
            place.is_none_or(|other| other.has_left())
        })
    }
}

/// How long a rank of a test waits for a message when all others have returned. The harness has threads of its own, so it is
/// never certain that nobody can send any more.
const LONELY: Duration = Duration::from_secs(20);

/// Ranks of the same OS process that reach each other through a network.
struct Networked(Arc<Ranks>);

struct Ranks {
    listeners: OnceLock<Vec<Listener>>,
    desk: Desk,
}

/// Where a rank listens, until it leaves.
struct Listener {
    place: Weak<Process>,
    locator: String,
    has_left: AtomicBool,
}

impl Ranks {
    fn listener(&self, rank: Rank) -> Option<&Listener> {
        self.listeners.get()?.get(rank.0 as usize)
    }

    fn deliver(&self, answers: Answers) {
        for (to, answer) in answers {
            let listener = self.listener(to.rank);
            if let Some(place) = listener.and_then(|listener| listener.place.upgrade()) {
                place.handle_answer(answer);
            }
        }
    }
}

impl Neighbours for Networked {
    fn reach(
        &self,
        process: &Arc<Process>,
        _: ChannelId,
        first: ProcessId,
        patience: Duration,
    ) -> Result<Path, ReachError> {
        let rank = first.rank;
        if rank == process.id.rank {
            return Ok(link_together(process, process));
        }
        let peer = ProcessId::new(rank, Incarnation(0));
        if let Some(gone) = process.peers.gone(peer) {
            return Err(ReachError::Gone(gone));
        }
        let no_path = || ReachError::NoPath {
            rank,
            cause: "not on the network".into(),
        };
        let listener = self.0.listener(rank).ok_or_else(no_path)?;
        let networks = process.networks.get().ok_or_else(no_path)?;
        let deadline = Instant::now() + patience;
        let link = networks.connect(ChannelId::DEFAULT, peer, &listener.locator, deadline, drop);
        // Who does not answer may have left meanwhile.
        let link = link.map_err(|error| match process.peers.gone(peer) {
            Some(gone) => ReachError::Gone(gone),
            None if listener.has_left.load(Ordering::Acquire) => {
                ReachError::Gone(Gone::new(peer, Departure::Left))
            }
            None => error,
        })?;
        Ok(Path::Net(link))
    }

    fn ask_name(&self, process: &Process, question: Question) -> Result<(), NobodyKeeps> {
        self.0.deliver(self.0.desk.ask(process.id, question));
        Ok(())
    }

    fn leave(&self, me: ProcessId, how: Departure) {
        if let Some(listener) = self.0.listener(me.rank) {
            listener.has_left.store(true, Ordering::Release);
        }
        self.0.deliver(self.0.desk.end(me, how));
    }

    fn is_launched(&self) -> bool {
        true
    }

    fn longest_lonely_wait(&self) -> Option<Duration> {
        Some(LONELY)
    }

    fn others_are_gone(&self, process: &Process) -> bool {
        process.others().all(|rank| {
            let gone = process.peers.last_gone(rank);
            gone.is_some_and(|gone| gone.how() == Departure::Left)
        })
    }
}
