//! The job of one history, and the mistake that is planted in it, if any.

use std::time::Duration;

use fastrand::Rng;
use mizzen_proto::boot::OnDeath;
use mizzen_proto::id::{Incarnation, ProcessId, Rank};
use mizzen_proto::membership::{HostId as Host, Pace, Policy};

use crate::faults::{Fault, Faults};
use crate::ids::{HostId, MachineId, Place};
use crate::options::Options;
use crate::world::{Layout, Seat};

/// Something that an implementation could get wrong, done on purpose: an oracle must find it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mistake {
    /// An agent turns the verdicts of an epoch round.
    OutOfOrder,
    /// An agent lets its processes run when its lease is over.
    LeaseIgnored,
    /// Agents count epochs themselves.
    EpochCounted,
    /// A grant counts from when it came, not from when the answered beat was sent.
    StaleBeatRenews,
    /// Receivers take everything.
    NoFence,
    /// A process that starts is not told who is dead.
    DeadUnknown,
    /// The root pronounces who is suspected.
    HastyVerdict,
    /// A dial that is not answered is taken for a refusal.
    SilenceIsRefusal,
    /// News that were lost are not sent again.
    NothingResent,
    /// Only the reports of agents are told to processes, not what follows from the loss of a host.
    DeducedSilently,
}

#[derive(Debug)]
pub(super) struct Plan {
    pub(super) hosts: u32,
    /// The host of each rank, growing.
    pub(super) ranks: Vec<u32>,
    pub(super) policy: Policy,
    pub(super) pace: Pace,
    pub(super) mistake: Option<Mistake>,
    /// How many names the processes use; none if they work with each other instead.
    pub(super) names: u32,
    /// How long a process waits at most between two calls about names.
    pub(super) between_calls: Duration,
    /// Whether agents come and go all the time, while others hear of it late.
    churn: bool,
}

impl Plan {
    pub(super) fn new(seed: u64, mistake: Option<Mistake>) -> Self {
        let mut rng = Rng::with_seed(seed ^ 0x006d_656d_6265_7273);
        let hosts = rng.u32(2..=8);
        let size = rng.u32(3.max(hosts)..=50);
        let mut ranks: Vec<u32> = (0..size).map(|rank| rank * hosts / size).collect();
        ranks.sort_unstable();
        let on_death = match rng.u32(..8) {
            0 => OnDeath::Stop,
            1 | 2 => OnDeath::Restart,
            _ => OnDeath::Continue,
        };
        let max_restarts = rng.u32(1..20);
        let pace = if rng.bool() {
            Pace::FAST
        } else {
            Pace::DEFAULT
        };
        Self {
            hosts,
            ranks,
            policy: Policy {
                on_death,
                max_restarts,
            },
            pace,
            mistake,
            names: 0,
            between_calls: Duration::from_secs(3),
            churn: false,
        }
    }

