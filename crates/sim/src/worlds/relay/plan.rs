//! Who is where: gateways in a line, a ring or anyhow, with ends on networks of their own.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use fastrand::Rng;
use mizzen_proto::id::{Incarnation, ProcessId, Rank};
use mizzen_proto::membership::HostId as NodeId;
use mizzen_proto::relay::{FlowId, Heading};
use mizzen_proto::route::{Cost, FRAGMENT, Part, Plan as Ways, Table};

use crate::faults::{Fault, Faults};
use crate::ids::HostId;
use crate::options::Options;
use crate::terrain::{Terrain, Way};
use crate::world::{Layout, Seat};

/// Which nodes live, as the membership would tell.
pub(super) type Living = Rc<RefCell<BTreeSet<NodeId>>>;

#[derive(Debug)]
pub(super) struct Plan {
    pub(super) gateways: u32,
    nodes: u32,
    pub(super) ways: Ways,
    terrain: Terrain,
    /// To how many others each end sends, and how much.
    targets: u32,
    pub(super) messages: u64,
    /// Unacknowledged, to each.
    pub(super) window: usize,
    pub(super) pool: u64,
    pub(super) shared: u64,
}

impl Plan {
    pub(super) fn new(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let gateways = rng.u32(2..=8);
        let ends = rng.u32(2..=12);
        let between: Vec<Vec<u32>> = match rng.u32(..4) {
            0 => (1..gateways)
                .map(|gateway| vec![gateway - 1, gateway])
                .collect(),
            1 | 2 => (0..gateways)
                .map(|gateway| vec![gateway, (gateway + 1) % gateways])
                .collect(),
            _ => anyhow(gateways, &mut rng),
        };
        let mut groups: Vec<(Vec<u32>, bool)> =
            between.into_iter().map(|group| (group, true)).collect();
        for gateway in 0..gateways {
            // Some networks of ends have two gateways.
            let mut group = vec![gateway];
            if rng.u32(..3) == 0 {
                group.push((gateway + 1) % gateways);
            }
            groups.push((group, false));
        }
        for end in gateways..gateways + ends {
            let network = groups.len() - 1 - rng.usize(..gateways as usize);
            groups[network].0.push(end);
        }
        let (mut parts, mut networks) = (Vec::new(), Vec::new());
        for (group, is_far) in &groups {
            let way = match is_far {
                true => Way::wan(rng.u64(1..20), rng.u32(..5_000)),
                false => Way::lan(),
            };
            let cost = Cost {
                // As measured, more or less: ways through more gateways may be the better ones.
                latency: Duration::from_micros(rng.u64(10..200)),
                rate: 125_000_000,
            };
            parts.push(Part {
                hosts: group.iter().copied().map(NodeId).collect(),
                cost,
            });
            networks.push((way, group.iter().copied().map(HostId).collect()));
        }
        let nodes = gateways + ends;
        Self {
            gateways,
            nodes,
            ways: Ways::new(parts),
            terrain: Terrain::new(nodes, &networks),
            targets: rng.u32(1..=4),
            messages: rng.u64(5..80),
            window: rng.usize(1..40),
            pool: u64::from(nodes) * 40 * FRAGMENT,
            shared: [0, 1, 2, 16][rng.usize(..4)] * FRAGMENT,
        }
    }

    pub(super) fn layout(&self) -> Layout {
        let seat = |node| Seat {
            may_crash: self.is_gateway(NodeId(node)),
            ..Seat::on(HostId(node))
        };
        Layout {
            hosts: self.nodes,
            machines: (0..self.nodes).map(seat).collect(),
            options: Options {
                // Slow ones would take seconds for each of these ways: what is lost and sent again makes them differ enough.
                faults: Faults::all().without(Fault::Slow),
                terrain: self.terrain.clone(),
                calm: Duration::from_secs(120),
                ..Options::default()
            },
        }
    }

    pub(super) fn is_gateway(&self, node: NodeId) -> bool {
        node.0 < self.gateways
    }

    /// Who sends to whom.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (NodeId, NodeId)> + '_ {
        let ends = (self.gateways..self.nodes).map(NodeId);
        ends.flat_map(|end| self.targets(end).map(move |to| (end, to)))
    }

    /// To whom an end sends.
    pub(super) fn targets(&self, end: NodeId) -> impl Iterator<Item = NodeId> {
        let (first, ends) = (self.gateways, self.nodes - self.gateways);
        let near = |to: NodeId| {
            self.ways
                .parts_of(end)
                .any(|part| self.ways.parts()[part].hosts.contains(to))
        };
        let others = (1..ends).map(|step| NodeId(first + (end.0 - first + step) % ends));
        let far: Vec<NodeId> = others.filter(|to| !near(*to)).collect();
        far.into_iter().take(self.targets as usize)
    }

    /// Gateways that a node has a link with: neighbours of gateways, and those of an end's own network.
    pub(super) fn links(&self, node: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        let near = move |other: &NodeId| {
            *other != node
                && self
                    .ways
                    .parts_of(node)
                    .any(|part| self.ways.parts()[part].hosts.contains(*other))
        };
        (0..self.gateways).map(NodeId).filter(near)
    }

    /// What a node knows of the ways, if these live.
    pub(super) fn table(&self, of: NodeId, living: &BTreeSet<NodeId>) -> Table {
        Table::new(&self.ways, of, |node| !living.contains(&node))
    }

    /// The first step from one end to another.
    pub(super) fn way(
        &self,
        from: NodeId,
        to: NodeId,
        living: &BTreeSet<NodeId>,
    ) -> Option<NodeId> {
        let hop = self
            .table(from, living)
            .next(&self.ways, to, flow(from, to).flow)?;
        Some(hop.to)
    }

    /// The one process of a node.
    pub(super) fn process(node: NodeId) -> ProcessId {
        ProcessId::new(Rank(node.0), Incarnation(0))
    }

    /// A fragment of a flow.
    pub(super) fn heading(from: NodeId, to: NodeId, length: u32) -> Heading {
        Heading {
            flow: flow(from, to),
            to,
            process: Self::process(to),
            hop: 0,
            length,
        }
    }
}

fn flow(from: NodeId, to: NodeId) -> FlowId {
    FlowId {
        job: from.0 % 2,
        flow: u64::from(from.0) << 32 | u64::from(to.0),
    }
}

/// Gateways on random networks that hang together.
fn anyhow(gateways: u32, rng: &mut Rng) -> Vec<Vec<u32>> {
    let mut groups: Vec<Vec<u32>> = (1..gateways)
        .map(|gateway| vec![rng.u32(..gateway), gateway])
        .collect();
    for _ in 0..rng.u32(..gateways) {
        let mut group: Vec<u32> = (0..gateways).filter(|_| rng.u32(..3) == 0).collect();
        group.truncate(4);
        if group.len() > 1 {
            groups.push(group);
        }
    }
    groups
}
