//! Processes of one host: joining the job through the launcher's agent, and links through shared memory.
//!
//! The agent introduces two processes by giving each one end of a socket and the number of the other's process. Each then
//! sends the other its half of the shared memory. Nothing has a name in a file system.

mod certify;
mod channel;
mod departed;
mod inherit;
mod keeper;
mod packet;
mod pair;
#[cfg(test)]
mod tests;

use std::net::IpAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use mizzen_identity::Credentials;
use mizzen_proto::boot::{self, Boot, FromProcess, MAX_PACKET, Progress, ToProcess};
use mizzen_proto::membership::{HostId, Pace};
use mizzen_proto::registry::Question;
use mizzen_proto::session::MemoryForm;

use tracing::debug;

use self::keeper::{Keeper, hear_verdict};
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use self::packet::check as fuzz_packet;
use crate::desk::Desk;
use crate::endpoint::Endpoint;
use crate::error::{Departure, JoinError, ReachError, TopologyError};
use crate::memory::Memory;
use crate::names::NobodyKeeps;
use crate::net::{Control, Place, attach};
use crate::peers::Path;
use crate::process::{LEAVE_PATIENCE, Neighbours, Process};
use crate::rank::{ChannelId, Incarnation, KnownChannel, ProcessId, Rank};
use crate::roll::{self, Teller};
use crate::together::link_together;
use crate::topology::Topology;

impl Endpoint {
    /// Joins the job that the launcher (`mizzen run`) started. Without a launcher, this is a job of one.
    ///
    /// # Errors
    ///
    /// [`JoinError`] if the launcher's agent cannot be understood, or this process has joined before.
    pub fn join() -> Result<Self, JoinError> {
        join().map(Self::new)
    }
}

/// Joins the launcher's job, or makes a job of one.
fn join() -> Result<Arc<Process>, JoinError> {
    crate::crash::hook_lanes();
    crate::log::show_if_asked();
    let Some(agent) = inherit::take_agent()? else {
        let id = ProcessId::new(Rank(0), Incarnation(0));
        let alone = Box::new(Alone(Desk::new(1)));
        let process = Process::new(id, 1, "localhost".into(), Memory::Heap, alone)?;
        debug!(parent: &process.span, "is a job of one: no launcher started it");
        return Ok(process);
    };
    let unclear = |cause: String| JoinError::Agent(cause);
    let mut buffer = [0; MAX_PACKET];
    let received = agent
        .recv(&mut buffer)
        .map_err(|error| unclear(error.to_string()))?;
    let packet =
        ToProcess::decode(&buffer[..received.len]).map_err(|error| unclear(error.to_string()))?;
    let ToProcess::Boot(boot) = packet else {
        return Err(unclear("its first packet did not say who we are".into()));
    };
    let id = ProcessId::new(Rank(boot.rank), Incarnation(boot.incarnation));
    let memory = if boot.size > 1 {
        Memory::Segments
    } else {
        Memory::Heap
    };
    let mut early = Vec::new();
    let credentials = if boot.hosts > 1 {
        Some(certify::certify(&agent, &boot, &mut early)?)
    } else {
        None
    };
    let keeper = Keeper::new(agent, boot.show_paths)?;
    let pace = match boot.hosts {
        1 => Pace::ALONE,
        _ => Pace::of(boot.pace),
    };
    let neighbours = Box::new(Launched::new(&keeper, pace));
    let process = Process::new(id, boot.size, boot.host.clone(), memory, neighbours)?;
    // Nobody else sets the channels of a process that has just been made.
    let known = |channel: &boot::Channel| KnownChannel {
        name: channel.name.clone(),
        ranks: channel.ranks.clone(),
    };
    let channels = boot.channels.iter().map(known).collect();
    let _ = process.channels.set(channels);
    // Before anybody of another host can connect: nothing of a life that has ended is taken.
    let is_first =
        |packet: &ToProcess| matches!(packet, ToProcess::Fenced { .. } | ToProcess::Epoch { .. });
    let told = early.iter().take_while(|(packet, _)| is_first(packet));
    let told = told.count();
    for (packet, _) in early.drain(..told) {
        hear_verdict(&process, &packet);
    }
    let locator = match credentials {
        Some(credentials) => join_networks(&process, &boot, &credentials)?,
        None => String::new(),
    };
    let ready = FromProcess::Ready { locator };
    keeper
        .tell_agent(&ready)
        .map_err(|_| unclear("it is gone".into()))?;
    keeper.start(&process, early)?;
    let teller: Arc<dyn Teller> = Arc::clone(&keeper) as _;
    let overdue = (boot.overdue_ms > 0).then_some(Duration::from_millis(boot.overdue_ms));
    roll::tell(&teller, overdue);
    let (host, size) = (&process.host, process.size);
    debug!(parent: &process.span, host, size, hosts = boot.hosts, "joined the job");
    Ok(process)
}

