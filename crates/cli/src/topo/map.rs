//! A job's hosts and networks, and the ways between them.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::ensure;
use mizzen_config::{Driver, Hosts, JobFile, Security};
use mizzen_proto::membership::HostId;
use mizzen_proto::route::{Cost, Part, Plan, Table};
use serde::Serialize;

use crate::run::cost_of;
use crate::running::Running;

#[derive(Debug, Serialize)]
pub(super) struct Map {
    /// Of a job that runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) job: Option<Job>,
    pub(super) clusters: Vec<Cluster>,
    pub(super) hosts: Vec<Host>,
    pub(super) networks: Vec<Network>,
    pub(super) channels: Vec<Channel>,
    /// The channel whose ways are shown.
    pub(super) channel: String,
    /// The network of each part of that channel, by number.
    #[serde(skip)]
    parts: Vec<usize>,
    #[serde(skip)]
    plan: Plan,
}

#[derive(Debug, Serialize)]
pub(super) struct Job {
    pub(super) pid: u32,
    pub(super) program: String,
    pub(super) seconds: u64,
    /// Ranks that have ended, and how, as predicates.
    pub(super) ended: BTreeMap<u32, String>,
}

/// Hosts are named by their numbers from here on.
#[derive(Debug, Serialize)]
pub(super) struct Cluster {
    pub(super) name: String,
    pub(super) hosts: Vec<usize>,
}

#[derive(Debug, Serialize)]
pub(super) struct Host {
    pub(super) name: String,
    pub(super) ranks: Vec<u32>,
    /// Whether it is a gateway of the channel whose ways are shown.
    pub(super) is_gateway: bool,
    /// Whether a job that runs goes on without it.
    pub(super) is_gone: bool,
}

#[derive(Debug, Serialize)]
pub(super) struct Network {
    pub(super) name: String,
    pub(super) driver: &'static str,
    pub(super) security: &'static str,
    pub(super) hosts: Vec<usize>,
    /// What a short message takes over it, as far as is known before a job is started.
    pub(super) latency_us: f64,
    pub(super) rate_bytes: u64,
}

#[derive(Debug, Serialize)]
pub(super) struct Channel {
    pub(super) name: String,
    /// The network that carries it, or the channels that it joins.
    pub(super) over: Vec<String>,
    pub(super) is_virtual: bool,
    pub(super) hosts: Vec<usize>,
    pub(super) gateways: Vec<usize>,
}

/// The way from one rank to another.
#[derive(Debug, Serialize)]
pub(super) struct Route {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) from_host: usize,
    /// Over which network, to which host, step by step. Empty on one host.
    pub(super) steps: Vec<(usize, usize)>,
    pub(super) to_host: usize,
    /// What a short message takes, in microseconds, and bytes per second, if there is a way between two hosts.
    pub(super) expected: Option<(f64, u64)>,
    /// Which of the two has ended.
    pub(super) ended: Option<u32>,
}

impl Route {
    pub(super) fn is_there(&self) -> bool {
        self.ended.is_none() && (self.from_host == self.to_host || !self.steps.is_empty())
    }
}

impl Map {
    /// `dealt`: the host of each rank.
    pub(super) fn new(
        file: &JobFile,
        hosts: Vec<String>,
        dealt: Vec<usize>,
        channel: &str,
    ) -> anyhow::Result<Self> {
        let names: Vec<&str> = hosts.iter().map(String::as_str).collect();
        let of = |set: &Hosts| numbers(&names, |host| set.contains(host));
        let networks: Vec<Network> = file
            .networks()
            .iter()
            .map(|network| describe(network, of(&network.hosts)))
            .collect();
        let parts: Vec<_> = file.parts(channel).collect();
        ensure!(
            !parts.is_empty(),
            "there is no channel {channel}; there are {}",
            all_channels(file).join(", ")
        );
        let network_of = |part: &mizzen_config::Channel| {
            networks
                .iter()
                .position(|network| network.name == part.network)
        };
        let numbered: Vec<usize> = parts.iter().filter_map(|part| network_of(part)).collect();
        let plan = parts.iter().zip(&numbered).map(|(part, network)| Part {
            hosts: of(&part.hosts)
                .into_iter()
                .map(|host| HostId(host as u32))
                .collect(),
            cost: cost(&networks[*network]),
        });
        let plan = Plan::new(plan.collect());
        let gateways = file.gateways(channel, &names);
        let host = |(index, name): (usize, &String)| Host {
            name: name.clone(),
            ranks: (0..)
                .zip(&dealt)
                .filter(|(_, host)| **host == index)
                .map(|(rank, _)| rank)
                .collect(),
            is_gateway: gateways.contains(&name.as_str()),
            is_gone: false,
        };
        Ok(Self {
            job: None,
            clusters: clusters(file, &names),
            hosts: hosts.iter().enumerate().map(host).collect(),
            channels: channels(file, &names),
            channel: channel.to_owned(),
            networks,
            parts: numbered,
            plan,
        })
    }

