//! Who is next on a link: jobs take turns, and in a job its flows, by bytes (deficit round robin: Shreedhar and Varghese, 1995).
//!
//! Of two flows of a job that both wait, neither is ahead by more than three fragments; the same holds for two jobs. Who was not waiting begins
//! without debts and without savings.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::heading::{FlowId, Heading, Slot};
use crate::route::{FRAGMENT, MAX_HOPS};

/// The fragments that wait for a link.
#[derive(Debug, Default)]
pub struct Turns {
    waiting: BTreeMap<u64, (Heading, Slot)>,
    /// Those of each hop, the oldest first.
    by_hop: [BTreeSet<u64>; MAX_HOPS as usize + 1],
    jobs: BTreeMap<u32, Job>,
    /// Jobs that wait, the next one first.
    ring: VecDeque<u32>,
    next: u64,
    bytes: u64,
}

#[derive(Debug, Default)]
struct Job {
    flows: BTreeMap<u64, Flow>,
    ring: VecDeque<u64>,
    /// Bytes that it may still send in this turn.
    left: u64,
}

#[derive(Debug, Default)]
struct Flow {
    queue: VecDeque<u64>,
    left: u64,
}

impl Turns {
    /// A fragment waits from now on.
    pub fn push(&mut self, heading: Heading, slot: Slot) {
        let number = self.next;
        self.next += 1;
        self.bytes += u64::from(heading.length);
        self.waiting.insert(number, (heading, slot));
        self.by_hop[usize::from(heading.hop.min(MAX_HOPS))].insert(number);
        let FlowId { job, flow } = heading.flow;
        let jobs = self.jobs.entry(job).or_insert_with(|| {
            self.ring.push_back(job);
            Job::default()
        });
        let flows = jobs.flows.entry(flow).or_insert_with(|| {
            jobs.ring.push_back(flow);
            Flow::default()
        });
        flows.queue.push_back(number);
    }

    /// The fragment whose turn it is.
    pub fn whose(&mut self) -> Option<(u64, Heading)> {
        loop {
            let job = self.jobs.get_mut(self.ring.front()?)?;
            let flow = job.flows.get_mut(job.ring.front()?)?;
            let number = *flow.queue.front()?;
            let heading = self.waiting.get(&number)?.0;
            let length = u64::from(heading.length);
            if flow.left < length {
                // Its turn is over; it has so much more at its next.
                flow.left += FRAGMENT;
                job.ring.rotate_left(1);
                continue;
            }
            if job.left < length {
                job.left += FRAGMENT;
                self.ring.rotate_left(1);
                continue;
            }
            return Some((number, heading));
        }
    }

    /// The oldest fragment that has this hop.
    #[must_use]
    pub fn oldest(&self, hop: u8) -> Option<(u64, Heading)> {
        let number = *self.by_hop.get(usize::from(hop))?.first()?;
        Some((number, self.waiting.get(&number)?.0))
    }

    /// Takes a fragment out, in turn or not.
    pub fn take(&mut self, number: u64) -> Option<(Heading, Slot)> {
        let (heading, slot) = self.waiting.remove(&number)?;
        let length = u64::from(heading.length);
        self.bytes -= length;
        self.by_hop[usize::from(heading.hop.min(MAX_HOPS))].remove(&number);
        let FlowId { job, flow } = heading.flow;
        let jobs = self.jobs.get_mut(&job)?;
        jobs.left = jobs.left.saturating_sub(length);
        let flows = jobs.flows.get_mut(&flow)?;
        flows.left = flows.left.saturating_sub(length);
        match flows.queue.front() == Some(&number) {
            true => drop(flows.queue.pop_front()),
            false => flows.queue.retain(|other| *other != number),
        }
        if flows.queue.is_empty() {
            jobs.flows.remove(&flow);
            jobs.ring.retain(|other| *other != flow);
        }
        if jobs.flows.is_empty() {
            self.jobs.remove(&job);
            self.ring.retain(|other| *other != job);
        }
        Some((heading, slot))
    }

    /// Takes all of them, the oldest first.
    pub fn take_all(&mut self) -> Vec<(Heading, Slot)> {
        let all = std::mem::take(self);
        self.next = all.next;
        all.waiting.into_values().collect()
    }

    /// How many wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether none waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The bytes of all that wait.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}
