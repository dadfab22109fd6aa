//! A network of the job, as the file describes it.

use std::collections::BTreeSet;

use crate::Interface;

/// A network: what carries messages between some hosts, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Network {
    /// What it is called. No other network of the file has this name.
    pub name: String,
    /// What moves the messages.
    pub driver: Driver,
    /// The hosts that are on it.
    pub hosts: Hosts,
    /// What to use on each host, in order of preference; if empty, whatever can be reached.
    pub interfaces: Vec<Interface>,
    /// Who can listen.
    pub security: Security,
    /// The connections that two gateways have with each other over it, if its hosts are far from each other.
    pub streams: Option<u8>,
    /// What two gateways send each other over it at most, in Mbit/s, if they are far from each other.
    pub rate: Option<u64>,
}

impl Network {
    /// Whether its hosts are far from each other.
    #[must_use]
    pub fn is_far(&self) -> bool {
        self.streams.is_some() || self.rate.is_some()
    }
}

/// What moves the messages of a network.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Driver {
    /// TCP.
    Tcp {
        /// Where processes listen; 0 stands for any free port.
        port: u16,
    },
    /// libfabric.
    Ofi {
        /// The provider; if there is none, libfabric chooses.
        provider: Option<String>,
    },
}

/// The hosts on a network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hosts {
    /// All hosts of the job.
    All,
    /// These, and no other.
    Only(BTreeSet<String>),
}

/// Who can listen on a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Security {
    /// Anybody: messages are encrypted, and each end proves who it is.
    Tls,
    /// Nobody else, as the file declares: messages are not encrypted.
    Trusted,
}

impl Hosts {
    /// Whether a host is among them.
    ///
    /// ```
    /// use mizzen_config::Hosts;
    ///
    /// let pair = Hosts::Only(["a".to_owned(), "b".to_owned()].into());
    /// assert!(Hosts::All.contains("c") && pair.contains("b") && !pair.contains("c"));
    /// ```
    pub fn contains(&self, host: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(hosts) => hosts.contains(host),
        }
    }
}
