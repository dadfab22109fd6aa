//! A process's place in its job, as its user and its services hold it.

use core::fmt;
use core::ops::Deref;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use mizzen_proto::boot;
use tracing::Span;

use crate::caller::Caller;
use crate::counters::{Counted, CounterRow};
use crate::error::{
    ArenaError, BindError, Departure, FetchError, FlushError, Gone, ReachError, TopologyError,
};
use crate::memory::Lent;
use crate::plain::Plain;
use crate::process::Process;
use crate::rank::{Address, KnownChannel, ProcessId, Rank};
use crate::topology::Topology;
use crate::wait::Until;
use crate::workers::Workers;

/// A process's place in its job: its mailboxes, its names, its memory, its workers. When the user's last reference is
/// dropped, the process leaves. (Threads of the runtime hold plain references, which do not keep it in the job.)
///
/// Programs use `mizzen::Deck`, which is this and the services.
pub struct Endpoint(Arc<Process>);

/// An [`Endpoint`] that does not keep the process in its job.
#[derive(Clone, Debug)]
pub struct WeakEndpoint(Weak<Process>);

impl Endpoint {
    pub(crate) fn new(process: Arc<Process>) -> Self {
        process.handles.fetch_add(1, Ordering::Relaxed);
        Self(process)
    }

    /// Waits until each process has what was posted to it, for `patience` at most.
    ///
    /// # Errors
    ///
    /// If the time is over, or a process is gone and did not take all.
    #[track_caller]
    pub fn flush(&self, patience: Option<Duration>) -> Result<(), FlushError> {
        let _call = Caller::enter();
        self.0
            .flush_until(patience.map(|patience| Instant::now() + patience))
    }

    /// Which life of which rank this process is.
    #[must_use]
    pub fn id(&self) -> ProcessId {
        self.0.id
    }

    /// Number of processes in the job.
    #[must_use]
    pub fn size(&self) -> u32 {
        self.0.size
    }

