//! Which peers this process has met, and how it reaches the others.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::time::{Duration, Instant};

use mizzen_lane::{Region, Returns, Ring};

use super::channel::{Channel, SHARED_LANE};
use super::link::{MemoryLink, Parts};
use super::{Process, Universe};
use crate::error::{Departure, Gone, ReachError};
use crate::host::Keeper;
use crate::memory::Arena;
use crate::net::NetLink;
use crate::rank::{Incarnation, ProcessId, Rank};

/// How long a rank of a local job may take to answer on its network.
const CONNECT_PATIENCE: Duration = Duration::from_secs(30);

/// The way to a peer.
#[derive(Clone, Debug)]
pub(crate) enum Path {
    Memory(Arc<MemoryLink>),
    Net(Arc<NetLink>),
}

/// Who else is in the job, and who introduces us.
#[derive(Debug)]
pub(crate) enum Neighbours {
    /// Nobody.
    None,
    /// Ranks of the same OS process.
    Local(Arc<Universe>),
    /// Processes started by the launcher; its agent introduces us.
    Launched(Arc<Keeper>),
    /// Ranks of the same OS process that reach each other through a network: where each of them listens.
    Networked(Arc<OnceLock<Vec<String>>>),
}

/// The peers of a process.
#[derive(Debug)]
pub(crate) struct Peers {
    pub(crate) neighbours: Neighbours,
    /// Paths that were opened, by rank; the latest life of each.
    paths: RwLock<HashMap<Rank, Path>>,
    /// The latest life of each rank that is known to be gone.
    gone: Mutex<HashMap<Rank, Gone>>,
    /// The latest life of each rank that was started again.
    joined: Mutex<HashMap<Rank, Incarnation>>,
}

impl Path {
    pub(crate) fn peer(&self) -> ProcessId {
        match self {
            Self::Memory(link) => link.peer,
            Self::Net(link) => link.peer,
        }
    }

    /// Whether the peer is gone.
    pub(crate) fn is_ended(&self) -> bool {
        match self {
            Self::Memory(link) => link.is_ended(),
            Self::Net(link) => link.is_ended(),
        }
    }
}

impl Peers {
    pub(crate) fn new(neighbours: Neighbours) -> Self {
        Self {
            neighbours,
            paths: RwLock::default(),
            gone: Mutex::default(),
            joined: Mutex::default(),
        }
    }

    /// The link to a life of a peer, if there is one.
    pub(crate) fn link_to(&self, peer: ProcessId) -> Option<Arc<MemoryLink>> {
        match self.known(peer.rank)? {
            Path::Memory(link) if link.peer == peer => Some(link),
            _ => None,
        }
    }

