//! The first frame to an agent: its part of the job.

use super::channel::Channel;
use super::codec::{Reader, Writer, check_hosts};
use super::network::{Network, Span, flag};
use super::{
    DecodeError, MAX_CLUSTER, MAX_FRAME, MAX_HOST, MAX_PROCESSES, MAX_SECRET, Secret, TooLarge,
};

/// What an agent needs to start its part of a job.
#[derive(Clone, PartialEq, Eq)]
pub struct Start {
    /// The job, by a random number.
    pub job: u128,
    /// How many processes the job has.
    pub size: u32,
    /// The agent's host, as the user calls it.
    pub host: String,
    /// How many hosts the job runs on.
    pub hosts: u32,
    /// Where its processes listen for other hosts; empty: they choose.
    pub bind: String,
    /// The processes to start.
    pub ranks: Vec<u32>,
    /// The program, as the user gave it.
    pub program: Vec<u8>,
    /// Its arguments, without its name.
    pub args: Vec<Vec<u8>>,
    /// All of its environment.
    pub env: Vec<(Vec<u8>, Vec<u8>)>,
    /// Its working directory.
    pub cwd: Vec<u8>,
    /// What the death of a process does to the job.
    pub on_death: OnDeath,
    /// The networks to attach to, in order of preference.
    pub networks: Vec<Network>,
    /// Which hosts share which networks, if some reach others through gateways only; else empty.
    pub spans: Vec<Span>,
    /// The networks that only channels use which programs name.
    pub others: Vec<Network>,
    /// The channels that programs may name.
    pub channels: Vec<Channel>,
    /// Whether the agent hands on between the networks of its host.
    pub is_gateway: bool,
    /// Whether to tell over which paths others are reached.
    pub show_paths: bool,
    /// After how long a wait of a process is told to the launcher, in milliseconds; 0: never.
    pub overdue_ms: u64,
    /// The name of the cluster.
    pub cluster: String,
    /// Its part in who decides.
    pub part: Part,
    /// What makes the job's authority, if the job has several hosts.
    pub authority: Secret,
}

/// The part of an agent in who decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Which host this is, from 0: the agent of the first one is the root.
    pub number: u32,
    /// How patient agents are with each other.
    pub pace: Preset,
    /// How many times processes are started again, all together.
    pub max_restarts: u32,
    /// To the root: how many ranks each host has, in order of hosts and ranks; 0 for gateways that carry none. Empty to others.
    pub placed: Vec<u32>,
}

/// How patient agents are with each other: a preset of `membership::Pace`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preset {
    /// A host is given up soon.
    Fast,
    /// As most jobs want it.
    Default,
    /// Networks that are repaired meanwhile.
    Patient,
}

/// What the death of a process does to the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnDeath {
    /// The others are ended.
    Stop,
    /// The others go on.
    Continue,
    /// It is started again.
    Restart,
}

impl Start {
    pub(super) fn encode(&self, w: &mut Writer<'_>) -> Result<(), TooLarge> {
        w.u128(self.job);
        w.u32(self.size);
        w.text(&self.host, MAX_HOST)?;
        w.u32(self.hosts);
        w.text(&self.bind, MAX_HOST)?;
        w.count(self.ranks.len())?;
        for rank in &self.ranks {
            w.u32(*rank);
        }
        w.bytes(&self.program, MAX_FRAME)?;
        w.count(self.args.len())?;
        for arg in &self.args {
            w.bytes(arg, MAX_FRAME)?;
        }
        w.count(self.env.len())?;
        for (name, value) in &self.env {
            w.bytes(name, MAX_FRAME)?;
            w.bytes(value, MAX_FRAME)?;
        }
        w.bytes(&self.cwd, MAX_FRAME)?;
        w.u8(match self.on_death {
            OnDeath::Stop => 1,
            OnDeath::Continue => 2,
            OnDeath::Restart => 3,
        });
        Network::encode_all(&self.networks, w)?;
        Span::encode_all(&self.spans, w)?;
        Network::encode_all(&self.others, w)?;
        Channel::encode_all(&self.channels, w)?;
        w.u8(u8::from(self.is_gateway));
        w.u8(u8::from(self.show_paths));
        w.u64(self.overdue_ms);
        w.text(&self.cluster, MAX_CLUSTER)?;
        self.part.encode(w)?;
        // The last: the buffer must not grow, and leave a copy behind, once it is there.
        w.bytes(self.authority.as_bytes(), MAX_SECRET)
    }