    /// The host this process runs on, as the launcher calls it.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.0.host
    }

    /// Who is where in the job. The launcher is asked.
    ///
    /// # Errors
    ///
    /// [`TopologyError`] if it does not answer.
    #[track_caller]
    pub fn topology(&self) -> Result<Topology, TopologyError> {
        let _call = Caller::enter();
        self.0.neighbours.topology(&self.0)
    }

    /// The channels that programs may name, from number 1 on.
    pub(crate) fn known_channels(&self) -> &[KnownChannel] {
        self.0.channels.get().map_or(&[], Vec::as_slice)
    }

    /// Whether a launcher started this job. If not, it is a job of one.
    #[must_use]
    pub fn is_launched(&self) -> bool {
        self.0.neighbours.is_launched()
    }

    /// What the events of this process belong to: services give it as the parent of theirs.
    #[must_use]
    pub fn span(&self) -> &Span {
        &self.0.span
    }

    /// The counters of this process: its own, of its links and mailboxes, and of what services added.
    #[must_use]
    pub fn counters(&self) -> Vec<CounterRow> {
        self.0.counted()
    }

    /// Has the counters of an object shown with those of the process, as long as it lives.
    pub fn add_counted(&self, object: &Arc<dyn Counted>) {
        self.0.counters.add(object);
    }

    /// Has the launcher show how far something is. Without a launcher, or while it is busy, nothing happens.
    pub fn tell_progress(&self, progress: boot::Progress) {
        self.0.neighbours.tell_progress(progress);
    }

    /// Binds a name to one of our mailboxes.
    ///
    /// # Errors
    ///
    /// [`BindError::Taken`] if the name is bound to another mailbox.
    pub fn bind(&self, name: &str, address: Address) -> Result<(), BindError> {
        self.0.bind(name, address)
    }

    /// Whether a name may be bound by this process: names with a cluster before a colon, `west:board`, are for those of that cluster. The
    /// launcher is asked only if the name has a colon.
    ///
    /// # Errors
    ///
    /// [`BindError::Refused`], which says whose it is.
    pub fn check_cluster_of(&self, name: &str) -> Result<(), BindError> {
        if !name.contains(':') {
            return Ok(());
        }
        let refusal = match self.topology() {
            Ok(topology) => topology.refuses(name),
            Err(error) => Some(format!(
                "whether it is another cluster's is not known: {error}"
            )),
        };
        refusal.map_or(Ok(()), |cause| {
            let name = name.to_owned();
            Err(BindError::Refused { name, cause })
        })
    }

    /// Whether this process bound the name.
    #[must_use]
    pub fn has_bound(&self, name: &str) -> bool {
        self.0.has_bound(name)
    }

    /// Frees a name that is bound to one of our mailboxes.
    pub fn unbind(&self, name: &str, address: Address) {
        self.0.unbind(name, address);
    }

    /// What `name` is bound to. Waits until somebody binds it, for ever if no time is given.
    ///
    /// # Errors
    ///
    /// [`FetchError::Unbound`] if nobody did in time.
    #[track_caller]
    pub fn fetch(&self, name: &str, patience: Option<Duration>) -> Result<Address, FetchError> {
        let _call = Caller::enter();
        self.0.fetch(name, patience)
    }

    /// As [`fetch`](Self::fetch). If it takes long, the user is told what this waits for: `waits` says it.
    ///
    /// # Errors
    ///
    /// As [`fetch`](Self::fetch).
    #[track_caller]
    pub fn fetch_saying(
        &self,
        name: &str,
        patience: Option<Duration>,
        waits: &dyn Fn() -> String,
    ) -> Result<Address, FetchError> {
        let _call = Caller::enter();
        self.0.fetch_saying(name, patience, waits)
    }

    /// Which life of a rank is there now. A path to it is opened if need be, so that this process will learn of its end.
    ///
    /// # Errors
    ///
    /// [`ReachError`] if it is gone, or cannot be reached.
    #[track_caller]
    pub fn reach(&self, rank: Rank) -> Result<ProcessId, ReachError> {
        let _call = Caller::enter();
        self.0.reach(rank).map(|path| path.peer())
    }

    /// As [`reach`](Self::reach), but a path is opened within `patience` or not at all.
    ///
    /// # Errors
    ///
    /// As [`reach`](Self::reach).
    #[track_caller]
    pub fn reach_within(&self, rank: Rank, patience: Duration) -> Result<ProcessId, ReachError> {
        let _call = Caller::enter();
        self.0.reach_within(rank, patience).map(|path| path.peer())
    }

    /// How a life of a process went, if it is gone.
    #[must_use]
    pub fn gone(&self, process: ProcessId) -> Option<Gone> {
        self.0.peers.gone(process)
    }

    /// Whether the process has left the job, or is about to.
    #[must_use]
    pub fn has_left(&self) -> bool {
        self.0.has_left()
    }

    /// Whether a life of a rank is known to be gone.
    #[must_use]
    pub fn is_life_gone(&self, life: ProcessId) -> bool {
        self.0.peers.is_life_gone(life)
    }

    /// A buffer of `count` values in this process's arena, which are whatever was there before. Waits while receivers hold all
    /// of it.
    ///
    /// # Errors
    ///
    /// [`ArenaError::TooLong`] if no arena can hold it, or the system has no memory.
    #[track_caller]
    pub fn lend_unzeroed<T: Plain>(&self, count: usize) -> Result<Lent<T>, ArenaError> {
        let _call = Caller::enter();
        self.0.links.lend(&*self.0, count, Until::Forever)
    }

    /// The same if there is room for it now.
    ///
    /// # Errors
    ///
    /// As [`lend_unzeroed`](Self::lend_unzeroed).
    pub fn try_lend_unzeroed<T: Plain>(&self, count: usize) -> Result<Option<Lent<T>>, ArenaError> {
        match self.0.links.lend(&*self.0, count, Until::Now) {
            Ok(buffer) => Ok(Some(buffer)),
            Err(ArenaError::AllOut { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The same, waiting for at most `timeout`.
    ///
    /// # Errors
    ///
    /// [`ArenaError::AllOut`] if nothing came back in time; otherwise as [`lend_unzeroed`](Self::lend_unzeroed).
    #[track_caller]
    pub fn lend_unzeroed_timeout<T: Plain>(
        &self,
        count: usize,
        timeout: Duration,
    ) -> Result<Lent<T>, ArenaError> {
        let _call = Caller::enter();
        let until = Until::within(timeout);
        self.0.links.lend(&*self.0, count, until)
    }

    /// Allows so many bytes of lent buffers in use at once.
    pub fn set_lending_limit(&self, bytes: usize) {
        self.0.links.arena.set_lending_limit(bytes);
    }

    /// Bytes of memory that this process holds for lent buffers and long messages.
    #[must_use]
    pub fn arena_bytes(&self) -> usize {
        self.0.links.arena.bytes()
    }

    /// The workers of this process; they start when there is work.
    #[must_use]
    pub fn workers(&self) -> &Arc<Workers> {
        self.0.workers()
    }

    /// The same, not keeping the process in its job.
    #[must_use]
    pub fn downgrade(&self) -> WeakEndpoint {
        WeakEndpoint(Arc::downgrade(&self.0))
    }
}

impl WeakEndpoint {
    /// The endpoint, if the process is still there.
    #[must_use]
    pub fn upgrade(&self) -> Option<Endpoint> {
        self.0.upgrade().map(Endpoint::new)
    }
}

impl Clone for Endpoint {
    fn clone(&self) -> Self {
        Self::new(Arc::clone(&self.0))
    }
}

impl Deref for Endpoint {
    type Target = Arc<Process>;

    fn deref(&self) -> &Arc<Process> {
        &self.0
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        if self.0.handles.fetch_sub(1, Ordering::AcqRel) == 1 {
            let dying = std::thread::panicking();
            self.0.leave(if dying {
                Departure::Died
            } else {
                Departure::Left
            });
        }
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Endpoint").field(&self.0.id).finish()
    }
}
