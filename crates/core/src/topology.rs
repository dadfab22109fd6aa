//! Who is where in a job.

use core::time::Duration;

use mizzen_proto::boot;

use crate::rank::{ProcessId, Rank};

/// The hosts of a job, and what they share: for programs that want to know who is near.
///
/// ```
/// mizzen::local(3, |deck| {
///     let topology = deck.topology()?;
///     assert_eq!(topology.hosts().len(), 1);
///     assert!(topology.is_near(2));
///     assert_eq!(topology.cheapest_channel(2), Some("default"));
///     Ok(())
/// }).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct Topology {
    me: Rank,
    networks: Vec<Network>,
    hosts: Vec<Host>,
    channels: Vec<boot::ChannelOf>,
}

/// A network of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Network {
    /// What the job's file calls it.
    pub name: String,
    /// What carries it: `tcp` or `ofi`.
    pub driver: String,
    /// Whether what goes over it is encrypted.
    pub is_sealed: bool,
    /// What a short message takes over it, as far as the software alone takes.
    pub latency: Duration,
    /// How many bytes a second the software passes.
    pub rate: u64,
}

/// A host of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Host {
    /// What the launcher calls it.
    pub name: String,
    /// The cluster it is in, as the job's file says: hosts that are near each other.
    pub cluster: String,
    /// Whether it hands on between its networks.
    pub is_gateway: bool,
    ranks: Vec<(u32, u32)>,
    networks: Vec<u32>,
}

impl Topology {
    pub(crate) fn new(me: ProcessId, told: boot::Topology) -> Self {
        let network = |network: boot::NetworkOf| Network {
            name: network.name,
            driver: network.driver,
            is_sealed: network.is_sealed,
            latency: Duration::from_nanos(network.latency),
            rate: network.rate,
        };
        let host = |host: boot::HostOf| Host {
            name: host.name,
            cluster: host.cluster,
            is_gateway: host.is_gateway,
            ranks: host.ranks,
            networks: host.networks,
        };
        Self {
            me: me.rank,
            networks: told.networks.into_iter().map(network).collect(),
            hosts: told.hosts.into_iter().map(host).collect(),
            channels: told.channels,
        }
    }

    /// That of a job inside one host, where nobody else was told of.
    pub(crate) fn of_one_host(me: ProcessId, name: &str, size: u32) -> Self {
        let host = boot::HostOf {
            name: name.to_owned(),
            cluster: name.to_owned(),
            ranks: vec![(0, size)],
            networks: Vec::new(),
            is_gateway: false,
        };
        let told = boot::Topology {
            hosts: vec![host],
            ..boot::Topology::default()
        };
        Self::new(me, told)
    }

    /// The hosts, in the order in which the launcher was given them.
    #[must_use]
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// The networks, in the order of the job's file.
    #[must_use]
    pub fn networks(&self) -> &[Network] {
        &self.networks
    }

    /// The clusters, each once, in the order of their first hosts.
    #[must_use]
    pub fn clusters(&self) -> Vec<&str> {
        let mut clusters: Vec<&str> = Vec::new();
        for host in &self.hosts {
            if !clusters.contains(&&host.cluster[..]) {
                clusters.push(&host.cluster);
            }
        }
        clusters
    }

    /// The cluster of this process.
    ///
    /// ```
    /// mizzen::local(2, |deck| {
    ///     // One board in each cluster, which others find by the cluster's name.
    ///     let topology = deck.topology()?;
    ///     let name = format!("{}:board", topology.my_cluster());
    ///     let board = deck.mailbox()?;
    ///     if deck.rank() == 0 {
    ///         deck.bind(&name, &board)?;
    ///     }
    ///     deck.fetch(&name)?.send(&1u32)?;
    ///     deck.finish()
    /// }).unwrap();
    /// ```
    #[must_use]
    pub fn my_cluster(&self) -> &str {
        let host = self.host_of(self.me);
        host.map_or("", |host| &host.cluster)
    }

