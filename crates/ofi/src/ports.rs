//! The ports of a driver: the one that new links use, and older ones that links still use.
//!
//! A connectionless endpoint has a connection below it for each other one, which some providers (`ofi_rxm`) keep
//! for as long as the endpoint exists, however stuck it is. So a peer whose link ended gets its next one through a
//! port that it was never met at: nothing of the old connection is in its way. A port that no link uses is closed,
//! and its connections with it.

use std::collections::HashSet;
use std::ops::{Index, IndexMut};

use mizzen_driver::PeerId;

use crate::port::Port;

#[derive(Debug)]
pub(crate) struct Ports {
    /// By number; none where one was closed. At most [`MAX_PORTS`].
    open: Vec<Option<Used>>,
    newest: PortId,
}

/// The number of a port, which a later one may have once it is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PortId(u8);

/// A port, and who uses it.
#[derive(Debug)]
struct Used {
    port: Port,
    /// Links that have not ended.
    links: usize,
    /// Peers with which a link through it has ended.
    past: HashSet<PeerId>,
}

impl Ports {
    pub(crate) fn new(port: Port) -> Self {
        Self {
            open: vec![Some(Used::new(port))],
            newest: PortId(0),
        }
    }

    /// Whether a link with this peer should have a port that is not open yet.
    pub(crate) fn needs_fresh(&self, peer: PeerId) -> bool {
        self.used(self.newest).past.contains(&peer) && self.ids().count() < MAX_PORTS
    }

    /// New links use this port from now on.
    pub(crate) fn add(&mut self, port: Port) {
        let free = self.open.iter().position(Option::is_none);
        let index = free.unwrap_or(self.open.len());
        assert!(index < MAX_PORTS, "only where `needs_fresh` says so");
        self.open
            .resize_with(self.open.len().max(index + 1), || None);
        self.open[index] = Some(Used::new(port));
        self.newest = PortId(index as u8);
    }

    /// The port for a link with this peer; it is the newest, or one that the peer was never met at.
    pub(crate) fn choose(&self, peer: PeerId) -> PortId {
        let is_new_to = |&id: &PortId| !self.used(id).past.contains(&peer);
        let newest = Some(self.newest).filter(is_new_to);
        newest
            .or_else(|| self.ids().find(is_new_to))
            .unwrap_or(self.newest)
    }

    /// A link begins; says how many there are at its port.
    pub(crate) fn join(&mut self, id: PortId) -> usize {
        let used = self.used_mut(id);
        used.links += 1;
        used.links
    }

    /// A link ends. If it `has_connected`, the next one with its peer goes another way.
    pub(crate) fn part(&mut self, id: PortId, peer: PeerId, has_connected: bool) {
        let used = self.used_mut(id);
        used.links -= 1;
        if !has_connected {
            return;
        }
        if used.past.len() >= MAX_PAST {
            used.past.clear();
        }
        used.past.insert(peer);
    }

    /// A port that was replaced and that no link uses any more.
    pub(crate) fn find_unused(&self) -> Option<PortId> {
        if self.open.len() == 1 {
            return None;
        }
        self.ids()
            .find(|&id| id != self.newest && self.used(id).links == 0)
    }

    /// Closes a port, and every connection below it.
    pub(crate) fn close(&mut self, id: PortId) {
        assert!(id != self.newest, "the newest stays open");
        self.open[usize::from(id.0)] = None;
        while self.open.last().is_some_and(Option::is_none) {
            self.open.pop();
        }
    }

    #[cfg(test)]
    pub(crate) fn newest(&self) -> PortId {
        self.newest
    }

    /// The one after this number, to go through all while they change.
    pub(crate) fn next(&self, from: usize) -> Option<PortId> {
        let after = self.open.iter().skip(from).position(Option::is_some);
        after.map(|count| PortId((from + count) as u8))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Port> + Clone {
        self.open.iter().flatten().map(|used| &used.port)
    }

    fn ids(&self) -> impl Iterator<Item = PortId> {
        let open = self.open.iter().enumerate();
        open.filter(|(_, used)| used.is_some())
            .map(|(index, _)| PortId(index as u8))
    }

    fn used(&self, id: PortId) -> &Used {
        self.open[usize::from(id.0)].as_ref().expect(OPEN)
    }

    fn used_mut(&mut self, id: PortId) -> &mut Used {
        self.open[usize::from(id.0)].as_mut().expect(OPEN)
    }
}

impl Index<PortId> for Ports {
    type Output = Port;

