//! What is to be measured, as the front end tells it to the sides.

use std::fmt;
use std::net::IpAddr;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// What a process started by the front end has to do.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Work {
    /// Measure, as one side of two or one process of many.
    Measure(Box<Plan>),
    /// Join the job and leave: the least that a started process does.
    Join,
    /// Nothing: what any process costs.
    Nothing,
}

/// One job of measurements over one path.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub(crate) test: Test,
    pub(crate) path: Path,
    pub(crate) variant: Variant,
    pub(crate) sizes: Vec<usize>,
    /// Pairs of threads.
    pub(crate) threads: Vec<u32>,
    /// How many processes wait or are started, or form a group.
    pub(crate) processes: u32,
    /// What members of a group do together.
    pub(crate) operations: Vec<Collective>,
    /// How many members of a group each process has: threads, if several.
    pub(crate) members_each: u32,
    /// Whether all ways of the operations are measured, to see which should be chosen.
    pub(crate) grid: bool,
    pub(crate) runs: u32,
    /// The cores of the two sides; none: the system chooses.
    pub(crate) cores: Vec<usize>,
    /// The two hosts of a path over a network.
    pub(crate) places: Vec<Place>,
    /// What runs a command on one of them.
    pub(crate) remote_shell: String,
    /// The provider of libfabric; empty: its choice.
    pub(crate) provider: String,
    /// What makes the authority of the bare TLS connection, in hexadecimal. It protects nothing.
    pub(crate) authority: String,
    /// Where the memory for the floors is found, when it is there.
    pub(crate) memory: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Test {
    /// One-way time of a message: the first side sends, the second answers.
    Latency,
    /// Short messages per second in one direction.
    Rate,
    /// Bytes per second in one direction.
    Bandwidth,
    /// Round trip of a call to a service, by one caller that waits; see `--in-flight`.
    Rpc,
    /// Pairs of threads that all exchange short messages at once.
    Threads,
    /// Pairs of threads, each of which streams short messages one way.
    Streams,
    /// Processor time of processes that wait for a message.
    Idle,
    /// Time from the start to the end of a job of many processes.
    Startup,
    /// Time of an operation that all members of a group do together, at the slowest of them.
    Collectives,
}

/// What members of a group do together. Those with a root have each member in turn as their root.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Collective {
    Barrier,
    Broadcast,
    BroadcastLent,
    Reduce,
    AllReduce,
    AllReduceLent,
    Gather,
    Scatter,
    AllGather,
    AllToAll,
    ReduceScatter,
    Scan,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Path {
    /// Between two threads of a process.
    Thread,
    /// Between two processes of this host.
    Process,
    /// Between two processes of different hosts: TCP on a network declared trusted, so not encrypted.
    Tcp,
    /// The same, encrypted.
    Tls,
    /// Between two processes of different hosts: libfabric.
    Ofi,
}

/// One of the two hosts of a path over a network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Place {
    pub(crate) host: String,
    pub(crate) address: IpAddr,
}

/// What is done otherwise than plainly.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Variant {
    pub(crate) post: bool,
    pub(crate) lent: bool,
    pub(crate) packed: bool,
    pub(crate) separate: bool,
    pub(crate) asleep: bool,
    pub(crate) idle_lanes: u32,
    /// Calls that one caller has under way; 0: it waits for each.
    pub(crate) in_flight: u32,
}

impl Plan {
    /// How many take part: processes, or threads of some.
    pub(crate) fn participants(&self) -> u32 {
        match self.test {
            Test::Idle => self.processes,
            Test::Collectives => self.processes * self.members_each,
            _ => 2,
        }
    }

    /// How many processes the job has.
    pub(crate) fn job_size(&self) -> u32 {
        match self.test {
            Test::Startup | Test::Collectives => self.processes,
            _ => self.participants(),
        }
    }
}

impl Test {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Latency => "latency",
            Self::Rate => "rate",
            Self::Bandwidth => "bandwidth",
            Self::Rpc => "rpc",
            Self::Threads => "threads",
            Self::Streams => "streams",
            Self::Idle => "idle",
            Self::Startup => "startup",
            Self::Collectives => "collectives",
        }
    }
}

impl Collective {
    /// Those for which a group has to choose.
    pub(crate) const WITH_SEVERAL_WAYS: [Self; 7] = [
        Self::Broadcast,
        Self::Reduce,
        Self::AllReduce,
        Self::Gather,
        Self::Scatter,
        Self::AllGather,
        Self::ReduceScatter,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Barrier => "barrier",
            Self::Broadcast => "broadcast",
            Self::BroadcastLent => "broadcast-lent",
            Self::Reduce => "reduce",
            Self::AllReduce => "all-reduce",
            Self::AllReduceLent => "all-reduce-lent",
            Self::Gather => "gather",
            Self::Scatter => "scatter",
            Self::AllGather => "all-gather",
            Self::AllToAll => "all-to-all",
            Self::ReduceScatter => "reduce-scatter",
            Self::Scan => "scan",
        }
    }
}

impl Path {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Thread => "thread",
            Self::Process => "process",
            Self::Tcp => "tcp",
            Self::Tls => "tls",
            Self::Ofi => "ofi",
        }
    }

    pub(crate) fn is_network(self) -> bool {
        matches!(self, Self::Tcp | Self::Tls | Self::Ofi)
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = [
            (self.post, "post"),
            (self.lent, "lent"),
            (self.packed, "packed"),
            (self.separate, "separate"),
            (self.asleep, "asleep"),
        ];
        let mut words: Vec<String> = named
            .iter()
            .filter(|(on, _)| *on)
            .map(|(_, word)| (*word).to_owned())
            .collect();
        if self.idle_lanes > 0 {
            words.push(format!("idle-lanes={}", self.idle_lanes));
        }
        if self.in_flight > 0 {
            words.push(format!("in-flight={}", self.in_flight));
        }
        f.write_str(&words.join(","))
    }
}
