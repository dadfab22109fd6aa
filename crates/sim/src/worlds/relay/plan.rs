//! Who is where: gateways in a line, a ring or anyhow, with ends on networks of their own; or a tree of up to a thousand clusters.

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
pub(super) type Living = Rc<RefCell<Census>>;

#[derive(Debug, Default)]
pub(super) struct Census {
    nodes: BTreeSet<NodeId>,
    /// Changes whenever somebody comes or goes.
    pub(super) epoch: u64,
}

impl Census {
    pub(super) fn add(&mut self, node: NodeId) {
        self.nodes.insert(node);
        self.epoch += 1;
    }

    pub(super) fn remove(&mut self, node: NodeId) {
        self.nodes.remove(&node);
        self.epoch += 1;
    }
}

#[derive(Debug)]
pub(super) struct Plan {
    pub(super) gateways: u32,
    nodes: u32,
    pub(super) ways: Ways,
    terrain: Terrain,
    /// Who sends to whom, by sender.
    pub(super) pairs: Vec<(NodeId, NodeId)>,
    /// The gateways that each node has a link with, by its number.
    links: Vec<Vec<NodeId>>,
    /// How much each end sends to each of its targets.
    pub(super) messages: u64,
    /// Unacknowledged, to each.
    pub(super) window: usize,
    pub(super) pool: u64,
    pub(super) shared: u64,
    /// Links between two gateways.
    pub(super) stripes: usize,
}

impl Plan {
    pub(super) fn new(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        // A thousand clusters take a minute: they have seeds of their own.
        let clusters = match (seed >= LARGE, seed % 8) {
            (true, 0) => Some(1000),
            (true, _) => Some(rng.u32(50..=200)),
            (false, 3) => Some(rng.u32(2..=30)),
            (false, _) => None,
        };
        if let Some(clusters) = clusters {
            return Self::of_clusters(clusters, &mut rng);
        }
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
        let (targets, messages) = (rng.usize(1..=4), rng.u64(5..80));
        let groups = groups.into_iter().map(|(nodes, is_far)| Group {
            nodes,
            is_far,
            idle: 0,
        });
        Self::of_groups(
            (gateways, ends),
            groups.collect(),
            (targets, messages),
            &mut rng,
        )
    }

    /// Clusters of a hundred processes each, of which some speak; each has one gateway or two, which reach those of the cluster above it in a tree. The longest
    /// way goes through seven clusters with one gateway each, or through three with two, of which it may have to pass both.
    fn of_clusters(clusters: u32, rng: &mut Rng) -> Self {
        let (most, deepest) = if rng.bool() { (1, 3) } else { (2, 1) };
        let gateways_of: Vec<u32> = (0..clusters).map(|_| rng.u32(1..=most)).collect();
        let gateways: u32 = gateways_of.iter().sum();
        let mut firsts = Vec::new();
        let mut first = 0;
        for count in &gateways_of {
            firsts.push(first);
            first += count;
        }
        let own = |cluster: usize| firsts[cluster]..firsts[cluster] + gateways_of[cluster];
        let (mut groups, mut depths) = (Vec::new(), vec![0]);
        for cluster in 1..clusters as usize {
            let above = loop {
                let above = rng.usize(..cluster);
                if depths[above] < deepest {
                    break above;
                }
            };
            depths.push(depths[above] + 1);
            groups.push(Group {
                nodes: own(above).chain(own(cluster)).collect(),
                is_far: true,
                idle: 0,
            });
        }
        let mut ends = 0;
        for cluster in 0..clusters as usize {
            let speak = rng.u32(1..=2);
            let speakers = gateways + ends..gateways + ends + speak;
            ends += speak;
            groups.push(Group {
                nodes: own(cluster).chain(speakers).collect(),
                is_far: false,
                idle: PROCESSES - speak,
            });
        }
        let messages = rng.u64(2..10);
        let targets = rng.usize(1..=2);
        Self::of_groups((gateways, ends), groups, (targets, messages), rng)
    }

