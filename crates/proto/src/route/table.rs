//! What one host knows of the ways.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::plan::{MAX_HOPS, MAX_WAYS, Plan, THROUGH};
use crate::membership::HostId;

/// The ways from one host to everywhere, one entry for each part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    of: HostId,
    /// By part; none for those that cannot be reached.
    entries: Vec<Option<Entry>>,
}

/// How a part is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// What it costs, in nanoseconds for a fragment.
    pub weight: u64,
    /// How many gateways are on the way.
    pub gateways: u8,
    /// How to begin: over which part, and through whom; all of these cost the same. Empty, if this host is on the part itself.
    pub ways: Vec<(usize, HostId)>,
}

/// The next step to somebody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hop {
    /// Over this part, on which both are.
    pub part: usize,
    /// To this host: a gateway, or whom it is for.
    pub to: HostId,
    /// How many gateways are on the way, this one too.
    pub gateways: u8,
}

impl Table {
    /// The ways from a host, without the hosts that are gone.
    #[must_use]
    pub fn new(plan: &Plan, of: HostId, is_gone: impl Fn(HostId) -> bool) -> Self {
        let mut entries: Vec<Option<Entry>> = vec![None; plan.parts().len()];
        let mut next = BinaryHeap::new();
        for part in plan.parts_of(of) {
            let weight = plan.parts()[part].cost.weight();
            entries[part] = Some(Entry {
                weight,
                gateways: 0,
                ways: Vec::new(),
            });
            next.push(Reverse((weight, part)));
        }
        let mut is_settled = vec![false; entries.len()];
        while let Some(Reverse((_, here))) = next.pop() {
            if std::mem::replace(&mut is_settled[here], true) {
                continue;
            }
            let Some(Entry {
                weight,
                gateways,
                ways,
            }) = entries[here].clone()
            else {
                continue;
            };
            if gateways == MAX_HOPS {
                continue;
            }
            for (there, both) in plan.joints(here) {
                if is_settled[*there] {
                    continue;
                }
                let mut through = both
                    .iter()
                    .filter(|host| *host != of && !is_gone(*host))
                    .peekable();
                if through.peek().is_none() {
                    continue;
                }
                let weight = weight
                    .saturating_add(plan.parts()[*there].cost.weight())
                    .saturating_add(THROUGH);
                let ways: Vec<(usize, HostId)> = match ways.is_empty() {
                    true => through.take(MAX_WAYS).map(|host| (here, host)).collect(),
                    false => ways.clone(),
                };
                let gateways = gateways + 1;
                match &mut entries[*there] {
                    // Another way that is as good.
                    Some(entry) if entry.weight == weight && entry.gateways == gateways => {
                        entry.ways.extend(ways);
                        entry.ways.sort_unstable();
                        entry.ways.dedup();
                        entry.ways.truncate(MAX_WAYS);
                    }
                    Some(entry) if (entry.weight, entry.gateways) <= (weight, gateways) => (),
                    entry => {
                        *entry = Some(Entry {
                            weight,
                            gateways,
                            ways,
                        });
                        next.push(Reverse((weight, *there)));
                    }
                }
            }
        }
        Self { of, entries }
    }

    /// The next step to a host; flows are spread over gateways that are equally good, and stay with theirs while it lives. None, if there
    /// is no way, or it is this host itself.
    #[must_use]
    pub fn next(&self, plan: &Plan, to: HostId, flow: u64) -> Option<Hop> {
        if to == self.of {
            return None;
        }
        let reached = plan
            .parts_of(to)
            .filter_map(|part| Some((part, self.entry(part)?)));
        let (part, entry) =
            reached.min_by_key(|(part, entry)| (entry.weight, entry.gateways, *part))?;
        let gateways = entry.gateways;
        let choice = |(_, through): &&(usize, HostId)| scatter(flow, *through);
        match entry.ways.iter().max_by_key(choice) {
            None => Some(Hop { part, to, gateways }),
            Some(&(part, to)) => Some(Hop { part, to, gateways }),
        }
    }

    /// The bytes that it takes.
    #[must_use]
    pub fn memory(&self) -> usize {
        let ways = self.entries.iter().flatten().map(|entry| entry.ways.len());
        size_of::<Self>()
            + self.entries.len() * size_of::<Option<Entry>>()
            + ways.sum::<usize>() * size_of::<(usize, HostId)>()
    }

    /// How a part is reached, if it is.
    #[must_use]
    pub fn entry(&self, part: usize) -> Option<&Entry> {
        self.entries.get(part)?.as_ref()
    }
}

/// A number that looks random, for a flow and a gateway: the gateway with the highest takes the flow, so that the loss of one moves only its own
/// flows (rendezvous hashing).
fn scatter(flow: u64, gateway: HostId) -> u64 {
    let mut word = flow ^ u64::from(gateway.0).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for factor in [0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb] {
        word = (word ^ (word >> 30)).wrapping_mul(factor);
    }
    word ^ (word >> 31)
}