    /// As it is now, where it runs.
    pub(super) fn of(mut self, running: &Running) -> Self {
        for host in &running.gone {
            self.hosts[*host].is_gone = true;
        }
        self.job = Some(Job {
            pid: running.pid,
            program: running.program.clone(),
            seconds: running.seconds,
            ended: running.ended.clone(),
        });
        self
    }

    /// How many ranks there are.
    pub(super) fn size(&self) -> u32 {
        let ranks = self.hosts.iter().map(|host| host.ranks.len());
        ranks.sum::<usize>() as u32
    }

    /// Whether it has ended.
    pub(super) fn has_ended(&self, rank: u32) -> bool {
        let job = self.job.as_ref();
        job.is_some_and(|job| job.ended.contains_key(&rank))
    }

    /// The way from one rank to another, hop by hop, as each host on it would choose.
    pub(super) fn route(&self, from: u32, to: u32) -> Route {
        let host_of = |rank: u32| {
            self.hosts
                .iter()
                .position(|host| host.ranks.contains(&rank))
                .unwrap_or(0)
        };
        let (from_host, to_host) = (host_of(from), host_of(to));
        let is_gone = |host: HostId| self.hosts[host.0 as usize].is_gone;
        let (mut here, mut steps) = (from_host, Vec::new());
        let (mut latency, mut rate) = (0.0, u64::MAX);
        let ended = [from, to].into_iter().find(|rank| self.has_ended(*rank));
        while here != to_host && ended.is_none() {
            let table = Table::new(&self.plan, HostId(here as u32), is_gone);
            let Some(hop) = table.next(&self.plan, HostId(to_host as u32), 0) else {
                steps.clear();
                break;
            };
            let network = self.parts[hop.part];
            here = hop.to.0 as usize;
            steps.push((network, here));
            latency += self.networks[network].latency_us;
            rate = rate.min(self.networks[network].rate_bytes);
        }
        let expected = (!steps.is_empty()).then_some((latency, rate));
        Route {
            from,
            to,
            from_host,
            steps,
            to_host,
            expected,
            ended,
        }
    }
}

/// The hosts that a file names: those of networks first.
pub(super) fn named_hosts(file: &JobFile) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let clusters = file.clusters().iter().map(|cluster| &cluster.hosts);
    let networks = file
        .networks()
        .iter()
        .filter_map(|network| match &network.hosts {
            Hosts::Only(hosts) => Some(hosts),
            Hosts::All => None,
        });
    for host in networks.chain(clusters).flatten() {
        if !names.contains(host) {
            names.push(host.clone());
        }
    }
    names
}

fn all_channels(file: &JobFile) -> Vec<String> {
    let joined = file
        .virtual_channels()
        .iter()
        .map(|channel| channel.name.clone());
    file.channels()
        .iter()
        .map(|channel| channel.name.clone())
        .chain(joined)
        .collect()
}

fn numbers(hosts: &[&str], is_in: impl Fn(&str) -> bool) -> Vec<usize> {
    let all = hosts.iter().enumerate();
    all.filter(|(_, host)| is_in(host))
        .map(|(index, _)| index)
        .collect()
}

fn clusters(file: &JobFile, hosts: &[&str]) -> Vec<Cluster> {
    let mut clusters: Vec<Cluster> = Vec::new();
    for (index, host) in hosts.iter().enumerate() {
        let name = file.cluster_of(host).unwrap_or("nowhere");
        match clusters.iter_mut().find(|cluster| cluster.name == name) {
            Some(cluster) => cluster.hosts.push(index),
            None => clusters.push(Cluster {
                name: name.to_owned(),
                hosts: vec![index],
            }),
        }
    }
    clusters
}

fn channels(file: &JobFile, hosts: &[&str]) -> Vec<Channel> {
    let plain = file
        .channels()
        .iter()
        .map(|channel| (&channel.name, vec![channel.network.clone()], false));
    let joined = file
        .virtual_channels()
        .iter()
        .map(|channel| (&channel.name, channel.channels.clone(), true));
    let channel = |(name, over, is_virtual): (&String, Vec<String>, bool)| {
        let gateways = file.gateways(name, hosts);
        Channel {
            hosts: numbers(hosts, |host| {
                file.parts(name).any(|part| part.hosts.contains(host))
            }),
            gateways: numbers(hosts, |host| gateways.contains(&host)),
            name: name.clone(),
            over,
            is_virtual,
        }
    };
    plain.chain(joined).map(channel).collect()
}

