//! A network that the processes of a host attach to, as the job's file says.

use super::codec::{Reader, Writer};
use super::{DecodeError, MAX_PROCESSES, TooLarge};

/// A network of the job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Network {
    /// What the user calls it. Two processes reach each other over networks of one name.
    pub name: String,
    /// What carries it.
    pub carrier: Carrier,
    /// Names of interfaces, or subnets, in order of preference; if there are none, whatever others can reach.
    pub interfaces: Vec<String>,
    /// Whether its records are in clear after the handshake.
    pub trusted: bool,
    /// The connections that two gateways have with each other over it, if its hosts are far from each other; or 0.
    pub streams: u8,
    /// Bytes a second that a connection sends over it at most, if its hosts are far from each other; or 0.
    pub pace: u64,
    /// Through what its other hosts are dialled, if they are at another site.
    pub door: Option<Door>,
}

/// The gateway of a site, as the site's own jobs reach it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Door {
    /// Its address and port inside.
    pub at: String,
    /// Which job is met with which site: `render@b`.
    pub meeting: String,
}

/// What carries a network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Carrier {
    /// TCP, listening at this port; 0: any.
    Tcp {
        /// The port.
        port: u16,
    },
    /// libfabric.
    Ofi {
        /// Its provider; if empty, libfabric chooses.
        provider: String,
    },
}

impl Network {
    /// What a job without a file has: TCP, encrypted, over whatever interfaces there are.
    pub fn plain() -> Self {
        Self {
            name: "default".into(),
            carrier: Carrier::Tcp { port: 0 },
            interfaces: Vec::new(),
            trusted: false,
            streams: 0,
            pace: 0,
            door: None,
        }
    }

    /// The same, listening anywhere else: for who attaches to it once more on one host.
    #[must_use]
    pub fn elsewhere(&self) -> Self {
        let carrier = match &self.carrier {
            Carrier::Tcp { .. } => Carrier::Tcp { port: 0 },
            other => other.clone(),
        };
        Self {
            carrier,
            ..self.clone()
        }
    }

    /// The same, for one of the connections of two gateways, listening anywhere else. One of them is for what is short; the others share what the network carries.
    #[must_use]
    pub fn for_gateways(&self) -> Self {
        let others = u64::from(self.streams).saturating_sub(1);
        Self {
            pace: self.pace.div_ceil(others.max(1)),
            ..self.elsewhere()
        }
    }

    pub(super) fn encode_all(networks: &[Self], w: &mut Writer<'_>) -> Result<(), TooLarge> {
        if networks.len() > MAX_NETWORKS {
            return Err(TooLarge);
        }
        w.count(networks.len())?;
        networks.iter().try_for_each(|network| network.encode(w))
    }

    pub(super) fn decode_all(r: &mut Reader<'_>) -> Result<Vec<Self>, DecodeError> {
        let networks = r.list(Self::decode)?;
        if networks.len() > MAX_NETWORKS {
            return Err(DecodeError::Value);
        }
        Ok(networks)
    }

