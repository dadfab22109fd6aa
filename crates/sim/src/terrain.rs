//! Which hosts reach each other, and what the ways between them are like: one network for all, or several, with gateways.
//!
//! The networks of `ci/testbed` are here too, for machines that have no sockets: delay, jitter and rate as they are; a packet that is
//! lost, doubled or overtaken below TCP is a message that comes later, and those behind it; ways are cut by faults
//! ([`Fault::CutOneWay`](crate::Fault::CutOneWay), [`Fault::Partition`](crate::Fault::Partition)).

use std::ops::RangeInclusive;
use std::time::Duration;

use fastrand::Rng;
use mizzen_proto::time::Time;

use crate::ids::HostId;

/// Which hosts reach each other.
#[derive(Debug, Clone, Default)]
pub struct Terrain {
    networks: Vec<Way>,
    /// The networks of each host, in their order. Empty: all hosts are on one network, [`Options::delay`](crate::Options::delay).
    of: Vec<Vec<usize>>,
}

/// What the ways of a network are like.
#[derive(Debug, Clone)]
pub struct Way {
    /// How long a message takes.
    pub delay: RangeInclusive<Duration>,
    /// Bytes per second that leave a host, if its cable limits that.
    pub rate: Option<u64>,
    /// Of a million messages, so many have to be sent again: they take two delays more.
    pub loss: u32,
}

impl Way {
    /// A cluster's own network.
    pub fn lan() -> Self {
        Self {
            delay: Duration::from_micros(20)..=Duration::from_micros(500),
            rate: None,
            loss: 0,
        }
    }

    /// One between sites: so many milliseconds, a tenth of it jitter, and a loss in a million.
    pub fn wan(milliseconds: u64, loss: u32) -> Self {
        let delay = Duration::from_millis(milliseconds);
        Self {
            delay: delay..=delay + delay / 10,
            rate: Some(125_000_000),
            loss,
        }
    }
}

impl Terrain {
    /// So many hosts that are on these networks. Two reach each other over the first network that both are on; a host that is on
    /// two may be a gateway.
    ///
    /// # Panics
    /// If a network names a host that is not there.
    pub fn new(hosts: u32, networks: &[(Way, Vec<HostId>)]) -> Self {
        let mut of = vec![Vec::new(); hosts as usize];
        for (index, (_, members)) in networks.iter().enumerate() {
            for host in members {
                of[host.index()].push(index);
            }
        }
        Self {
            networks: networks.iter().map(|network| network.0.clone()).collect(),
            of,
        }
    }

    /// Two clusters as in `ci/testbed`: three hosts and two gateways each, by number, and a network between the gateways.
    pub fn two_clusters(wan: Way) -> Self {
        let hosts = |numbers: &[u32]| numbers.iter().copied().map(HostId).collect();
        let networks = [
            (Way::lan(), hosts(&[0, 1, 2, 3, 4])),
            (Way::lan(), hosts(&[5, 6, 7, 8, 9])),
            (wan, hosts(&[3, 4, 8, 9])),
        ];
        Self::new(10, &networks)
    }

    /// Whether one host reaches the other.
    pub fn reaches(&self, from: HostId, to: HostId) -> bool {
        self.of.is_empty() || from == to || self.shared(from, to).is_some()
    }

    fn shared(&self, from: HostId, to: HostId) -> Option<usize> {
        let (from, to) = (&self.of[from.index()], &self.of[to.index()]);
        from.iter().copied().find(|network| to.contains(network))
    }
}

/// The ways of a terrain in use.
#[derive(Debug)]
pub(crate) struct Traversal {
    terrain: Terrain,
    /// Until when each host's cable to each network is taken.
    busy: Vec<Time>,
}

impl Traversal {
    pub(crate) fn new(terrain: Terrain) -> Self {
        let cables = terrain.of.len() * terrain.networks.len();
        Self {
            terrain,
            busy: vec![Time(0); cables],
        }
    }

    /// Whether all hosts are on one network.
    pub(crate) fn is_flat(&self) -> bool {
        self.terrain.of.is_empty()
    }

    /// How long something of that length takes from now on. None, if there is no way.
    pub(crate) fn takes(
        &mut self,
        now: Time,
        (from, to): (HostId, HostId),
        length: usize,
        rng: &mut Rng,
    ) -> Option<Duration> {
        let network = self.terrain.shared(from, to)?;
        let way = &self.terrain.networks[network];
        let mut leaves = now;
        if let Some(rate) = way.rate {
            let busy = &mut self.busy[from.index() * self.terrain.networks.len() + network];
            let takes = (length as u64).saturating_mul(1_000_000_000) / rate.max(1);
            leaves = (*busy).max(now) + Duration::from_nanos(takes);
            *busy = leaves;
        }
        let (low, high) = (way.delay.start().as_nanos(), way.delay.end().as_nanos());
        let mut delay = rng.u64(low as u64..=high as u64);
        if rng.u32(..1_000_000) < way.loss {
            delay *= 3;
        }
        Some(leaves.since(now) + Duration::from_nanos(delay))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_two_clusters_reach_each_other_through_gateways_only() {
        let terrain = Terrain::two_clusters(Way::wan(20, 0));
        let reaches = |from, to| terrain.reaches(HostId(from), HostId(to));
        assert!(reaches(0, 2) && reaches(0, 4) && reaches(3, 4));
        assert!(reaches(3, 8) && reaches(9, 4));
        assert!(!reaches(0, 5) && !reaches(0, 8) && !reaches(5, 3));
        assert!(Terrain::default().reaches(HostId(7), HostId(0)));
    }

    #[test]
    fn a_cable_carries_its_rate() {
        let mut way = Traversal::new(Terrain::two_clusters(Way::wan(20, 0)));
        let mut rng = Rng::with_seed(1);
        let mut takes = |ends: (u32, u32)| {
            let ends = (HostId(ends.0), HostId(ends.1));
            way.takes(Time(0), ends, 1_250_000, &mut rng)
        };
        let first = takes((3, 8)).expect("there is a way");
        assert!((30..=32).contains(&first.as_millis()), "{first:?}");
        // Behind the first on the same cable, whoever it is for; another host has its own.
        let second = takes((3, 9)).expect("there is a way");
        assert!((40..=42).contains(&second.as_millis()), "{second:?}");
        let other = takes((4, 8)).expect("there is a way");
        assert!((30..=32).contains(&other.as_millis()), "{other:?}");
        assert_eq!(takes((0, 5)), None);
    }

    #[test]
    fn what_is_lost_comes_later() {
        let mut way = Traversal::new(Terrain::two_clusters(Way::wan(10, 100_000)));
        let mut rng = Rng::with_seed(1);
        let ends = (HostId(3), HostId(8));
        let times = (0..10_000).filter_map(|_| way.takes(Time(0), ends, 0, &mut rng));
        let late = times.filter(|time| time.as_millis() >= 30).count();
        assert!((900..1_100).contains(&late), "{late}");
    }
}