    /// Why a name may not be bound by this process, if so: a name that begins with a cluster of the job and a colon is for the processes of
    /// that cluster.
    pub(crate) fn refuses(&self, name: &str) -> Option<String> {
        let (cluster, _) = name.split_once(':')?;
        let mine = self.my_cluster();
        if cluster == mine || !self.hosts.iter().any(|host| host.cluster == cluster) {
            return None;
        }
        Some(format!(
            "names that begin with \"{cluster}:\" are for the processes of the cluster {cluster:?}, and this one is in {mine:?}"
        ))
    }

    /// The host of a rank. `None` if the job has no such rank.
    #[must_use]
    pub fn host_of(&self, rank: impl Into<Rank>) -> Option<&Host> {
        let rank = rank.into();
        self.hosts.iter().find(|host| host.contains(rank))
    }

    /// The networks that a host is on.
    pub fn networks_of(&self, host: &Host) -> impl Iterator<Item = &Network> {
        host.networks
            .iter()
            .filter_map(|index| self.networks.get(*index as usize))
    }

    /// Whether a rank is on this process's host.
    #[must_use]
    pub fn is_near(&self, rank: impl Into<Rank>) -> bool {
        let host = self.host_of(self.me);
        host.is_some_and(|host| host.contains(rank.into()))
    }

    /// Whether a rank is in this process's cluster.
    #[must_use]
    pub fn is_in_my_cluster(&self, rank: impl Into<Rank>) -> bool {
        match (self.host_of(self.me), self.host_of(rank)) {
            (Some(mine), Some(its)) => mine.cluster == its.cluster,
            _ => false,
        }
    }

    /// The networks that this process's host shares with a rank's.
    #[must_use]
    pub fn shared_with(&self, rank: impl Into<Rank>) -> Vec<&Network> {
        match (self.host_of(self.me), self.host_of(rank)) {
            (Some(mine), Some(its)) => {
                let shared = mine
                    .networks
                    .iter()
                    .filter(|index| its.networks.contains(index));
                shared
                    .filter_map(|index| self.networks.get(*index as usize))
                    .collect()
            }
            _ => Vec::new(),
        }
    }

    /// The channel on which a short message to a rank takes the least, of those that both are on. `None` if the job has no such rank.
    /// Between ranks of one host, which need no network, and where channels take the same, it is the first: `default`.
    #[must_use]
    pub fn cheapest_channel(&self, rank: impl Into<Rank>) -> Option<&str> {
        let rank = rank.into();
        let its = self.hosts.iter().position(|host| host.contains(rank))?;
        let mine = self.hosts.iter().position(|host| host.contains(self.me))?;
        if its == mine || self.channels.is_empty() {
            return Some("default");
        }
        let of = |channel: &boot::ChannelOf| self.latency(channel, mine as u32, its as u32);
        let costs = self
            .channels
            .iter()
            .filter_map(|channel| Some((of(channel)?, channel)));
        let cheapest = costs.min_by_key(|(cost, _)| *cost);
        cheapest.map(|(_, channel)| &channel.name[..])
    }

    /// What a channel takes between two hosts that are on it. Through gateways, the least that it can.
    fn latency(&self, channel: &boot::ChannelOf, one: u32, other: u32) -> Option<Duration> {
        let cost = |index: u32| {
            self.networks
                .get(index as usize)
                .map(|network| network.latency)
        };
        let holds = |hosts: &[(u32, u32)], host| {
            hosts
                .iter()
                .any(|(first, end)| (*first..*end).contains(&host))
        };
        let of = |host| {
            let parts = channel
                .parts
                .iter()
                .filter(move |(_, hosts)| holds(hosts, host));
            parts.filter_map(|(network, _)| Some((*network, cost(*network)?)))
        };
        let direct = of(one).filter(|(network, _)| of(other).any(|(its, _)| its == *network));
        // Of several that both are on, the first in the file is taken, be it the cheapest or not.
        let direct = direct.min_by_key(|(network, _)| *network);
        let direct = direct.map(|(_, cost)| cost);
        let through = || {
            let first = of(one).map(|(_, cost)| cost).min()?;
            Some(first + of(other).map(|(_, cost)| cost).min()? + GATEWAY)
        };
        direct.or_else(through)
    }
}