    fn encode(&self, w: &mut Writer<'_>) -> Result<(), TooLarge> {
        if self.interfaces.len() > MAX_INTERFACES {
            return Err(TooLarge);
        }
        w.text(&self.name, MAX_WORD)?;
        match &self.carrier {
            Carrier::Tcp { port } => {
                w.u8(1);
                w.u32(u32::from(*port));
            }
            Carrier::Ofi { provider } => {
                w.u8(2);
                w.text(provider, MAX_WORD)?;
            }
        }
        w.count(self.interfaces.len())?;
        for interface in &self.interfaces {
            w.text(interface, MAX_WORD)?;
        }
        w.u8(u8::from(self.trusted));
        w.u8(self.streams);
        w.u64(self.pace);
        w.u8(u8::from(self.door.is_some()));
        if let Some(door) = &self.door {
            w.text(&door.at, MAX_WORD)?;
            w.text(&door.meeting, MAX_MEETING)?;
        }
        Ok(())
    }

    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let network = Self {
            name: r.text(MAX_WORD)?,
            carrier: match r.u8()? {
                1 => {
                    let port = u16::try_from(r.u32()?).map_err(|_| DecodeError::Value)?;
                    Carrier::Tcp { port }
                }
                2 => Carrier::Ofi {
                    provider: r.text(MAX_WORD)?,
                },
                kind => return Err(DecodeError::Kind(kind)),
            },
            interfaces: r.list(|r| r.text(MAX_WORD))?,
            trusted: flag(r)?,
            streams: r.u8()?,
            pace: r.u64()?,
            door: match flag(r)? {
                true => Some(Door {
                    at: r.text(MAX_WORD)?,
                    meeting: r.text(MAX_MEETING)?,
                }),
                false => None,
            },
        };
        if !is_name(&network.name)
            || network.interfaces.len() > MAX_INTERFACES
            || network.streams > MAX_STREAMS
        {
            return Err(DecodeError::Value);
        }
        Ok(network)
    }
}

/// What a network spans of the channel that everybody is on: hosts that reach each other over it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// The network.
    pub network: String,
    /// The hosts on it: ranges of their numbers, the end not among them.
    pub hosts: Vec<(u32, u32)>,
    /// Whether it is [trusted](Network::trusted).
    pub trusted: bool,
}

impl Span {
    pub(super) fn encode_all(spans: &[Self], w: &mut Writer<'_>) -> Result<(), TooLarge> {
        let ranges: usize = spans.iter().map(|span| span.hosts.len()).sum();
        if spans.len() > MAX_SPANS || ranges > MAX_RANGES {
            return Err(TooLarge);
        }
        w.count(spans.len())?;
        for span in spans {
            w.text(&span.network, MAX_WORD)?;
            w.count(span.hosts.len())?;
            for (first, end) in &span.hosts {
                w.u32(*first);
                w.u32(*end);
            }
            w.u8(span.trusted.into());
        }
        Ok(())
    }

    pub(super) fn decode_all(r: &mut Reader<'_>) -> Result<Vec<Self>, DecodeError> {
        let spans = r.list(|r| {
            let network = r.text(MAX_WORD)?;
            let hosts = r.list(|r| Ok((r.u32()?, r.u32()?)))?;
            let trusted = flag(r)?;
            Ok(Self {
                network,
                hosts,
                trusted,
            })
        })?;
        let ranges: usize = spans.iter().map(|span| span.hosts.len()).sum();
        let all = spans.iter().flat_map(|span| &span.hosts);
        let is_sound = |(first, end): &(u32, u32)| first < end && *end <= MAX_PROCESSES;
        if spans.len() > MAX_SPANS || ranges > MAX_RANGES || !all.clone().all(is_sound) {
            return Err(DecodeError::Value);
        }
        Ok(spans)
    }
}

/// The longest name of a meeting: two names of 63 characters, and what is between them.
const MAX_MEETING: usize = 127;

/// Whether something may be called so. Names go into locators, where they end at an equals sign.
pub(super) fn is_name(name: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !name.is_empty() && name.chars().all(is_letter)
}

pub(super) fn flag(r: &mut Reader<'_>) -> Result<bool, DecodeError> {
    match r.u8()? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(DecodeError::Value),
    }
}

/// The most networks of a process: each is a driver, and a part of its locator.
pub const MAX_NETWORKS: usize = 8;
/// The most networks of a channel.
pub const MAX_SPANS: usize = 64;
/// The most ranges of hosts in all of them.
pub const MAX_RANGES: usize = 1024;
/// The most interfaces that a network names.
pub const MAX_INTERFACES: usize = 16;
/// Connections of two gateways over a network.
pub const MAX_STREAMS: u8 = 16;
/// The longest name of a network, a channel, a provider or an interface.
pub(super) const MAX_WORD: usize = 64;
