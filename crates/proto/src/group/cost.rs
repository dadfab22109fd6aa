//! What a plan takes, and which is chosen.
//!
//! All members choose alike, from what they agreed on ([`probe`](super::probe)) or from constants: a member that chose by what it alone sees would wait for one that
//! chose otherwise.

use core::ops::Range;

use super::layout::Layout;
use super::plan::{Operation, Order, Space, Stage, Way, stages, ways};
use super::schedule::{Member, Transfer};

/// What it takes to send something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// A message without content, in nanoseconds.
    pub latency: u64,
    /// 1,000 bytes more, in nanoseconds.
    pub kilobyte: u64,
}

/// What members of a group take for what they do. The same at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Costs {
    /// Between members of a host.
    pub host: Link,
    /// Between hosts of a cluster.
    pub cluster: Link,
    /// Between clusters.
    pub far: Link,
    /// To combine 1,000 bytes with 1,000 others, in nanoseconds.
    pub combining: u64,
    /// How many members there are for each 1,000 cores of the host that has the most for its cores. Beyond 1,000 they wait for each other's work.
    pub crowding: u64,
}

impl Default for Costs {
    /// As measured on a virtual machine of two cores, and 1 Gbit/s over 20 ms between clusters.
    fn default() -> Self {
        Self {
            host: Link {
                latency: 500,
                kilobyte: 100,
            },
            cluster: Link {
                latency: 15_000,
                kilobyte: 400,
            },
            far: Link {
                latency: 20_000_000,
                kilobyte: 8_000,
            },
            combining: 60,
            // Not known: as if each had a core.
            crowding: 0,
        }
    }
}

/// Whether an operation combines data, so that what it comes to may depend on its way: numbers with a floating point are rounded.
#[must_use]
pub fn combines(operation: Operation) -> bool {
    matches!(
        operation,
        Operation::Reduce(_)
            | Operation::AllReduce
            | Operation::ReduceScatter
            | Operation::Scan
            | Operation::ExclusiveScan
    )
}

/// The cheapest way of an operation on so many bytes: of each member's block where each has its own, otherwise of all data.
#[must_use]
pub fn choose(
    layout: &Layout,
    operation: Operation,
    order: Order,
    bytes: u64,
    costs: &Costs,
) -> Option<Way> {
    let ways = ways(layout, operation, order);
    if let [only] = ways[..] {
        return Some(only);
    }
    let samples = samples(layout, operation);
    let cost = |way: &Way| {
        let (mut longest, mut sum, mut worked) = (0, 0_u64, 0_u64);
        for me in &samples {
            let stages = stages(layout, *me, operation, order, *way);
            let own = cost(layout, *me, &stages, bytes, costs);
            longest = longest.max(own);
            sum = sum.saturating_add(own);
            worked = worked.saturating_add(work(&stages, bytes, costs));
        }
        let crowded = match costs.crowding {
            ..=1000 => 0,
            crowding => thousands(worked / samples.len().max(1) as u64, crowding),
        };
        // Of two that keep somebody busy for as long, the one that costs all together less: it crosses fewer borders.
        (longest.max(crowded), sum)
    };
    ways.into_iter().min_by_key(cost)
}

/// Members whose costs stand for those of all: all, if they are few.
fn samples(layout: &Layout, operation: Operation) -> Vec<Member> {
    if layout.size() <= 16 {
        return (0..layout.size()).map(Member).collect();
    }
    let last = layout.size() - 1;
    let mut samples = vec![Member(0), Member(last / 2), Member(last)];
    samples.extend(layout.cluster_leaders().into_iter().take(8).map(Member));
    if let Operation::Broadcast(root)
    | Operation::Reduce(root)
    | Operation::Gather(root)
    | Operation::Scatter(root) = operation
    {
        samples.push(root);
    }
    samples.sort_unstable();
    samples.dedup();
    samples
}