    fn index(&self, id: PortId) -> &Port {
        &self.used(id).port
    }
}

impl IndexMut<PortId> for Ports {
    fn index_mut(&mut self, id: PortId) -> &mut Port {
        &mut self.used_mut(id).port
    }
}

impl PortId {
    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }
}

impl Used {
    fn new(port: Port) -> Self {
        Self {
            port,
            links: 0,
            past: HashSet::new(),
        }
    }
}

/// Ports at once: one of `ofi_rxm` takes 68 MiB. Those of one lost peer after another are one or two; beyond, a
/// peer has to do with a port at which it was met before, as all had once.
pub(crate) const MAX_PORTS: usize = 4;
/// Peers remembered at one port, a megabyte of them. Beyond, all are forgotten: their next links may be slow to come up.
const MAX_PAST: usize = 1 << 16;
/// Why a number has a port.
const OPEN: &str = "a port is closed only after its links have gone";

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;
    use crate::domain::Domain;
    use crate::info::Info;
    use crate::library::Library;
    use crate::strangers::{options, skip};

    const PEER: PeerId = PeerId(1);

    fn domain() -> Option<Rc<Domain>> {
        if let Err(why) = Library::get() {
            skip(&why);
            return None;
        }
        Some(Domain::open(Info::choose(&options()).expect("a provider")).expect("a domain"))
    }

    /// A link with this peer begins, as the driver has it.
    fn meet(ports: &mut Ports, domain: &Rc<Domain>, peer: PeerId) -> PortId {
        if ports.needs_fresh(peer) {
            ports.add(Port::open(domain).expect("an endpoint"));
        }
        let id = ports.choose(peer);
        ports.join(id);
        id
    }

    #[test]
    fn there_are_never_more_ports_than_the_bound() {
        let Some(domain) = domain() else { return };
        let mut ports = Ports::new(Port::open(&domain).expect("an endpoint"));
        let mut used = Vec::new();
        for other in 2..8 {
            // The other's link keeps the port open when the peer comes and goes.
            let id = meet(&mut ports, &domain, PEER);
            ports.join(id);
            used.push((id, PeerId(other)));
            ports.part(id, PEER, true);
            assert!(ports.iter().count() <= MAX_PORTS);
            assert_eq!(ports.find_unused(), None);
        }
        assert_eq!(ports.iter().count(), MAX_PORTS);
        for (id, other) in used {
            ports.part(id, other, true);
        }
        while let Some(id) = ports.find_unused() {
            ports.close(id);
        }
        assert_eq!(ports.iter().count(), 1);
    }

    #[test]
    fn only_a_peer_that_was_met_needs_a_fresh_port() {
        let Some(domain) = domain() else { return };
        let mut ports = Ports::new(Port::open(&domain).expect("an endpoint"));
        let first = meet(&mut ports, &domain, PEER);
        ports.part(first, PEER, false);
        assert_eq!(meet(&mut ports, &domain, PEER), first, "it did not connect");
        ports.part(first, PEER, true);
        assert_eq!(meet(&mut ports, &domain, PeerId(2)), first);
        assert_ne!(meet(&mut ports, &domain, PEER), first);
    }

    #[test]
    fn what_is_remembered_of_peers_is_bounded() {
        let Some(domain) = domain() else { return };
        let mut ports = Ports::new(Port::open(&domain).expect("an endpoint"));
        let id = ports.newest();
        for peer in 0..MAX_PAST as u64 + 10 {
            ports.join(id);
            ports.part(id, PeerId(peer), true);
        }
        assert!(ports.used(id).past.len() <= MAX_PAST);
    }
}
