//! A network that the processes of a host attach to, as the job's file says.

use super::codec::{Reader, Writer};
use super::{DecodeError, TooLarge};

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
        };
        // Names go into locators, where they end at an equals sign.
        let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let is_named = !network.name.is_empty() && network.name.chars().all(is_name);
        if !is_named || network.interfaces.len() > MAX_INTERFACES {
            return Err(DecodeError::Value);
        }
        Ok(network)
    }
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
/// The most interfaces that a network names.
pub const MAX_INTERFACES: usize = 16;
/// The longest name of a network, a provider or an interface.
const MAX_WORD: usize = 64;
