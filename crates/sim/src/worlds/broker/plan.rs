//! The job of one history: who is where, how many descriptors there are, how late the launcher answers.

use std::time::Duration;

use fastrand::Rng;
use mizzen_proto::boot::OnDeath;
use mizzen_proto::id::{Incarnation, ProcessId, Rank};

use crate::faults::{Fault, Faults};
use crate::ids::{HostId, MachineId, Place};
use crate::options::Options;
use crate::world::{Layout, Seat};

/// The log of the job, kept by the root.
pub(super) const LOG: MachineId = MachineId(0);
pub(super) const LAUNCHER: MachineId = MachineId(1);
/// Then come the agents, then the processes.
const FIRST_AGENT: u32 = 2;

#[derive(Debug)]
pub(super) struct Plan {
    agents: u32,
    /// The agent of each rank, growing.
    ranks: Vec<u32>,
    pub(super) on_death: OnDeath,
    pub(super) max_restarts: u32,
    /// How many introductions may be under way on a host.
    pub(super) descriptors: u32,
    /// How long the launcher takes to answer, at most.
    pub(super) lateness: Duration,
}

impl Plan {
    pub(super) fn new(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed ^ 0x0062_726f_6b65_7273);
        let agents = rng.u32(1..=4);
        let most = if rng.u32(..16) == 0 { 50 } else { 12 };
        let size = rng.u32(3..=most);
        let restarts = rng.bool();
        let is_scarce = rng.bool();
        Self {
            agents,
            ranks: (0..size).map(|rank| rank * agents / size).collect(),
            on_death: match restarts {
                true => OnDeath::Restart,
                false => OnDeath::Continue,
            },
            max_restarts: rng.u32(1..60),
            descriptors: if is_scarce { 1 } else { 64 },
            lateness: Duration::from_millis(rng.u64(1..2000)),
        }
    }

    /// Connections hold: who loses the launcher or its agent ends, and then nobody asks. Nobody but processes ends.
    pub(super) fn layout(&self) -> Layout {
        let hosts = FIRST_AGENT + self.agents;
        let steady = (0..hosts).map(|host| Seat {
            may_crash: false,
            ..Seat::on(HostId(host))
        });
        let processes = self.ranks.iter().map(|agent| Seat {
            starts: false,
            ..Seat::on(HostId(FIRST_AGENT + agent))
        });
        let faults = Faults::all()
            .without(Fault::Break)
            .without(Fault::PowerLoss);
        let seconds = Duration::from_secs;
        Layout {
            hosts,
            machines: steady.chain(processes).collect(),
            options: Options {
                faults,
                // Longer than all outages together can be.
                silence: seconds(30),
                dialling: seconds(30),
                outage: Duration::from_millis(10)..=seconds(3),
                pause: Duration::from_millis(1)..=seconds(3),
                between: Duration::from_millis(200)..=seconds(5),
                calm: seconds(90),
                ..Options::default()
            },
        }
    }

    pub(super) fn size(&self) -> u32 {
        self.ranks.len() as u32
    }

    pub(super) fn agents(&self) -> impl Iterator<Item = MachineId> {
        (FIRST_AGENT..FIRST_AGENT + self.agents).map(MachineId)
    }

    pub(super) fn is_agent(&self, machine: MachineId) -> bool {
        self.agents().any(|agent| agent == machine)
    }

    pub(super) fn agent_of(&self, rank: u32) -> MachineId {
        MachineId(FIRST_AGENT + self.ranks[rank as usize])
    }

    pub(super) fn ranks_of(&self, agent: MachineId) -> Vec<u32> {
        (0..self.size())
            .filter(|rank| self.agent_of(*rank) == agent)
            .collect()
    }

    pub(super) fn machine_of(&self, rank: u32) -> MachineId {
        MachineId(FIRST_AGENT + self.agents + rank)
    }

    pub(super) fn rank_of(&self, machine: MachineId) -> Option<u32> {
        machine.0.checked_sub(FIRST_AGENT + self.agents)
    }

    /// The process that a life of a machine is, if it is one.
    pub(super) fn process(&self, place: Place) -> Option<ProcessId> {
        let rank = self.rank_of(place.machine)?;
        Some(ProcessId::new(Rank(rank), Incarnation(place.life.0)))
    }
}
