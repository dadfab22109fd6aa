//! Who is where in a job, for a program that asks.

use super::codec::{Reader, Writer};
use super::network::{MAX_WORD, flag};
use super::{DecodeError, MAX_CLUSTER, MAX_FRAME, MAX_HOST, MAX_LIST, MAX_PROCESSES, TooLarge};

/// The hosts of a job, and what they share. Networks and hosts are named by their places in these lists.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Topology {
    /// The networks.
    pub networks: Vec<NetworkOf>,
    /// The channels, the one that everybody is on first.
    pub channels: Vec<ChannelOf>,
    /// The hosts, in the order in which the user gave them.
    pub hosts: Vec<HostOf>,
}

/// A network of the job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkOf {
    /// What the user calls it.
    pub name: String,
    /// What carries it.
    pub driver: String,
    /// Whether what goes over it is encrypted.
    pub is_sealed: bool,
    /// What a short message takes, in nanoseconds: the software, not the cable.
    pub latency: u64,
    /// Bytes a second, in the same way.
    pub rate: u64,
}

/// A channel of the job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelOf {
    /// What the user calls it.
    pub name: String,
    /// For each of its parts the network, and ranges of the hosts on it, the end not among them.
    pub parts: Vec<(u32, Vec<(u32, u32)>)>,
}

/// A host of the job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostOf {
    /// What the user calls it.
    pub name: String,
    /// The cluster it is in.
    pub cluster: String,
    /// The ranks on it: ranges, the end not among them.
    pub ranks: Vec<(u32, u32)>,
    /// The networks it is on.
    pub networks: Vec<u32>,
    /// Whether it hands on between its networks.
    pub is_gateway: bool,
}

impl Topology {
    /// As bytes.
    ///
    /// # Errors
    ///
    /// [`TooLarge`] if there are more of something than a frame may hold.
    pub fn encode(&self) -> Result<Vec<u8>, TooLarge> {
        let mut out = Vec::new();
        let w = &mut Writer { out: &mut out };
        w.count(self.networks.len())?;
        for network in &self.networks {
            w.text(&network.name, MAX_WORD)?;
            w.text(&network.driver, MAX_WORD)?;
            w.u8(u8::from(network.is_sealed));
            w.u64(network.latency);
            w.u64(network.rate);
        }
        w.count(self.channels.len())?;
        for channel in &self.channels {
            w.text(&channel.name, MAX_WORD)?;
            w.count(channel.parts.len())?;
            for (network, hosts) in &channel.parts {
                w.u32(*network);
                ranges(hosts, w)?;
            }
        }
        w.count(self.hosts.len())?;
        for host in &self.hosts {
            w.text(&host.name, MAX_HOST)?;
            w.text(&host.cluster, MAX_CLUSTER)?;
            ranges(&host.ranks, w)?;
            w.count(host.networks.len())?;
            host.networks.iter().for_each(|network| w.u32(*network));
            w.u8(u8::from(host.is_gateway));
        }
        match out.len() <= MAX_TOPOLOGY {
            true => Ok(out),
            false => Err(TooLarge),
        }
    }

    /// From bytes that came from somebody.
    ///
    /// # Errors
    ///
    /// See [`DecodeError`].
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let topology = Reader::whole(bytes, MAX_TOPOLOGY, |r| {
            Ok(Self {
                networks: r.list(|r| {
                    Ok(NetworkOf {
                        name: r.text(MAX_WORD)?,
                        driver: r.text(MAX_WORD)?,
                        is_sealed: flag(r)?,
                        latency: r.u64()?,
                        rate: r.u64()?,
                    })
                })?,
                channels: r.list(|r| {
                    Ok(ChannelOf {
                        name: r.text(MAX_WORD)?,
                        parts: r.list(|r| Ok((r.u32()?, read_ranges(r)?)))?,
                    })
                })?,
                hosts: r.list(|r| {
                    Ok(HostOf {
                        name: r.text(MAX_HOST)?,
                        cluster: r.text(MAX_CLUSTER)?,
                        ranks: read_ranges(r)?,
                        networks: r.list(Reader::u32)?,
                        is_gateway: flag(r)?,
                    })
                })?,
            })
        })?;
        let is_network = |network: &u32| (*network as usize) < topology.networks.len();
        let parts = topology.channels.iter().flat_map(|channel| &channel.parts);
        let mut named = parts
            .map(|(network, _)| network)
            .chain(topology.hosts.iter().flat_map(|host| &host.networks));
        match named.all(is_network) {
            true => Ok(topology),
            false => Err(DecodeError::Value),
        }
    }
}

fn ranges(all: &[(u32, u32)], w: &mut Writer<'_>) -> Result<(), TooLarge> {
    w.count(all.len())?;
    for (first, end) in all {
        w.u32(*first);
        w.u32(*end);
    }
    Ok(())
}

fn read_ranges(r: &mut Reader<'_>) -> Result<Vec<(u32, u32)>, DecodeError> {
    let all = r.list(|r| Ok((r.u32()?, r.u32()?)))?;
    let is_sound = |(first, end): &(u32, u32)| first < end && *end <= MAX_PROCESSES;
    match all.len() <= MAX_LIST && all.iter().all(is_sound) {
        true => Ok(all),
        false => Err(DecodeError::Value),
    }
}

/// The longest topology.
pub const MAX_TOPOLOGY: usize = MAX_FRAME / 2;
/// How much of it one packet holds.
pub const TOPOLOGY_PAGE: usize = 32 * 1024;