/// Attaches the process to its networks, so that other hosts reach it: where they do.
fn join_networks(
    process: &Arc<Process>,
    boot: &Boot,
    credentials: &Credentials,
) -> Result<String, JoinError> {
    let address =
        match &boot.bind[..] {
            "" => None,
            given => Some(given.parse::<IpAddr>().map_err(|_| {
                JoinError::Agent(format!("{given:?} is not an address to listen at"))
            })?),
        };
    let place: Weak<dyn Control> = Arc::downgrade(process) as _;
    let at = Place {
        address,
        networks: &boot.networks,
        host: HostId(boot.number),
        spans: &boot.spans,
        others: &boot.others,
        channels: &boot.channels,
        form: MemoryForm::NATIVE,
    };
    let networks = attach(&place, process.id, credentials, &at)?;
    let locator = networks.locator();
    // Nobody else sets the networks of a process that has just been made.
    let _ = process.networks.set(networks);
    Ok(locator)
}

/// A job of one, which keeps its own names.
pub(crate) struct Alone(pub(crate) Desk);

impl Neighbours for Alone {
    fn reach(
        &self,
        process: &Arc<Process>,
        _: ChannelId,
        first: ProcessId,
        _: Duration,
    ) -> Result<Path, ReachError> {
        let rank = first.rank;
        if rank == process.id.rank {
            return Ok(link_together(process, process));
        }
        let size = process.size;
        Err(ReachError::NoSuchRank { rank, size })
    }

    fn ask_name(&self, process: &Process, question: Question) -> Result<(), NobodyKeeps> {
        let answers = self.0.ask(process.id, question);
        answers
            .into_iter()
            .for_each(|(_, answer)| process.handle_answer(answer));
        Ok(())
    }

    fn leave(&self, _: ProcessId, _: Departure) {}

    fn is_launched(&self) -> bool {
        false
    }

    fn others_are_gone(&self, _: &Process) -> bool {
        true
    }
}

/// Processes started by the launcher; its agent introduces us.
struct Launched {
    keeper: Arc<Keeper>,
    leave_patience: Duration,
}

/// How long after the verdict on a silent host may have fallen it is heard here.
const VERDICT_MARGIN: Duration = Duration::from_secs(10);

impl Launched {
    /// Agents are so patient with each other: a host that is silent for less comes back, and takes what was sent to it.
    fn new(keeper: &Arc<Keeper>, pace: Pace) -> Self {
        let longest = match pace == Pace::ALONE {
            true => Duration::ZERO,
            false => pace.verdict() + VERDICT_MARGIN,
        };
        Self {
            keeper: Arc::clone(keeper),
            leave_patience: longest.max(LEAVE_PATIENCE),
        }
    }
}

impl Neighbours for Launched {
    fn reach(
        &self,
        process: &Arc<Process>,
        channel: ChannelId,
        first: ProcessId,
        patience: Duration,
    ) -> Result<Path, ReachError> {
        if first.rank == process.id.rank {
            return Ok(link_together(process, process));
        }
        self.keeper.reach(process, channel, first, patience)
    }

    fn ask_name(&self, _: &Process, question: Question) -> Result<(), NobodyKeeps> {
        self.keeper.ask_name(&question)
    }

    fn topology(&self, process: &Process) -> Result<Topology, TopologyError> {
        self.keeper.topology(process.id)
    }

    fn leave(&self, _: ProcessId, how: Departure) {
        self.keeper.leave(how);
    }

    fn is_launched(&self) -> bool {
        true
    }

    fn has_launcher(&self) -> bool {
        true
    }

    fn leave_patience(&self) -> Duration {
        self.leave_patience
    }

    fn others_are_gone(&self, process: &Process) -> bool {
        if process.size == 1 {
            return true;
        }
        self.keeper.ask_last();
        process.is_last.load(Ordering::Acquire)
    }

    fn ask_about(&self, rank: Rank) {
        self.keeper.ask_about(rank);
    }

    fn remark(&self, text: String) {
        self.keeper.remark(text);
    }

    fn tell_progress(&self, progress: Progress) {
        self.keeper.tell_progress(progress);
    }
}