fn describe(network: &mizzen_config::Network, hosts: Vec<usize>) -> Network {
    let (driver, security) = match (&network.driver, network.security) {
        (Driver::Ofi { .. }, _) => ("ofi", "trusted"),
        (_, Security::Trusted) => ("tcp", "trusted"),
        (_, Security::Tls) => ("tcp", "TLS"),
    };
    let (latency, rate_bytes) = cost_of(network);
    let latency_us = latency as f64 / 1e3;
    Network {
        name: network.name.clone(),
        driver,
        security,
        hosts,
        latency_us,
        rate_bytes,
    }
}

fn cost(network: &Network) -> Cost {
    Cost {
        latency: Duration::from_nanos((network.latency_us * 1e3) as u64),
        rate: network.rate_bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = "[[network]]\nname = 'sci'\nhosts = ['foo0', 'foo1', 'foo2']\n\
        [[network]]\nname = 'bip'\nsecurity = 'trusted'\nhosts = ['foo2', 'goo0', 'goo1']\n";

    fn map(size: u32) -> Map {
        let file = JobFile::parse("mizzen.toml", TWO).unwrap();
        let hosts = named_hosts(&file);
        let dealt = crate::hosts::deal(size, hosts.len()).collect();
        Map::new(&file, hosts, dealt, "default").unwrap()
    }

    #[test]
    fn the_way_between_clusters_leads_through_the_gateway() {
        let map = map(10);
        let names: Vec<&str> = map.hosts.iter().map(|host| host.name.as_str()).collect();
        assert_eq!(names, ["foo0", "foo1", "foo2", "goo0", "goo1"]);
        assert_eq!(map.hosts[2].ranks, [4, 5]);
        assert!(map.hosts[2].is_gateway && !map.hosts[3].is_gateway);
        let route = map.route(0, 9);
        assert_eq!(route.steps, [(0, 2), (1, 4)]);
        let (latency, rate) = route.expected.unwrap();
        assert!((latency - 14.3).abs() < 0.01, "{latency}");
        assert_eq!(rate, 1_700_000_000);
        // Two ranks of one host need no network.
        assert!(map.route(0, 1).steps.is_empty() && map.route(0, 1).is_there());
    }

    #[test]
    fn of_a_job_that_runs_the_way_is_that_of_now() {
        let text = "[[network]]\nname = 'a'\nhosts = ['x', 'g', 'h']\n\
            [[network]]\nname = 'b'\nhosts = ['g', 'h', 'y']\n";
        let mut running = Running {
            version: String::new(),
            pid: 1,
            program: "p".to_owned(),
            seconds: 0,
            file: Some(text.to_owned()),
            hosts: ["x", "y", "g", "h"].map(str::to_owned).into(),
            places: vec![0, 1],
            gone: vec![],
            ended: BTreeMap::new(),
        };
        let gateway = |running: &Running| {
            let map = crate::topo::running(running, "default").unwrap();
            map.route(0, 1).steps.first().map(|(_, host)| *host)
        };
        let first = gateway(&running).unwrap();
        running.gone.push(first);
        let second = gateway(&running).unwrap();
        assert_eq!([2, 3], [first.min(second), first.max(second)]);
        running.gone.push(second);
        assert_eq!(gateway(&running), None);
        running.gone.clear();
        running.ended.insert(1, "exited with code 0".to_owned());
        let map = crate::topo::running(&running, "default").unwrap();
        assert!(!map.route(0, 1).is_there() && map.route(0, 0).is_there());
    }

    #[test]
    fn hosts_without_a_way_to_each_other_are_told_so() {
        let text =
            "[[network]]\nname = 'a'\nhosts = ['x']\n[[network]]\nname = 'b'\nhosts = ['y']\n";
        let file = JobFile::parse("mizzen.toml", text).unwrap();
        let map = Map::new(&file, vec!["x".into(), "y".into()], vec![0, 1], "default").unwrap();
        assert!(!map.route(0, 1).is_there());
        assert_eq!(map.clusters.len(), 2);
    }

    #[test]
    fn a_channel_that_is_not_there_is_refused_with_those_that_are() {
        let file = JobFile::parse("mizzen.toml", TWO).unwrap();
        let error = Map::new(&file, vec!["foo0".into()], vec![0], "sic").unwrap_err();
        assert_eq!(
            error.to_string(),
            "there is no channel sic; there are sci, bip, default"
        );
    }
}