    pub(super) fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let start = Self {
            job: r.u128()?,
            size: r.u32()?,
            host: r.text(MAX_HOST)?,
            hosts: r.u32()?,
            bind: r.text(MAX_HOST)?,
            ranks: r.list(Reader::u32)?,
            program: r.bytes(MAX_FRAME)?,
            args: r.list(|r| r.bytes(MAX_FRAME))?,
            env: r.list(|r| Ok((r.bytes(MAX_FRAME)?, r.bytes(MAX_FRAME)?)))?,
            cwd: r.bytes(MAX_FRAME)?,
            on_death: match r.u8()? {
                1 => OnDeath::Stop,
                2 => OnDeath::Continue,
                3 => OnDeath::Restart,
                kind => return Err(DecodeError::Kind(kind)),
            },
            networks: Network::decode_all(r)?,
            spans: Span::decode_all(r)?,
            others: Network::decode_all(r)?,
            channels: Channel::decode_all(r)?,
            is_gateway: flag(r)?,
            show_paths: flag(r)?,
            overdue_ms: r.u64()?,
            cluster: r.text(MAX_CLUSTER)?,
            part: Part::decode(r)?,
            authority: Secret::new(r.bytes(MAX_SECRET)?),
        };
        let in_order = start.ranks.windows(2).all(|pair| pair[0] < pair[1]);
        let has_gateways = !start.spans.is_empty();
        let in_job = match start.ranks.last() {
            Some(last) => *last < start.size,
            // A gateway may carry none.
            None => has_gateways && start.is_gateway && start.part.number > 0,
        };
        let is_placed = start.part.fits(start.hosts, start.size, has_gateways);
        if start.size > MAX_PROCESSES || !in_order || !in_job || !is_placed {
            return Err(DecodeError::Value);
        }
        check_hosts(
            start.hosts,
            start.size,
            has_gateways,
            start.authority.as_bytes(),
        )?;
        Ok(start)
    }
}

impl Preset {
    pub(super) fn encode(self, w: &mut Writer<'_>) {
        w.u8(match self {
            Self::Fast => 1,
            Self::Default => 2,
            Self::Patient => 3,
        });
    }

    pub(super) fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match r.u8()? {
            1 => Ok(Self::Fast),
            2 => Ok(Self::Default),
            3 => Ok(Self::Patient),
            kind => Err(DecodeError::Kind(kind)),
        }
    }
}

impl Part {
    fn encode(&self, w: &mut Writer<'_>) -> Result<(), TooLarge> {
        w.u32(self.number);
        self.pace.encode(w);
        w.u32(self.max_restarts);
        w.count(self.placed.len())?;
        self.placed.iter().for_each(|count| w.u32(*count));
        Ok(())
    }

    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            number: r.u32()?,
            pace: Preset::decode(r)?,
            max_restarts: r.u32()?,
            placed: r.list(Reader::u32)?,
        })
    }

    /// Whether it is a part of a job of so many hosts and processes.
    fn fits(&self, hosts: u32, size: u32, has_gateways: bool) -> bool {
        let placed: u64 = self.placed.iter().copied().map(u64::from).sum();
        let whole = self.placed.len() as u64 == u64::from(hosts)
            && placed == u64::from(size)
            && (has_gateways && self.placed.first() != Some(&0) || !self.placed.contains(&0));
        match self.number {
            0 => whole,
            number => number < hosts && self.placed.is_empty(),
        }
    }
}

/// Without the secret and the environment: what is printed may end in a log.
impl std::fmt::Debug for Start {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Start")
            .field("job", &format_args!("{:032x}", self.job))
            .field("size", &self.size)
            .field("host", &self.host)
            .field("hosts", &self.hosts)
            .field("bind", &self.bind)
            .field("ranks", &self.ranks)
            .field("program", &String::from_utf8_lossy(&self.program))
            .field("cluster", &self.cluster)
            .field("on_death", &self.on_death)
            .finish_non_exhaustive()
    }
}
