//! What everybody knows: the parts of a channel, where they meet, what they cost.

use std::time::Duration;

use super::hosts::Hosts;
use crate::membership::HostId;

/// A part of a channel: hosts that reach each other directly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Who is on it.
    pub hosts: Hosts,
    /// What it costs to cross it.
    pub cost: Cost,
}

/// What it costs to get across a part, or through a gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cost {
    /// How long a short message takes.
    pub latency: Duration,
    /// How many bytes a second.
    pub rate: u64,
}

impl Default for Cost {
    /// What nobody has measured: a network of a cluster.
    fn default() -> Self {
        Self {
            latency: Duration::from_micros(20),
            rate: 1_250_000_000,
        }
    }
}

impl Cost {
    /// What is compared: how long a fragment takes, in nanoseconds.
    #[must_use]
    pub fn weight(&self) -> u64 {
        let fragment = FRAGMENT.saturating_mul(1_000_000_000) / self.rate.max(1);
        let latency = u64::try_from(self.latency.as_nanos()).unwrap_or(u64::MAX);
        // Never nothing: each hop is nearer to its end.
        latency.saturating_add(fragment).max(1)
    }
}

/// All parts of a channel, and where they meet.
#[derive(Debug, Clone)]
pub struct Plan {
    parts: Vec<Part>,
    /// For each part those that it shares hosts with, and these hosts.
    joints: Vec<Vec<(usize, Hosts)>>,
}

impl Plan {
    /// These parts, in order of preference.
    #[must_use]
    pub fn new(parts: Vec<Part>) -> Self {
        let mut joints: Vec<Vec<(usize, Hosts)>> = vec![Vec::new(); parts.len()];
        for one in 0..parts.len() {
            for other in one + 1..parts.len() {
                let both = parts[one].hosts.intersection(&parts[other].hosts);
                if !both.is_empty() {
                    joints[one].push((other, both.clone()));
                    joints[other].push((one, both));
                }
            }
        }
        Self { parts, joints }
    }

    /// The bytes that it takes.
    #[must_use]
    pub fn memory(&self) -> usize {
        let parts = self.parts.iter();
        let parts = parts.map(|part| size_of::<Part>() + part.hosts.memory());
        let joints = self.joints.iter().flatten();
        let joints = joints.map(|(_, both)| size_of::<(usize, Hosts)>() + both.memory());
        size_of::<Self>() + parts.sum::<usize>() + joints.sum::<usize>()
    }

    /// The parts, by their numbers.
    #[must_use]
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The parts that a host is on, by number.
    pub fn parts_of(&self, host: HostId) -> impl Iterator<Item = usize> + '_ {
        let on = move |(_, part): &(usize, &Part)| part.hosts.contains(host);
        self.parts
            .iter()
            .enumerate()
            .filter(on)
            .map(|(part, _)| part)
    }

    /// Measured anew: tables made from now on go by it.
    pub fn set_cost(&mut self, part: usize, cost: Cost) {
        self.parts[part].cost = cost;
    }

    pub(super) fn joints(&self, part: usize) -> &[(usize, Hosts)] {
        &self.joints[part]
    }
}

/// What is under way goes through at most so many gateways.
pub const MAX_HOPS: u8 = 8;

/// What goes through a gateway at a time, in bytes.
pub const FRAGMENT: u64 = 65_536;

/// What a gateway adds, in nanoseconds: so that of two ways over equal networks the one through fewer gateways is taken.
pub(super) const THROUGH: u64 = 10_000;

/// Gateways that share the load of one entry, at most.
pub(super) const MAX_WAYS: usize = 16;