    /// The path to a rank, if it was opened.
    pub(crate) fn known(&self, rank: Rank) -> Option<Path> {
        self.paths
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&rank)
            .cloned()
    }

    pub(crate) fn add(&self, path: Path) {
        self.paths
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(path.peer().rank, path);
    }

    /// Adds a path that a peer opened, unless there is one through memory to the same life.
    pub(crate) fn add_if_better(&self, path: Path) {
        let peer = path.peer();
        let has_better = |known: &Path| {
            matches!(known, Path::Memory(_)) && known.peer() == peer && !known.is_ended()
        };
        let mut paths = self.paths.write().unwrap_or_else(PoisonError::into_inner);
        if !paths.get(&peer.rank).is_some_and(has_better) {
            paths.insert(peer.rank, path);
        }
    }

    /// How a life of a process went, if it is gone.
    pub(crate) fn gone(&self, process: ProcessId) -> Option<Gone> {
        self.lock_gone()
            .get(&process.rank)
            .copied()
            .filter(|gone| process.is_fenced_by(gone.process()))
    }

    /// Whether a life of a rank is known to be gone.
    pub(crate) fn is_life_gone(&self, life: ProcessId) -> bool {
        let gone = self.lock_gone().get(&life.rank).copied();
        gone.is_some_and(|gone| gone.process().incarnation >= life.incarnation)
    }

    /// How the latest known life of a rank went, if it is gone and no later one is linked.
    pub(crate) fn last_gone(&self, rank: Rank) -> Option<Gone> {
        let gone = self.lock_gone().get(&rank).copied()?;
        let alive = self
            .known(rank)
            .is_some_and(|path| path.peer().incarnation > gone.process().incarnation);
        (!alive).then_some(gone)
    }

    /// Whether no life of a rank is known to be there, or to come.
    pub(crate) fn is_gone(&self, rank: Rank) -> bool {
        let Some(gone) = self.last_gone(rank) else {
            return false;
        };
        let joined = self
            .joined
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&rank)
            .copied();
        joined.is_none_or(|joined| joined <= gone.process().incarnation)
    }

    pub(crate) fn note_joined(&self, life: ProcessId) {
        self.joined
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(life.rank, life.incarnation);
    }

    pub(crate) fn note_gone(&self, gone: Gone) {
        let mut known = self.lock_gone();
        let newer = known
            .get(&gone.rank())
            .is_none_or(|old| old.process().incarnation < gone.process().incarnation);
        if newer {
            known.insert(gone.rank(), gone);
        }
    }

    /// Tells everyone that `me` leaves.
    pub(crate) fn leave(&self, me: ProcessId, how: Departure) {
        match &self.neighbours {
            Neighbours::None | Neighbours::Networked(_) => (),
            Neighbours::Local(universe) => {
                let places = universe
                    .places
                    .read()
                    .unwrap_or_else(PoisonError::into_inner)
                    .clone();
                for other in places.iter().filter_map(std::sync::Weak::upgrade) {
                    if let Some(link) = other.peers.link_to(me).filter(|_| other.id != me) {
                        other.end_link(&link, how);
                    }
                }
            }
            Neighbours::Launched(keeper) => keeper.leave(how),
        }
    }

    fn lock_gone(&self) -> MutexGuard<'_, HashMap<Rank, Gone>> {
        self.gone.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Process {
    /// The path to a rank, opened if need be.
    pub(crate) fn reach(self: &Arc<Self>, rank: Rank) -> Result<Path, ReachError> {
        self.reach_within(rank, CONNECT_PATIENCE)
    }

    /// As `reach`, waiting at most as long as said.
    pub(crate) fn reach_within(
        self: &Arc<Self>,
        rank: Rank,
        patience: Duration,
    ) -> Result<Path, ReachError> {
        if rank.0 >= self.size {
            return Err(ReachError::NoSuchRank {
                rank,
                size: self.size,
            });
        }
        if let Some(path) = self.peers.known(rank).filter(|path| !path.is_ended()) {
            return Ok(path);
        }
        if rank == self.id.rank {
            return Ok(self.link_locally(self));
        }
        match &self.peers.neighbours {
            Neighbours::None => Err(ReachError::NoSuchRank {
                rank,
                size: self.size,
            }),
            Neighbours::Local(universe) => {
                let gone = || {
                    ReachError::Gone(Gone::new(
                        ProcessId::new(rank, Incarnation(0)),
                        Departure::Left,
                    ))
                };
                let other = universe.place(rank).ok_or_else(gone)?;
                if other.has_left() {
                    return Err(gone());
                }
                let path = self.link_locally(&other);
                // Whoever left before it saw this link does not end it.
                if other.has_left() {
                    return Err(gone());
                }
                Ok(path)
            }
            Neighbours::Launched(keeper) => keeper.reach(self, rank, patience),
            Neighbours::Networked(locators) => {
                let peer = ProcessId::new(rank, Incarnation(0));
                if let Some(gone) = self.peers.gone(peer) {
                    return Err(ReachError::Gone(gone));
                }
                let no_path = || ReachError::NoPath {
                    rank,
                    cause: "not on the network".into(),
                };
                let locator = locators.get().and_then(|all| all.get(rank.0 as usize));
                let networks = self.networks.get().ok_or_else(no_path)?;
                let deadline = Instant::now() + patience;
                let locator = locator.ok_or_else(no_path)?;
                networks
                    .connect(self, peer, locator, deadline)
                    .map(Path::Net)
            }
        }
    }

    /// The path to one life of a process: never to a later one.
    pub(crate) fn reach_life(self: &Arc<Self>, process: ProcessId) -> Result<Path, ReachError> {
        if let Some(gone) = self.peers.gone(process) {
            return Err(ReachError::Gone(gone));
        }
        let path = self.reach(process.rank)?;
        if path.peer() == process {
            return Ok(path);
        }
        Err(ReachError::Gone(
            self.peers
                .gone(process)
                .unwrap_or(Gone::new(process, Departure::Died)),
        ))
    }

    /// Links two places of one OS process, or a place with itself.
    fn link_locally(self: &Arc<Self>, other: &Arc<Self>) -> Path {
        // One pair is linked at a time in the whole OS process: it is rare, and both sides must see both links.
        static LINKING: Mutex<()> = Mutex::new(());
        let _one_at_a_time = LINKING.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(path) = self.peers.known(other.id.rank) {
            return path;
        }
        let returns = || {
            Returns::new(
                Region::heap(Returns::bytes(Arena::MAX_BLOCKS)),
                Arena::MAX_BLOCKS,
            )
        };
        let (to_other, to_self) = (Ring::heap(SHARED_LANE), Ring::heap(SHARED_LANE));
        let (ours, theirs) = (returns(), returns());
        let same = Arc::ptr_eq(self, other);
        let link = |me: &Arc<Self>,
                    peer: &Arc<Self>,
                    out: &Ring,
                    back: &Ring,
                    mine: &Returns,
                    its: &Returns| {
            let bells = peer.bells.region.clone();
            let call = move |bell| super::bells::ring(&bells, bell);
            let parts = Parts {
                lane: out.clone().shared_producer(),
                inbound: back.clone().consumer_calling(call),
                watches: peer.watches.region.clone(),
                bells: peer.bells.region.clone(),
                returns: mine.clone(),
                their_returns: its.clone(),
            };
            let link = Arc::new(MemoryLink::new(
                peer.id,
                parts,
                Channel::Direct(Arc::downgrade(peer)),
            ));
            me.peers.add(Path::Memory(Arc::clone(&link)));
            me.add_link(link);
        };
        if same {
            link(self, self, &to_other, &to_other, &ours, &ours);
        } else {
            link(other, self, &to_self, &to_other, &theirs, &ours);
            link(self, other, &to_other, &to_self, &ours, &theirs);
        }
        self.peers
            .known(other.id.rank)
            .expect("the link was added above")
    }
}