impl Host {
    /// The ranks on it, in order.
    pub fn ranks(&self) -> impl Iterator<Item = Rank> + '_ {
        let all = self.ranks.iter().flat_map(|(first, end)| *first..*end);
        all.map(Rank)
    }

    /// Whether a rank is on it.
    #[must_use]
    pub fn contains(&self, rank: Rank) -> bool {
        let holds = |(first, end): &(u32, u32)| (*first..*end).contains(&rank.0);
        self.ranks.iter().any(holds)
    }
}

/// What a gateway adds.
const GATEWAY: Duration = Duration::from_micros(10);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rank::Incarnation;

    /// Hosts a and b on two networks, b and c on the first of them; all on a slow one for a channel only.
    fn topology(me: u32) -> Topology {
        let network = |name: &str, latency| boot::NetworkOf {
            name: name.into(),
            driver: "tcp".into(),
            is_sealed: true,
            latency,
            rate: 1,
        };
        let host = |name: &str, cluster: &str, ranks, networks: &[u32]| boot::HostOf {
            name: name.into(),
            cluster: cluster.into(),
            ranks: vec![ranks],
            networks: networks.to_vec(),
            is_gateway: name == "b",
        };
        let channel = |name: &str, parts: &[(u32, (u32, u32))]| boot::ChannelOf {
            name: name.into(),
            parts: parts
                .iter()
                .map(|(network, hosts)| (*network, vec![*hosts]))
                .collect(),
        };
        let told = boot::Topology {
            networks: vec![
                network("left", 8_000),
                network("right", 8_000),
                network("slow", 25_000),
                network("fast", 1_000),
            ],
            channels: vec![
                channel("default", &[(0, (0, 2)), (1, (1, 3))]),
                channel("all", &[(2, (0, 3))]),
                channel("quick", &[(3, (0, 2))]),
            ],
            hosts: vec![
                host("a", "west", (0, 2), &[0, 2, 3]),
                host("b", "west", (2, 4), &[0, 1, 2, 3]),
                host("c", "east", (4, 6), &[1, 2]),
            ],
        };
        let bytes = told.encode().unwrap();
        let told = boot::Topology::decode(&bytes).unwrap();
        Topology::new(ProcessId::new(Rank(me), Incarnation(0)), told)
    }

    #[test]
    fn who_is_near_and_what_is_shared() {
        let topology = topology(1);
        assert!(topology.is_near(0) && !topology.is_near(2) && !topology.is_near(77));
        assert!(topology.is_in_my_cluster(3) && !topology.is_in_my_cluster(4));
        assert_eq!(topology.clusters(), ["west", "east"]);
        let names = |rank: u32| {
            let shared = topology.shared_with(rank).into_iter();
            shared.map(|network| &network.name[..]).collect::<Vec<_>>()
        };
        assert_eq!(names(2), ["left", "slow", "fast"]);
        assert_eq!(names(5), ["slow"]);
        let host = topology.host_of(4).unwrap();
        assert_eq!(host.ranks().collect::<Vec<_>>(), [Rank(4), Rank(5)]);
        assert_eq!(topology.networks_of(host).count(), 2);
        assert!(topology.host_of(6).is_none());
    }

    #[test]
    fn names_of_a_cluster_are_for_its_processes() {
        let topology = topology(4);
        assert_eq!(topology.my_cluster(), "east");
        for own in ["board", "east:board", "south:board", ":", "west"] {
            assert_eq!(topology.refuses(own), None, "{own}");
        }
        let why = topology.refuses("west:board").unwrap();
        assert!(why.contains("cluster \"west\"") && why.contains("in \"east\""));
    }

    #[test]
    fn the_cheapest_channel_is_that_of_the_least_latency_and_gateways_count() {
        let topology = topology(0);
        assert_eq!(
            topology.cheapest_channel(1),
            Some("default"),
            "through memory"
        );
        assert_eq!(topology.cheapest_channel(2), Some("quick"));
        // Through the gateway it takes 26 us, directly 25.
        assert_eq!(topology.cheapest_channel(4), Some("all"));
        assert_eq!(topology.cheapest_channel(9), None);
    }
}
