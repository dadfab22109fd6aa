//! Which gateways there are, and where: told by the agent, read by whoever sends through them.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use mizzen_driver::{Locator, PeerId};
use mizzen_proto::membership::{AgentId, HostId};
use rustix::event::{EventfdFlags, eventfd};

use crate::peer::Who;

/// The gateways of a job, as far as they are known. It may change at any time.
#[derive(Debug)]
pub struct Directory {
    gateways: Mutex<BTreeMap<HostId, GatewayAt>>,
    version: AtomicU64,
    bell: OwnedFd,
}

/// Where a gateway is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayAt {
    /// Whose agent it is in.
    pub agent: AgentId,
    /// Where it is reached, by network.
    pub at: BTreeMap<String, Locator>,
}

impl GatewayAt {
    /// Reads where a gateway is out of an agent's locator, `site=10.0.0.1:4000;@site=10.0.0.1:4001`: the parts that begin with an at sign. None, if
    /// there is none.
    ///
    /// ```
    /// use mizzen_networks::GatewayAt;
    /// use mizzen_proto::membership::{AgentId, HostId};
    ///
    /// let agent = AgentId::new(HostId(2), 1);
    /// let gateway = GatewayAt::parse(agent, "site=10.0.0.1:4000;@site=10.0.0.1:4001").unwrap();
    /// assert_eq!(gateway.at["site"].as_str(), "10.0.0.1:4001");
    /// assert_eq!(GatewayAt::parse(agent, "site=10.0.0.1:4000"), None);
    /// ```
    #[must_use]
    pub fn parse(agent: AgentId, locator: &str) -> Option<Self> {
        let parts = locator.split(';').filter_map(|part| part.split_once('='));
        let ours = parts.filter_map(|(name, at)| Some((name.strip_prefix(MARK)?, at)));
        let mut at: BTreeMap<String, Locator> = BTreeMap::new();
        for (name, place) in ours {
            let (first, ports) = place.split_once(STREAM).unwrap_or((place, ""));
            let Ok(first) = Locator::new(first) else {
                continue;
            };
            let ports = ports.split(',').filter(|port| !port.is_empty());
            for (stream, port) in (1..=u8::MAX).zip(ports) {
                if let Ok(place) = Locator::new(&at_port(&first, port)) {
                    at.insert(stream_name(name, stream), place);
                }
            }
            at.insert(name.to_owned(), first);
        }
        (!at.is_empty()).then_some(Self { agent, at })
    }

    /// What [`parse`](Self::parse) reads.
    #[must_use]
    pub fn text(&self) -> String {
        let networks = self.at.iter().filter(|(name, _)| !name.contains(STREAM));
        let parts = networks.map(|(name, first)| {
            // Those of one network differ only in their ports: there may be many, and little room.
            let others = (1..=u8::MAX).map_while(|stream| self.at.get(&stream_name(name, stream)));
            let ports = others.filter_map(|at| Some(at.as_str().rsplit_once(':')?.1));
            match ports.collect::<Vec<_>>()[..] {
                [] => format!("{MARK}{name}={first}"),
                ref ports => format!("{MARK}{name}={first}{STREAM}{}", ports.join(",")),
            }
        });
        parts.collect::<Vec<_>>().join(";")
    }
}

impl Directory {
    /// An empty one.
    ///
    /// # Errors
    ///
    /// If the system refuses a descriptor.
    pub fn new() -> std::io::Result<Arc<Self>> {
        Ok(Arc::new(Self {
            gateways: Mutex::default(),
            version: AtomicU64::new(0),
            bell: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
        }))
    }

    /// There is a gateway; or, without one, there is none any more.
    pub fn set(&self, host: HostId, gateway: Option<GatewayAt>) {
        let mut known = self.gateways.lock().unwrap_or_else(PoisonError::into_inner);
        let before = match &gateway {
            Some(new) => known.insert(host, new.clone()),
            None => known.remove(&host),
        };
        if before != gateway {
            self.version.fetch_add(1, Ordering::Release);
            // A full counter is readable, too.
            let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
        }
    }

    /// All of them, if they have changed since this version.
    pub(crate) fn since(&self, version: &mut u64) -> Option<BTreeMap<HostId, GatewayAt>> {
        if self.version.load(Ordering::Acquire) == *version {
            return None;
        }
        let known = self.gateways.lock().unwrap_or_else(PoisonError::into_inner);
        *version = self.version.load(Ordering::Acquire);
        let _ = rustix::io::read(&self.bell, &mut [0; 8]);
        Some(known.clone())
    }
}

/// Readable while there is news.
impl AsFd for Directory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

/// What gateways call one of the connections that they have with each other over a network: the first is called as the network, which processes know.
///
/// ```
/// assert_eq!(mizzen_networks::stream_name("wan", 0), "wan");
/// assert_eq!(mizzen_networks::stream_name("wan", 2), "wan#2");
/// ```
#[must_use]
pub fn stream_name(network: &str, stream: u8) -> String {
    match stream {
        0 => network.to_owned(),
        _ => format!("{network}{STREAM}{stream}"),
    }
}

/// The same addresses, with another port.
fn at_port(locator: &Locator, port: &str) -> String {
    let all = locator.as_str().split(',');
    let all = all.map(|one| match one.rsplit_once(':') {
        Some((address, _)) => format!("{address}:{port}"),
        None => one.to_owned(),
    });
    all.collect::<Vec<_>>().join(",")
}

/// The gateway that drivers call so, among these.
pub(crate) fn find(known: &BTreeMap<HostId, GatewayAt>, peer: PeerId) -> Option<&GatewayAt> {
    let Who::Agent(agent) = Who::from(peer) else {
        return None;
    };
    known.get(&agent.host).filter(|one| one.agent == agent)
}

/// What stands before a network's name where a gateway is meant.
const MARK: char = '@';
/// What stands between a network's name and the number of a connection.
const STREAM: char = '#';

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_connections_take_little_room() {
        let agent = AgentId::new(HostId(2), 1);
        let place = |port: u16| format!("10.81.0.11:{port},[fd00::11]:{port}");
        let mut at = BTreeMap::new();
        for stream in 0..16_u8 {
            let place = Locator::new(&place(40_000 + u16::from(stream))).unwrap();
            at.insert(stream_name("wan", stream), place);
        }
        at.insert("wan2".into(), Locator::new("h").unwrap());
        let gateway = GatewayAt { agent, at };
        let text = gateway.text();
        assert!(text.len() < 150, "{text}");
        assert_eq!(GatewayAt::parse(agent, &text), Some(gateway));
        // Whoever says it.
        let many = format!("@wan=h:1#{}", "7,".repeat(300));
        for text in [
            "@wan=#7",
            "@wan=#",
            "@=h#1",
            "@=",
            "@wan=h#1,,2",
            "@wan=h:1#x",
            &many,
        ] {
            let _ = GatewayAt::parse(agent, text);
        }
    }
}
