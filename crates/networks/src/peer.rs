//! What drivers call processes and agents.

use mizzen_driver::PeerId;
use mizzen_proto::id::ProcessId;
use mizzen_proto::membership::{AgentId, HostId};

/// Who is at the other end of a driver's link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// A process.
    Process(ProcessId),
    /// The agent of a host.
    Agent(AgentId),
}

impl From<PeerId> for Who {
    fn from(PeerId(word): PeerId) -> Self {
        match word & AGENT {
            0 => Who::Process(ProcessId::from_u64(word)),
            _ => {
                let life = (word & !AGENT) >> 32;
                Who::Agent(AgentId::new(HostId(word as u32), life as u32))
            }
        }
    }
}

/// What drivers call a process.
///
/// ```
/// use mizzen_networks::{Who, process_id};
/// use mizzen_proto::id::{Incarnation, ProcessId, Rank};
///
/// let process = ProcessId::new(Rank(3), Incarnation(1));
/// assert_eq!(Who::from(process_id(process)), Who::Process(process));
/// ```
#[must_use]
pub fn process_id(process: ProcessId) -> PeerId {
    PeerId(process.to_u64())
}

/// What drivers call the agent of a host.
///
/// ```
/// use mizzen_networks::{Who, agent_id};
/// use mizzen_proto::membership::{AgentId, HostId};
///
/// let agent = AgentId::new(HostId(7), 1);
/// assert_eq!(Who::from(agent_id(agent)), Who::Agent(agent));
/// ```
#[must_use]
pub fn agent_id(agent: AgentId) -> PeerId {
    PeerId(AGENT | u64::from(agent.life) << 32 | u64::from(agent.host.0))
}

/// No process has lived so often.
const AGENT: u64 = 1 << 63;
