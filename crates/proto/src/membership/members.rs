//! Who belongs to the job and who lives: what follows from the root's decisions, at the root, at agents, at another root.
//!
//! | a rank is | until |
//! | --- | --- |
//! | running (or expected: nobody has to know which) | `Left`, `Ended`, or `HostEnded` of its host |
//! | left | `Ended`, or `HostEnded` |
//! | ended | `Restarted`: it is running, in its next life |
//!
//! Ranks whose first life runs where it was placed take no memory.

use std::collections::BTreeMap;

use super::{AgentId, Change, Ending, Entry, Epoch, HostEnd, HostId, MAX_BLOCKS, MAX_HOSTS, News};
use crate::boot::{Death, MAX_PROCESSES};
use crate::id::{Incarnation, ProcessId, Rank};

/// All that the decisions up to an epoch say.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Members {
    pub(super) epoch: Epoch,
    pub(super) hosts: BTreeMap<HostId, Host>,
    /// By their first rank.
    pub(super) blocks: BTreeMap<Rank, Block>,
    /// Those that are not as they were placed.
    pub(super) ranks: BTreeMap<Rank, State>,
    /// How many have not ended.
    pub(super) running: u32,
    pub(super) restarts: u32,
    pub(super) ending: Option<Ending>,
    /// Whether a signal of the user asked programs to end.
    pub(super) interrupted: bool,
}

/// A host, and the latest life of its agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// Which life of its agent: 0 if none has reported.
    pub life: u32,
    /// Whether it is here.
    pub standing: HostStanding,
    /// Where its agent is reached.
    pub locator: String,
}

/// Whether a host is here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostStanding {
    /// It has not reported. That is not a death, however long it takes.
    Expected,
    /// Its agent reported, and lives as far as is known.
    Here,
    /// The latest life of its agent is over.
    Ended(HostEnd),
}

/// Ranks placed on a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) count: u32,
    pub(super) host: HostId,
}

/// A rank's latest life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct State {
    /// Which life.
    pub life: Incarnation,
    /// Where it runs or ran.
    pub host: HostId,
    /// Whether it runs.
    pub standing: Standing,
}

/// Whether a process runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It runs, or will.
    Running,
    /// It left the job, and may still run.
    Left,
    /// It ended.
    Ended(Death),
}

/// A decision that contradicts those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a decision contradicts those before it")]
pub struct Contradiction;

impl Members {
    /// Applies the news of the next epoch, all of it or nothing.
    ///
    /// # Errors
    ///
    /// [`Contradiction`] if it is not the next epoch, or an entry does not fit.
    pub fn apply_news(&mut self, news: &News) -> Result<Vec<Change>, Contradiction> {
        if self.epoch.next() != Some(news.epoch) {
            return Err(Contradiction);
        }
        let mut next = self.clone();
        let mut changes = vec![];
        for entry in &news.entries {
            next.apply(entry, &mut changes)?;
        }
        next.epoch = news.epoch;
        *self = next;
        Ok(changes)
    }

    /// Applies one decision. This is the only place where anybody departs, whatever told so.
    pub(super) fn apply(
        &mut self,
        entry: &Entry,
        changes: &mut Vec<Change>,
    ) -> Result<(), Contradiction> {
        match entry {
            Entry::Placed { host, first, count } => self.place(*host, *first, *count),
            Entry::HostJoined { agent, locator } => self.join(*agent, locator),
            Entry::HostEnded { agent, how } => self.end_host(*agent, *how, changes),
            Entry::Left { process } => {
                let state = self.current(*process)?;
                if state.standing != Standing::Running {
                    return Err(Contradiction);
                }
                self.set(process.rank, state, Standing::Left);
                changes.push(Change::Left { process: *process });
                Ok(())
            }
            Entry::Ended { process, how } => {
                let state = self.current(*process)?;
                self.end(process.rank, state, *how, changes);
                Ok(())
            }
            Entry::Restarted { process, host } => self.restart(*process, *host, changes),
            Entry::JobEnds(ending) => {
                if self.ending.is_some() {
                    return Err(Contradiction);
                }
                self.ending = Some(*ending);
                changes.push(Change::JobEnds(*ending));
                Ok(())
            }
            // Again and again, if the user insists; also while the job ends.
            Entry::Interrupted { .. } => {
                self.interrupted = true;
                Ok(())
            }
        }
    }

