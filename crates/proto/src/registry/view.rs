//! Which agents keep which names: a function of the hosts that are here.

use crate::membership::{AgentId, Epoch, HostStanding, Members};

use super::COPIES;
use super::name::{fnv1a, mix};

/// Which hosts are here, as a number that grows whenever one comes or goes.
///
/// It follows from the members alone, so that all who know the same epoch know the same view, also who came late. Epochs in which only
/// processes come and go are of the same view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct View(pub u64);

impl View {
    /// The view of these members.
    #[must_use]
    pub fn of(members: &Members) -> Self {
        let hosts = members.hosts().filter_map(|host| members.host(host));
        // Each host counts on: 1 when its first agent comes, 2 when that goes, and so on.
        let stamp = |life: u32, is_here: bool| (2 * u64::from(life)) - u64::from(is_here);
        let stamps = hosts
            .filter(|host| host.life > 0)
            .map(|host| stamp(host.life, host.standing == HostStanding::Here));
        Self(stamps.sum())
    }
}

/// Who keeps what in one view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// Which view.
    pub view: View,
    /// The latest epoch that is known.
    pub epoch: Epoch,
    /// Those that are here, by host.
    agents: Vec<AgentId>,
}

impl Placement {
    /// That of these members.
    #[must_use]
    pub fn of(members: &Members) -> Self {
        Self {
            view: View::of(members),
            epoch: members.epoch(),
            agents: members.agents().collect(),
        }
    }

    /// The agents that keep a name: the holder first, by rendezvous hash (Thaler and Ravishankar, 1998). When a host goes, only its
    /// names get another holder, and that is one which keeps them already.
    #[must_use]
    pub fn holders(&self, name: &str) -> Vec<AgentId> {
        let hash = fnv1a(name.as_bytes());
        let score = |agent: &AgentId| mix(hash ^ mix(u64::from(agent.host.0) + 1));
        let mut best: Vec<(u64, AgentId)> = Vec::with_capacity(COPIES + 1);
        for agent in &self.agents {
            let one = (score(agent), *agent);
            let at = best.partition_point(|other| *other > one);
            if at < COPIES {
                best.insert(at, one);
                best.truncate(COPIES);
            }
        }
        best.into_iter().map(|(_, agent)| agent).collect()
    }

    /// The agent that answers for a name.
    #[must_use]
    pub fn holder(&self, name: &str) -> Option<AgentId> {
        self.holders(name).first().copied()
    }

    /// The agent that says when all are ready for this view.
    #[must_use]
    pub fn coordinator(&self) -> Option<AgentId> {
        self.agents.first().copied()
    }

    /// All agents that are here, by host.
    #[must_use]
    pub fn agents(&self) -> &[AgentId] {
        &self.agents
    }

    /// Whether this life of this agent is here.
    #[must_use]
    pub fn has(&self, agent: AgentId) -> bool {
        self.agents.binary_search(&agent).is_ok()
    }
}
