//! Which peers this process has met, and how it reaches the others.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use crate::error::Gone;
use crate::link::MemoryLink;
use crate::lock::lock;
use crate::net::NetLink;
use crate::rank::{ChannelId, Incarnation, ProcessId, Rank};

/// The way to a peer.
#[derive(Clone, Debug)]
pub(crate) enum Path {
    Memory(Arc<MemoryLink>),
    Net(Arc<NetLink>),
}

/// Whether the agent may be asked to introduce us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MayAsk(pub(crate) bool);

/// The peers of a process.
#[derive(Debug, Default)]
pub(crate) struct Peers {
    /// Paths that were opened, by rank; the latest life of each.
    paths: RwLock<HashMap<Rank, Path>>,
    /// Paths over networks on channels of the program, by rank; the latest life of each.
    aside: RwLock<BTreeMap<(Rank, ChannelId), Path>>,
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
            Self::Memory(link) => link.fate.is_ended(),
            Self::Net(link) => link.is_ended(),
        }
    }
}

impl Peers {
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

    /// The path to a rank on a channel, if it was opened. Who shares memory with us is reached through it on every channel.
    fn known_on(&self, channel: ChannelId, rank: Rank) -> Option<Path> {
        let known = self.known(rank);
        if channel == ChannelId::DEFAULT || matches!(known, Some(Path::Memory(_))) {
            return known;
        }
        let aside = self.aside.read().unwrap_or_else(PoisonError::into_inner);
        aside.get(&(rank, channel)).cloned()
    }

    /// The path to a rank on a channel that leads to `since` or a later life, as far as is known.
    pub(crate) fn usable(
        &self,
        channel: ChannelId,
        rank: Rank,
        since: Incarnation,
    ) -> Option<Path> {
        self.standing(channel, rank)
            .filter(|path| path.peer().incarnation >= since)
    }

    /// The path to a rank, unless the life it leads to is over.
    fn standing(&self, channel: ChannelId, rank: Rank) -> Option<Path> {
        self.known_on(channel, rank)
            .filter(|path| !path.is_ended() && !self.is_life_gone(path.peer()))
    }

    /// The path to a rank, or whether the agent may be asked for it.
    ///
    /// While the path to an earlier life stands, the agent is asked only after it told of the later one: it would connect us
    /// to the earlier one anew.
    pub(crate) fn path_or_ask(
        &self,
        channel: ChannelId,
        rank: Rank,
        since: Incarnation,
    ) -> Result<Path, MayAsk> {
        if let Some(path) = self.usable(channel, rank, since) {
            return Ok(path);
        }
        let joined = lock(&self.joined).get(&rank).copied();
        let is_told = joined.is_some_and(|joined| joined >= since);
        Err(MayAsk(is_told || self.standing(channel, rank).is_none()))
    }

    /// Adds a path, unless there is one to a later life.
    pub(crate) fn add(&self, path: Path) {
        self.add_unless(path, |_| false);
    }

    /// Adds a path over a network on a channel, unless there is a path to a later life, or one that stands to the same life: through
    /// memory, or over another network.
    pub(crate) fn add_net(&self, channel: ChannelId, path: Path) {
        let peer = path.peer();
        let stands = |known: &Path| known.peer() == peer && !known.is_ended();
        if channel == ChannelId::DEFAULT {
            return self.add_unless(path, stands);
        }
        let mut aside = self.aside.write().unwrap_or_else(PoisonError::into_inner);
        let is_kept = |known: &Path| known.peer().incarnation > peer.incarnation || stands(known);
        if !aside.get(&(peer.rank, channel)).is_some_and(is_kept) {
            aside.insert((peer.rank, channel), path);
        }
    }

    fn add_unless(&self, path: Path, has_better: impl Fn(&Path) -> bool) {
        let peer = path.peer();
        // Lives follow each other: when there was a later one, this one is over, whether we know it or not.
        let is_kept =
            |known: &Path| known.peer().incarnation > peer.incarnation || has_better(known);
        let mut paths = self.paths.write().unwrap_or_else(PoisonError::into_inner);
        if !paths.get(&peer.rank).is_some_and(is_kept) {
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
        let is_later = |path: &Path| path.peer().incarnation > gone.process().incarnation;
        let aside = self.aside.read().unwrap_or_else(PoisonError::into_inner);
        let first = (rank, ChannelId::DEFAULT);
        let mut aside = aside.range(first..).take_while(|((of, _), _)| *of == rank);
        let is_alive = self.known(rank).as_ref().is_some_and(is_later)
            || aside.any(|(_, path)| is_later(path));
        (!is_alive).then_some(gone)
    }

    /// How the latest life of a rank that is over went, whether or not there is another one.
    pub(crate) fn latest_gone(&self, rank: Rank) -> Option<Gone> {
        self.lock_gone().get(&rank).copied()
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

    /// Whether every path to another process has ended.
    pub(crate) fn is_linked_to_nobody_but(&self, me: ProcessId) -> bool {
        let paths = self.paths.read().unwrap_or_else(PoisonError::into_inner);
        paths
            .values()
            .all(|path| path.peer() == me || path.is_ended())
    }

    pub(crate) fn note_joined(&self, life: ProcessId) {
        let mut joined = lock(&self.joined);
        let latest = joined.entry(life.rank).or_insert(life.incarnation);
        *latest = life.incarnation.max(*latest);
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

    fn lock_gone(&self) -> MutexGuard<'_, HashMap<Rank, Gone>> {
        self.gone.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