    pub(super) fn set_epoch(&mut self, epoch: Epoch) {
        self.epoch = epoch;
    }

    /// The latest epoch that is known whole.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Why the job ends, if it does.
    #[must_use]
    pub fn ending(&self) -> Option<Ending> {
        self.ending
    }

    /// Whether a signal of the user asked programs to end: nobody is started again.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        self.interrupted
    }

    /// How many processes have not ended.
    #[must_use]
    pub fn running(&self) -> u32 {
        self.running
    }

    /// How often a process was started again.
    #[must_use]
    pub fn restarts(&self) -> u32 {
        self.restarts
    }

    /// A host, if it belongs to the job.
    #[must_use]
    pub fn host(&self, host: HostId) -> Option<&Host> {
        self.hosts.get(&host)
    }

    /// The hosts of the job, here or not.
    pub fn hosts(&self) -> impl Iterator<Item = HostId> + '_ {
        self.hosts.keys().copied()
    }

    /// The agents that are here, by host.
    pub fn agents(&self) -> impl Iterator<Item = AgentId> + '_ {
        let here = self
            .hosts
            .iter()
            .filter(|(_, host)| host.standing == HostStanding::Here);
        here.map(|(id, host)| AgentId::new(*id, host.life))
    }

    /// Whether this life of this agent is here.
    #[must_use]
    pub fn is_here(&self, agent: AgentId) -> bool {
        self.hosts
            .get(&agent.host)
            .is_some_and(|host| host.life == agent.life && host.standing == HostStanding::Here)
    }

    /// The latest life of a rank, if the job has it.
    #[must_use]
    pub fn state(&self, rank: Rank) -> Option<State> {
        if let Some(state) = self.ranks.get(&rank) {
            return Some(*state);
        }
        let (first, block) = self.blocks.range(..=rank).next_back()?;
        (rank.0 - first.0 < block.count).then_some(State {
            life: Incarnation(0),
            host: block.host,
            standing: Standing::Running,
        })
    }

    /// The processes of a host that have not ended, by rank.
    #[must_use]
    pub fn processes_on(&self, host: HostId) -> Vec<ProcessId> {
        let placed = self.blocks.iter().filter(|(_, block)| block.host == host);
        let placed = placed.flat_map(|(first, block)| (first.0..first.0 + block.count).map(Rank));
        let moved = self.ranks.iter().filter(|(_, state)| state.host == host);
        let mut ranks: Vec<Rank> = placed.chain(moved.map(|(rank, _)| *rank)).collect();
        ranks.sort_unstable();
        ranks.dedup();
        ranks
            .into_iter()
            .filter_map(|rank| {
                let state = self.state(rank)?;
                let runs = state.host == host && !matches!(state.standing, Standing::Ended(_));
                runs.then_some(ProcessId::new(rank, state.life))
            })
            .collect()
    }

    /// The ranks that are not as they were placed, with their latest life.
    pub fn exceptions(&self) -> impl Iterator<Item = (Rank, State)> + '_ {
        self.ranks.iter().map(|(rank, state)| (*rank, *state))
    }

    /// Whether all processes have ended.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.running == 0
    }

    fn place(&mut self, host: HostId, first: Rank, count: u32) -> Result<(), Contradiction> {
        let standing = self.hosts.get(&host).map(|host| host.standing);
        if matches!(standing, Some(HostStanding::Ended(_))) || self.ending.is_some() {
            return Err(Contradiction);
        }
        // What does not fit must leave no trace.
        if standing.is_none() && self.hosts.len() >= MAX_HOSTS {
            return Err(Contradiction);
        }
        self.add_block(first, Block { count, host })?;
        self.add_host(host)?;
        Ok(())
    }

    pub(super) fn add_block(&mut self, first: Rank, block: Block) -> Result<(), Contradiction> {
        let end = first.0.checked_add(block.count).ok_or(Contradiction)?;
        let before = self.blocks.range(..Rank(end)).next_back();
        let overlaps = before.is_some_and(|(other, block)| other.0 + block.count > first.0);
        let full = self.blocks.len() >= MAX_BLOCKS;
        if block.count == 0 || end > MAX_PROCESSES || overlaps || full {
            return Err(Contradiction);
        }
        self.blocks.insert(first, block);
        self.running += block.count;
        Ok(())
    }

    fn add_host(&mut self, host: HostId) -> Result<&mut Host, Contradiction> {
        if self.hosts.len() >= MAX_HOSTS && !self.hosts.contains_key(&host) {
            return Err(Contradiction);
        }
        Ok(self.hosts.entry(host).or_insert(Host {
            life: 0,
            standing: HostStanding::Expected,
            locator: String::new(),
        }))
    }

    fn join(&mut self, agent: AgentId, locator: &str) -> Result<(), Contradiction> {
        let host = self.add_host(agent.host)?;
        if host.standing == HostStanding::Here || agent.life <= host.life {
            return Err(Contradiction);
        }
        *host = Host {
            life: agent.life,
            standing: HostStanding::Here,
            locator: locator.into(),
        };
        Ok(())
    }

    fn end_host(
        &mut self,
        agent: AgentId,
        how: HostEnd,
        changes: &mut Vec<Change>,
    ) -> Result<(), Contradiction> {
        if !self.is_here(agent) {
            return Err(Contradiction);
        }
        for process in self.processes_on(agent.host) {
            let state = self.current(process)?;
            self.end(process.rank, state, Death::HostLost, changes);
        }
        let host = self.hosts.get_mut(&agent.host).ok_or(Contradiction)?;
        host.standing = HostStanding::Ended(how);
        Ok(())
    }

    fn restart(
        &mut self,
        process: ProcessId,
        host: HostId,
        changes: &mut Vec<Change>,
    ) -> Result<(), Contradiction> {
        let state = self.state(process.rank).ok_or(Contradiction)?;
        let follows = state.life.0.checked_add(1) == Some(process.incarnation.0);
        let ended = matches!(state.standing, Standing::Ended(_));
        let standing = self.hosts.get(&host).map(|host| host.standing);
        if !follows || !ended || standing != Some(HostStanding::Here) || self.is_final() {
            return Err(Contradiction);
        }
        self.restarts = self.restarts.saturating_add(1);
        self.running += 1;
        let life = process.incarnation;
        let standing = Standing::Running;
        self.ranks.insert(
            process.rank,
            State {
                life,
                host,
                standing,
            },
        );
        changes.push(Change::Restarted { process });
        Ok(())
    }

    /// Whether nobody is started again.
    fn is_final(&self) -> bool {
        self.ending.is_some() || self.interrupted
    }

    /// The state of this very life, if it has not ended.
    fn current(&self, process: ProcessId) -> Result<State, Contradiction> {
        let state = self.state(process.rank).ok_or(Contradiction)?;
        let ended = matches!(state.standing, Standing::Ended(_));
        if state.life != process.incarnation || ended {
            return Err(Contradiction);
        }
        Ok(state)
    }

    fn set(&mut self, rank: Rank, state: State, standing: Standing) {
        self.ranks.insert(rank, State { standing, ..state });
    }

    fn end(&mut self, rank: Rank, state: State, how: Death, changes: &mut Vec<Change>) {
        self.set(rank, state, Standing::Ended(how));
        self.running -= 1;
        let process = ProcessId::new(rank, state.life);
        changes.push(Change::Ended { process, how });
    }
}