    fn of_groups(
        (gateways, ends): (u32, u32),
        groups: Vec<Group>,
        (targets, messages): (usize, u64),
        rng: &mut Rng,
    ) -> Self {
        let nodes = gateways + ends;
        let (mut parts, mut networks) = (Vec::new(), Vec::new());
        let mut idle = nodes;
        for group in &groups {
            let way = match group.is_far {
                true => Way::wan(rng.u64(1..20), rng.u32(..5_000)),
                false => Way::lan(),
            };
            let cost = Cost {
                // As measured, more or less: ways through more gateways may be the better ones.
                latency: Duration::from_micros(rng.u64(10..200)),
                rate: 125_000_000,
            };
            let silent = idle..idle + group.idle;
            idle = silent.end;
            parts.push(Part {
                hosts: group
                    .nodes
                    .iter()
                    .copied()
                    .chain(silent)
                    .map(NodeId)
                    .collect(),
                cost,
            });
            let here = group.nodes.iter().copied().map(HostId).collect();
            networks.push((way, here));
        }
        let ways = Ways::new(parts);
        let mut links = vec![BTreeSet::new(); nodes as usize];
        let mut near = vec![BTreeSet::new(); nodes as usize];
        for group in &groups {
            for one in &group.nodes {
                let others = group.nodes.iter().filter(|other| *other != one);
                for other in others.map(|other| NodeId(*other)) {
                    near[*one as usize].insert(other);
                    if other.0 < gateways {
                        links[*one as usize].insert(other);
                    }
                }
            }
        }
        let mut pairs = Vec::new();
        for end in gateways..nodes {
            // In a large job the others are anywhere; in a small one the next ones.
            let begin = if ends > 40 { rng.u32(1..ends) } else { 1 };
            let steps = (0..ends - 1).map(|step| 1 + (begin - 1 + step) % (ends - 1));
            let others = steps.map(|step| NodeId(gateways + (end - gateways + step) % ends));
            let far = others.filter(|to| !near[end as usize].contains(to));
            pairs.extend(far.take(targets).map(|to| (NodeId(end), to)));
        }
        let stripes = if ends > 40 { 1 } else { rng.usize(1..=3) };
        let most =
            stripes * links.iter().map(BTreeSet::len).max().unwrap_or(0) + ends.min(12) as usize;
        Self {
            gateways,
            nodes,
            ways,
            terrain: Terrain::new(nodes, &networks),
            pairs,
            links: links
                .into_iter()
                .map(|all| all.into_iter().collect())
                .collect(),
            messages,
            window: rng.usize(1..40),
            pool: (most as u64 + 1) * 40 * FRAGMENT,
            shared: [0, 1, 2, 16][rng.usize(..4)] * FRAGMENT,
            stripes,
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
                events_max: 2_000_000.max(u64::from(self.nodes) * 10_000),
                ..Options::default()
            },
        }
    }

    /// How long a node waits until it looks again, of what it does in a small job: in a large one there are enough who look.
    pub(super) fn pace(&self, milliseconds: u64) -> Duration {
        let slower = if self.nodes > 100 { 8 } else { 1 };
        Duration::from_millis(milliseconds * slower)
    }

    pub(super) fn is_gateway(&self, node: NodeId) -> bool {
        node.0 < self.gateways
    }

    /// To whom an end sends.
    pub(super) fn targets(&self, end: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        let first = self.pairs.partition_point(|(from, _)| *from < end);
        let own = self.pairs[first..]
            .iter()
            .take_while(move |(from, _)| *from == end);
        own.map(|(_, to)| *to)
    }

    /// Gateways that a node has a link with: neighbours of gateways, and those of an end's own network.
    pub(super) fn links(&self, node: NodeId) -> &[NodeId] {
        &self.links[node.0 as usize]
    }

    /// What a node knows of the ways, if these live.
    fn table(&self, of: NodeId, living: &Census) -> Table {
        // Who never speaks and is no gateway is in nobody's way.
        let is_lost = |node: NodeId| node.0 < self.nodes && !living.nodes.contains(&node);
        Table::new(&self.ways, of, is_lost)
    }

    /// The first step from one end to another.
    pub(super) fn way(&self, from: NodeId, to: NodeId, living: &Census) -> Option<NodeId> {
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

/// Nodes on one network.
struct Group {
    nodes: Vec<u32>,
    is_far: bool,
    /// How many are there besides, and never say anything.
    idle: u32,
}

/// From this seed on, jobs are large.
const LARGE: u64 = 1 << 60;
/// The processes of a cluster.
const PROCESSES: u32 = 100;

/// What a node knows of the ways, computed anew when somebody has come or gone.
#[derive(Debug)]
pub(super) struct Known {
    table: Table,
    epoch: u64,
}

impl Known {
    pub(super) fn new(plan: &Plan, of: NodeId, living: &Living) -> Self {
        let living = living.borrow();
        Self {
            table: plan.table(of, &living),
            epoch: living.epoch,
        }
    }

    pub(super) fn renew(&mut self, plan: &Plan, of: NodeId, living: &Living) {
        if living.borrow().epoch != self.epoch {
            *self = Self::new(plan, of, living);
        }
    }

    /// The next node on the way to another.
    pub(super) fn next(&self, plan: &Plan, to: NodeId, flow: u64) -> Option<NodeId> {
        self.table.next(&plan.ways, to, flow).map(|hop| hop.to)
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