/// What a member's stages take it, in nanoseconds, if nobody keeps it waiting.
#[must_use]
pub fn cost(layout: &Layout, me: Member, stages: &[Stage], bytes: u64, costs: &Costs) -> u64 {
    let near = Near::new(layout, me);
    let mut total = 0_u64;
    for stage in stages {
        let each = block(stage, bytes);
        for round in &stage.rounds {
            let sent = near.transfers(&round.sends, each, costs);
            let received = near.transfers(&round.receives, each, costs);
            total = total.saturating_add(sent.max(received));
        }
        total = total.saturating_add(thousands(combined(stage, each), costs.combining));
    }
    total
}

/// How long a member's stages keep a core of its host busy, in nanoseconds: what is sent and what is received are one after the other then.
fn work(stages: &[Stage], bytes: u64, costs: &Costs) -> u64 {
    let mut total = 0_u64;
    for stage in stages {
        let each = block(stage, bytes);
        let rounds = stage.rounds.iter();
        for transfer in rounds.flat_map(|round| round.sends.iter().chain(&round.receives)) {
            let moved = thousands(count(&transfer.blocks) * each, costs.host.kilobyte);
            total = total.saturating_add(costs.host.latency / 2 + moved);
        }
        total = total.saturating_add(thousands(combined(stage, each), costs.combining));
    }
    total
}

/// How many bytes a block of a stage has.
fn block(stage: &Stage, bytes: u64) -> u64 {
    match stage.space {
        Space::Nothing => 0,
        Space::Parts(parts) => bytes.div_ceil(u64::from(parts.max(1))),
        Space::Whole | Space::Copies(..) | Space::Members | Space::Pairs => bytes,
    }
}

/// How many bytes are combined with others in a stage whose blocks have so many.
fn combined(stage: &Stage, each: u64) -> u64 {
    let receives = stage.rounds.iter().flat_map(|round| &round.receives);
    let folded = receives.filter(|of| of.fold != super::schedule::Fold::Replace);
    let folded: u64 = folded.map(|of| count(&of.blocks) * each).sum();
    match stage.space {
        Space::Copies(copies, _) => folded + u64::from(copies.saturating_sub(1)) * each,
        _ => folded,
    }
}

/// Who is near a member.
struct Near {
    host: Vec<u32>,
    /// Who leads the hosts of its cluster.
    leaders: Vec<u32>,
    layout: Layout,
}

impl Near {
    fn new(layout: &Layout, me: Member) -> Self {
        Self {
            host: layout.host_of(me).to_vec(),
            leaders: layout.leaders_near(me),
            layout: layout.clone(),
        }
    }

    fn link<'c>(&self, other: Member, costs: &'c Costs) -> &'c Link {
        if self.host.contains(&other.0) {
            return &costs.host;
        }
        let leader = self.layout.host_of(other).first();
        if leader.is_some_and(|leader| self.leaders.contains(leader)) {
            return &costs.cluster;
        }
        &costs.far
    }

    /// What is sent at once shares the way, and waits for the slowest once.
    fn transfers(&self, transfers: &[Transfer], each: u64, costs: &Costs) -> u64 {
        let links = transfers
            .iter()
            .map(|of| (self.link(of.member, costs), count(&of.blocks) * each));
        let (mut latest, mut bytes) = (0, 0_u64);
        for (link, more) in links {
            latest = latest.max(link.latency);
            bytes = bytes.saturating_add(thousands(more, link.kilobyte));
        }
        // A message costs its sender something, however many are under way.
        let started = transfers.len().saturating_sub(1) as u64 * costs.host.latency / 2;
        latest.saturating_add(bytes).saturating_add(started)
    }
}

fn count(blocks: &[Range<u32>]) -> u64 {
    blocks
        .iter()
        .map(|run| u64::from(run.end - run.start))
        .sum()
}

fn thousands(bytes: u64, each: u64) -> u64 {
    bytes.saturating_mul(each) / 1000
}
