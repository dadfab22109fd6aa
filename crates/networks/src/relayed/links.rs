//! The links with gateways: who is dialled, what may be sent there, which of them leads to a host.

use std::collections::{BTreeMap, BTreeSet};
use std::io::IoSlice;
use std::time::Duration;

use mizzen_driver::{Driver, PeerId, Refused};
use mizzen_proto::id::ProcessId;
use mizzen_proto::membership::HostId;
use mizzen_proto::relay::{Credit, FragmentHeader, Grant, Lane, Word};
use mizzen_proto::route::Table;
use mizzen_proto::time::Time;

use crate::directory::{GatewayAt, find};
use crate::peer::agent_id;
use crate::ways::Ways;

/// A driver of one of the networks, for gateways only.
pub(super) struct Inner {
    pub(super) network: String,
    pub(super) driver: Box<dyn Driver>,
}

/// A gateway over one of the networks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Via {
    pub(super) inner: usize,
    pub(super) gateway: PeerId,
}

#[derive(Debug)]
pub(super) struct Links {
    host: HostId,
    ways: Ways,
    table: Table,
    known: BTreeMap<HostId, GatewayAt>,
    links: BTreeMap<Via, Link>,
    /// Those that are not there: when they are dialled, or `None` while they are.
    missing: BTreeMap<Via, Option<Time>>,
    /// Where fragments are sealed.
    pub(super) room: Vec<u8>,
}

#[derive(Debug)]
struct Link {
    host: HostId,
    credit: Credit,
    /// Its driver has no room.
    is_busy: bool,
    /// What is to be said when it has, the newest for each end.
    words: BTreeMap<ProcessId, Word>,
}

/// What became of a fragment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sent {
    Yes,
    /// Not now: the gateway, or its driver, has no room.
    No,
}

impl Links {
    pub(super) fn new(host: HostId, ways: Ways) -> Self {
        let table = ways.table(host, |_| false, |_| false);
        Self {
            host,
            ways,
            table,
            known: BTreeMap::new(),
            links: BTreeMap::new(),
            missing: BTreeMap::new(),
            room: Vec::new(),
        }
    }

    /// There are other gateways than before. Returns the links that are no more.
    pub(super) fn handle_news(
        &mut self,
        known: BTreeMap<HostId, GatewayAt>,
        inner: &mut [Inner],
        now: Time,
    ) -> Vec<Via> {
        self.known = known;
        let mut wanted = BTreeSet::new();
        for (index, Inner { network, .. }) in inner.iter().enumerate() {
            for (host, gateway) in &self.known {
                // That of our own host has no way that we do not have.
                if gateway.at.contains_key(network) && *host != self.host {
                    let gateway = agent_id(gateway.agent);
                    wanted.insert(Via {
                        inner: index,
                        gateway,
                    });
                }
            }
        }
        let of_before = self.links.keys().chain(self.missing.keys());
        let gone: Vec<Via> = of_before
            .copied()
            .filter(|via| !wanted.contains(via))
            .collect();
        for via in &gone {
            inner[via.inner].driver.disconnect(via.gateway);
            self.links.remove(via);
            self.missing.remove(via);
        }
        for via in wanted {
            if !self.links.contains_key(&via) {
                self.missing.entry(via).or_insert(Some(now));
            }
        }
        self.find_ways();
        gone
    }

    /// Dials who is missing.
    pub(super) fn dial(&mut self, inner: &mut [Inner], now: Time) {
        let due = |at: &Option<Time>| at.is_some_and(|at| at <= now);
        for (via, at) in self.missing.iter_mut().filter(|(_, at)| due(at)) {
            let Inner { network, driver } = &mut inner[via.inner];
            let gateway = find(&self.known, via.gateway);
            let locator = gateway.and_then(|gateway| gateway.at.get(network));
            let dialled =
                locator.is_some_and(|locator| driver.connect(via.gateway, locator).is_ok());
            *at = (!dialled).then(|| now + AGAIN);
        }
    }

    /// When to dial again.
    pub(super) fn next_dial(&self) -> Option<Time> {
        self.missing.values().filter_map(|at| *at).min()
    }

    /// A link is there. `false` if it is none of ours: it is to be ended.
    pub(super) fn handle_connected(&mut self, via: Via) -> bool {
        let Some(gateway) = find(&self.known, via.gateway) else {
            return false;
        };
        self.missing.remove(&via);
        let link = Link {
            host: gateway.agent.host,
            credit: Credit::default(),
            is_busy: false,
            words: BTreeMap::new(),
        };
        self.links.insert(via, link);
        self.find_ways();
        true
    }

    /// A link is no more, or was not made.
    pub(super) fn handle_lost(&mut self, via: Via, now: Time) {
        self.links.remove(&via);
        if let Some(at) = self.missing.get_mut(&via) {
            *at = Some(now + AGAIN);
        } else if find(&self.known, via.gateway).is_some() {
            self.missing.insert(via, Some(now + AGAIN));
        }
        self.find_ways();
    }

