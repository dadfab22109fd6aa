//! What members measure before they choose for the first time: who goes to whom and back, and how all come to know it.
//!
//! Two members of each level go to each other and back: two of a host, two that lead hosts of a cluster, two that lead clusters. What they found becomes everybody's by an
//! all-reduce in a way that needs no choice. All of it is the same for all members, as any schedule is.

use super::cost::{Costs, Link};
use super::layout::Layout;
use super::plan::{Operation, Order, Shape, Space, Stage, Way, stages, ways};
use super::schedule::{Fold, Member, Round, runs};

/// How far two members are from each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// On one host.
    Host,
    /// On two hosts of a cluster.
    Cluster,
    /// In two clusters.
    Far,
}

/// A member's part of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probe {
    /// What is measured.
    pub level: Level,
    /// The other member.
    pub with: Member,
    /// Whether this member has the clock: it sends first.
    pub leads: bool,
}

/// What a member measures, one after the other. Most measure nothing.
#[must_use]
pub fn probes(layout: &Layout, me: Member) -> Vec<Probe> {
    let levels = [
        (Level::Host, layout.first_host_of_several()),
        (Level::Cluster, layout.first_leaders_of_several()),
        (Level::Far, layout.cluster_leaders()),
    ];
    let probe = |(level, members): (Level, Vec<u32>)| {
        let [first, second, ..] = members[..] else {
            return None;
        };
        let leads = me == first;
        let with = Member(if leads { second } else { first });
        (leads || me == second).then_some(Probe { level, with, leads })
    };
    levels.into_iter().filter_map(probe).collect()
}

impl Probe {
    /// There and back, with whatever the data are.
    #[must_use]
    pub fn round_trip(&self) -> Stage {
        let (with, whole) = (self.with.0, || runs(0..1));
        let there = Round::default().send(with, whole(), Fold::Replace);
        let back = Round::default().receive(with, whole(), Fold::Replace);
        Stage {
            space: Space::Whole,
            rounds: if self.leads {
                vec![there, back]
            } else {
                vec![back, there]
            },
        }
    }
}

/// How what some members have found becomes everybody's: an all-reduce, in a way that needs no choice.
#[must_use]
pub fn to_all(layout: &Layout, me: Member) -> Vec<Stage> {
    let operation = Operation::AllReduce;
    let mut trees = ways(layout, operation, Order::Any);
    trees.retain(|way| way.shape == Shape::Tree);
    let way = trees.last().copied().unwrap_or(Way {
        shape: Shape::Tree,
        by_levels: false,
    });
    stages(layout, me, operation, Order::Any, way)
}

/// Where those numbers are that are not of a level.
const COMBINING: usize = 6;
const CROWDING: usize = 7;

/// Costs as numbers that members agree on: the greatest of each is everybody's. What nobody has found is 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Findings(pub [u64; Findings::COUNT]);

impl Findings {
    /// How many numbers there are.
    pub const COUNT: usize = 8;

    /// What a round trip without data and one with so many bytes tell of a level, in nanoseconds.
    pub fn add(&mut self, level: Level, empty: u64, long: u64, bytes: u64) {
        let kilobyte = long.saturating_sub(empty).saturating_mul(1000) / bytes.max(1) / 2;
        let at = 2 * level as usize;
        // Nothing is free: what was found is not 0.
        self.0[at] = (empty / 2).max(1);
        self.0[at + 1] = kilobyte.max(1);
    }

    /// How long it took to combine so many bytes with as many others, in nanoseconds.
    pub fn add_combining(&mut self, took: u64, bytes: u64) {
        self.0[COMBINING] = (took.saturating_mul(1000) / bytes.max(1)).max(1);
    }

    /// A host has so many members and cores.
    pub fn add_host(&mut self, members: u32, cores: u64) {
        self.0[CROWDING] = (u64::from(members) * 1000).div_ceil(cores.max(1));
    }

    /// The costs, with `instead` for what nobody has found.
    #[must_use]
    pub fn costs(&self, instead: &Costs) -> Costs {
        let found = |at: usize, instead: u64| match self.0[at] {
            0 => instead,
            found => found,
        };
        let link = |level: Level, instead: &Link| {
            let at = 2 * level as usize;
            Link {
                latency: found(at, instead.latency),
                kilobyte: found(at + 1, instead.kilobyte),
            }
        };
        Costs {
            host: link(Level::Host, &instead.host),
            cluster: link(Level::Cluster, &instead.cluster),
            far: link(Level::Far, &instead.far),
            combining: found(COMBINING, instead.combining),
            crowding: found(CROWDING, instead.crowding),
        }
    }
}

impl From<Costs> for Findings {
    fn from(costs: Costs) -> Self {
        let Costs {
            host,
            cluster,
            far,
            combining,
            crowding,
        } = costs;
        let link = |link: Link| [link.latency, link.kilobyte];
        let [a, b] = link(host);
        let [c, d] = link(cluster);
        let [e, f] = link(far);
        Self([a, b, c, d, e, f, combining, crowding])
    }
}
