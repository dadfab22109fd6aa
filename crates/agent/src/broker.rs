//! Introductions: how the processes of a job come to know each other.
//!
//! Two processes of this host get the two ends of a new socket, and the number of each other's process. The agent keeps no copy of
//! the socket, because otherwise one would not see the end of the other. For a process of another host the launcher is asked where it listens.
//!
//! When two ask for each other at the same time they are introduced once: the second request is assumed to have crossed the
//! answer to the first. Any other request between two that know each other connects them anew, so that every request has an
//! answer even if the agent does not yet know what the one that asks has seen.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use mizzen_proto::boot::{OnDeath, ToProcess, Unreachable};

use crate::children::{ChildState, Children, NoIntroduction};

/// Who waits for whom, and who knows whom.
#[derive(Debug)]
pub(crate) struct Broker {
    size: u32,
    on_death: OnDeath,
    /// Pairs of living processes of this host, the smaller rank first; with the one that was not asked, as long as a
    /// request of its own may be crossing the introduction.
    introduced: BTreeMap<(u32, u32), Option<u32>>,
    /// By the rank that is waited for: a process of another host, or one of ours that is started again.
    waiting: BTreeMap<u32, BTreeSet<u32>>,
    /// Who asked for whom when there was no descriptor left.
    postponed: Vec<(u32, u32)>,
    /// No more restarts: the job is ending.
    ending: bool,
}

/// Who has to be asked about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ask {
    Nobody,
    Launcher,
}

impl Broker {
    pub(crate) fn new(size: u32, on_death: OnDeath) -> Self {
        Self {
            size,
            on_death,
            introduced: BTreeMap::new(),
            waiting: BTreeMap::new(),
            postponed: Vec::new(),
            ending: false,
        }
    }

    /// A process of ours wants to be connected to `target`.
    pub(crate) fn handle_reach(&mut self, rank: u32, target: u32, children: &mut Children) -> Ask {
        if target >= self.size || target == rank {
            refuse(rank, target, Unreachable::NoSuchRank, children);
            return Ask::Nobody;
        }
        match children.state(target) {
            ChildState::Running => self.handle_reach_here(rank, target, children),
            ChildState::Elsewhere => {
                let waiting = self.waiting.entry(target).or_default();
                waiting.insert(rank);
                if waiting.len() == 1 {
                    return Ask::Launcher;
                }
            }
            ChildState::Left => refuse(rank, target, Unreachable::Left, children),
            ChildState::Dead if comes_back(self.on_death) && !self.ending => {
                self.waiting.entry(target).or_default().insert(rank);
            }
            ChildState::Dead => refuse(rank, target, Unreachable::Dead, children),
        }
        Ask::Nobody
    }

    pub(crate) fn handle_located(
        &mut self,
        rank: u32,
        incarnation: u32,
        locator: &str,
        children: &mut Children,
    ) {
        for waiting in self.waiting.remove(&rank).unwrap_or_default() {
            children.post(
                waiting,
                &ToProcess::Address {
                    rank,
                    incarnation,
                    locator: locator.to_owned(),
                },
                vec![],
            );
        }
    }

    pub(crate) fn handle_unreachable(
        &mut self,
        rank: u32,
        reason: Unreachable,
        children: &mut Children,
    ) {
        for waiting in self.waiting.remove(&rank).unwrap_or_default() {
            refuse(waiting, rank, reason, children);
        }
    }

    /// A process of ours ended or left: it knows nobody any more.
    pub(crate) fn handle_exit(&mut self, rank: u32, children: &mut Children) {
        self.introduced.retain(|(a, b), _| *a != rank && *b != rank);
        self.waiting.retain(|_, waiting| {
            waiting.remove(&rank);
            !waiting.is_empty()
        });
        let reason = match children.state(rank) {
            ChildState::Left => Unreachable::Left,
            ChildState::Dead if !comes_back(self.on_death) || self.ending => Unreachable::Dead,
            _ => return,
        };
        self.handle_unreachable(rank, reason, children);
    }

    /// A process of ours was started again: those who waited meet it.
    pub(crate) fn handle_started(&mut self, rank: u32, children: &mut Children) {
        for waiting in self.waiting.remove(&rank).unwrap_or_default() {
            self.introduce(waiting, rank, children);
        }
    }

    /// Nobody is started again from now on.
    pub(crate) fn give_up(&mut self, children: &mut Children) {
        self.ending = true;
        let waited_for: Vec<u32> = self.waiting.keys().copied().collect();
        for rank in waited_for {
            if children.state(rank) == ChildState::Dead {
                self.handle_unreachable(rank, Unreachable::Dead, children);
            }
        }
    }

    fn handle_reach_here(&mut self, rank: u32, target: u32, children: &mut Children) {
        match self.introduced.get_mut(&pair(rank, target)) {
            Some(crossing) if *crossing == Some(rank) => {
                *crossing = None;
                // Should the other be ending just now, this request still has an answer.
                self.waiting.entry(target).or_default().insert(rank);
            }
            _ => self.introduce(rank, target, children),
        }
    }

    /// Introduces those for whom there was no descriptor left. Those under way to other processes come back soon.
    pub(crate) fn introduce_later(&mut self, children: &mut Children) {
        for (rank, target) in std::mem::take(&mut self.postponed) {
            self.handle_reach(rank, target, children);
        }
    }

    /// When to try that, if there are such.
    pub(crate) fn next_try(&self) -> Option<Duration> {
        (!self.postponed.is_empty()).then_some(NEXT_TRY)
    }

    fn introduce(&mut self, rank: u32, target: u32, children: &mut Children) {
        match children.connect(rank, target) {
            Ok(()) => {
                self.introduced.insert(pair(rank, target), Some(target));
            }
            Err(NoIntroduction::NoDescriptor) => self.postponed.push((rank, target)),
            Err(NoIntroduction::Gone) => refuse(rank, target, Unreachable::Dead, children),
        }
    }
}

/// How soon an introduction is tried again for which there was no descriptor left.
const NEXT_TRY: Duration = Duration::from_millis(2);

fn pair(a: u32, b: u32) -> (u32, u32) {
    (a.min(b), a.max(b))
}

fn refuse(rank: u32, target: u32, reason: Unreachable, children: &mut Children) {
    children.post(
        rank,
        &ToProcess::Unreachable {
            rank: target,
            reason,
        },
        vec![],
    );
}

/// Whether a rank that ended comes back.
fn comes_back(on_death: OnDeath) -> bool {
    on_death == OnDeath::Restart
}