    pub(super) fn handle_grant(&mut self, via: Via, grant: &Grant) {
        if let Some(link) = self.links.get_mut(&via) {
            link.credit.handle_grant(grant);
        }
    }

    /// Its driver has room again: what waited is said.
    pub(super) fn handle_writable(&mut self, via: Via, inner: &mut [Inner]) {
        let Some(link) = self.links.get_mut(&via) else {
            return;
        };
        link.is_busy = false;
        while let Some((key, word)) = link.words.pop_first() {
            if !say(link, &mut *inner[via.inner].driver, via.gateway, &word) {
                link.words.insert(key, word);
                return;
            }
        }
    }

    /// The gateway that leads to a host.
    pub(super) fn choose(&self, to: HostId, flow: u64) -> Option<Via> {
        let hop = self.table.next(self.ways.plan(), to, flow);
        let through = hop.and_then(|hop| self.link_with(hop.to));
        // A neighbour is reached without a gateway, if there is nothing wrong; any will do.
        through.or_else(|| self.links.keys().next().copied())
    }

    fn link_with(&self, host: HostId) -> Option<Via> {
        let mut links = self.links.iter().filter(|(_, link)| link.host == host);
        links.next().map(|(via, _)| *via)
    }

    pub(super) fn has(&self, via: Via) -> bool {
        self.links.contains_key(&via)
    }

    /// The host of a gateway.
    pub(super) fn host(&self, via: Via) -> Option<HostId> {
        self.links.get(&via).map(|link| link.host)
    }

    /// Whether a fragment of this length may be sent, as far as is known.
    pub(super) fn has_room(&self, via: Via, length: usize) -> bool {
        let link = self.links.get(&via).filter(|link| !link.is_busy);
        link.is_some_and(|link| lane_for(&link.credit, length).is_some())
    }

    /// Sends a fragment of this length, if there is room for it.
    pub(super) fn send<'a>(
        &mut self,
        inner: &mut [Inner],
        via: Via,
        header: FragmentHeader,
        length: usize,
        contents: impl Iterator<Item = IoSlice<'a>>,
    ) -> Sent {
        let Some(link) = self.links.get_mut(&via).filter(|link| !link.is_busy) else {
            return Sent::No;
        };
        let Some(lane) = lane_for(&link.credit, length) else {
            return Sent::No;
        };
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        let header = FragmentHeader { lane, ..header }.to_bytes();
        let mut frame = vec![IoSlice::new(&header)];
        for slice in contents {
            frame.push(slice);
        }
        match inner[via.inner].driver.send_frame(via.gateway, &frame) {
            Ok(()) => {
                let taken = link.credit.take(0, length);
                debug_assert_eq!(taken, Some(lane), "as was seen above");
                Sent::Yes
            }
            Err(refused) => {
                link.is_busy |= matches!(refused, Refused::Busy { .. });
                Sent::No
            }
        }
    }

    /// Says something about a circuit. Without a way it is lost: what matters is said again.
    pub(super) fn say(&mut self, inner: &mut [Inner], via: Option<Via>, word: Word) {
        let via = via.or_else(|| self.choose(word.route.to_host, word.route.flow().flow));
        let Some((via, link)) = via.and_then(|via| Some((via, self.links.get_mut(&via)?))) else {
            return;
        };
        let is_said = say(link, &mut *inner[via.inner].driver, via.gateway, &word);
        if !is_said && (link.words.len() < MAX_WORDS || link.words.contains_key(&word.route.to)) {
            link.words.insert(word.route.to, word);
        }
    }

    fn find_ways(&mut self) {
        let (known, links) = (&self.known, &self.links);
        let is_known = |host| known.contains_key(&host);
        let is_linked = |host| links.values().any(|link| link.host == host);
        self.table = self.ways.table(self.host, is_known, is_linked);
    }
}

/// Against what a fragment of this length may go.
fn lane_for(credit: &Credit, length: usize) -> Option<Lane> {
    let length = u32::try_from(length).unwrap_or(u32::MAX);
    match credit.has_shared(length) {
        true => Some(Lane::Shared),
        false => credit.has_escape(0).then_some(Lane::Escape(1)),
    }
}

/// Whether it was said.
fn say(link: &mut Link, driver: &mut dyn Driver, gateway: PeerId, word: &Word) -> bool {
    if link.is_busy {
        return false;
    }
    let said = driver.send_frame(gateway, &[IoSlice::new(&word.to_bytes())]);
    link.is_busy = matches!(said, Err(Refused::Busy { .. }));
    !link.is_busy
}

/// Words that wait for one gateway. Those beyond are lost: what matters is said again.
const MAX_WORDS: usize = 4096;
/// How soon a gateway that was not reached is dialled again.
const AGAIN: Duration = Duration::from_millis(250);