    /// A job whose processes use names. Most are small: mistakes show there too.
    pub(super) fn with_names(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed ^ 0x006e_616d_6573);
        let most = if rng.u32(..16) == 0 { 50 } else { 14 };
        let hosts = rng.u32(2..=7);
        let size = rng.u32(3.max(hosts)..=most);
        let on_death = if rng.bool() {
            OnDeath::Restart
        } else {
            OnDeath::Continue
        };
        let plan = Self::new(seed, None);
        let plan = Self {
            hosts,
            ranks: (0..size).map(|rank| rank * hosts / size).collect(),
            policy: Policy {
                on_death,
                ..plan.policy
            },
            names: size / 6 + 2,
            ..plan
        };
        match rng.u32(..3) {
            0 => plan.with_churn(&mut rng),
            _ => plan,
        }
    }

    /// Views that follow each other closely are not seen by chance: a host has to come or go while another, whose lease is good, does
    /// not hear of it, and somebody there has to read a name that was changed since.
    fn with_churn(self, rng: &mut Rng) -> Self {
        let hosts = rng.u32(3..=5);
        let size = hosts + rng.u32(..=3);
        Self {
            hosts,
            ranks: (0..size).map(|rank| rank * hosts / size).collect(),
            policy: Policy {
                max_restarts: 200,
                ..self.policy
            },
            names: 2,
            between_calls: Duration::from_millis(400),
            churn: true,
            ..self
        }
    }

    pub(super) fn layout(&self) -> Layout {
        // Nobody takes over from the root yet, so its host stays; it may be paused and cut off.
        let agents = (0..self.hosts).map(|host| Seat {
            may_crash: host > 0,
            ..Seat::on(HostId(host))
        });
        let processes = self.ranks.iter().map(|host| Seat {
            starts: false,
            ..Seat::on(HostId(*host))
        });
        let options = match self.churn {
            true => self.churning(),
            false => self.options(),
        };
        Layout {
            hosts: self.hosts,
            machines: agents.chain(processes).collect(),
            options,
        }
    }

    fn options(&self) -> Options {
        let pace = &self.pace;
        let short = Duration::from_millis(10);
        Options {
            faults: Faults::all(),
            trouble: pace.verdict() * 4,
            calm: pace.verdict() * 2 + Duration::from_secs(4),
            silence: pace.suspect,
            learning: pace.beat,
            dialling: pace.suspect,
            between: pace.beat..=pace.verdict() * 2,
            outage: short..=pace.verdict() * 3 / 2,
            pause: short..=pace.verdict() * 3 / 2,
            down: short..=pace.verdict(),
            events_max: 2_000_000,
            ..Options::default()
        }
    }

    /// Agents end and start again soon, and ways are cut for less than a lease.
    fn churning(&self) -> Options {
        let pace = &self.pace;
        let kinds = [
            Fault::Crash,
            Fault::Restart,
            Fault::CutOneWay,
            Fault::Partition,
            Fault::Break,
        ];
        Options {
            faults: Faults::of(&kinds),
            trouble: pace.verdict() * 2,
            between: pace.beat / 4..=pace.beat * 4,
            outage: pace.beat / 4..=pace.lease,
            down: Duration::from_millis(10)..=pace.beat,
            ..self.options()
        }
    }

    pub(super) fn has(&self, mistake: Mistake) -> bool {
        self.mistake == Some(mistake)
    }

    pub(super) fn agent(&self, host: u32) -> MachineId {
        MachineId(host)
    }

    pub(super) fn process(&self, rank: Rank) -> MachineId {
        MachineId(self.hosts + rank.0)
    }

    /// Whether a machine is an agent, of this host.
    pub(super) fn host_of_agent(&self, machine: MachineId) -> Option<u32> {
        (machine.0 < self.hosts).then_some(machine.0)
    }

    pub(super) fn rank(&self, machine: MachineId) -> Option<Rank> {
        machine.0.checked_sub(self.hosts).map(Rank)
    }

    /// The process that a life of a machine is, if it is one.
    pub(super) fn life(&self, place: Place) -> Option<ProcessId> {
        let rank = self.rank(place.machine)?;
        Some(ProcessId::new(rank, Incarnation(place.life.0)))
    }

    pub(super) fn host(&self, machine: MachineId) -> u32 {
        match self.rank(machine) {
            Some(rank) => self.ranks[rank.index()],
            None => machine.0,
        }
    }

    /// The ranks of each host: the first, and how many.
    pub(super) fn blocks(&self) -> impl Iterator<Item = (Host, Rank, u32)> + '_ {
        (0..self.hosts).filter_map(|host| {
            let first = self.ranks.iter().position(|one| *one == host)? as u32;
            let count = self.ranks.iter().filter(|one| **one == host).count() as u32;
            Some((Host(host), Rank(first), count))
        })
    }
}

/// Timers of agents, and of processes.
pub(super) const AGENT: u64 = 0;
pub(super) const ROOT: u64 = 1;
pub(super) const REDIAL: u64 = 2;
pub(super) const WORK: u64 = 3;
pub(super) const NAMES: u64 = 4;
/// And the rank that is to be ended.
pub(super) const KILL: u64 = 16;
