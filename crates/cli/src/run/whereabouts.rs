//! Who is where in a job, for programs that ask.

use anyhow::Context;
use mizzen_config::{DEFAULT_CHANNEL, Driver, JobFile, Security};
use mizzen_proto::boot::{ChannelOf, HostOf, NetworkOf, TOPOLOGY_PAGE, ToAgent, Topology};

use super::convert::cost_of;
use super::job::Job;
use crate::hosts::Host;

/// What a job without a file is like: all hosts are on one network.
pub(crate) fn without_file() -> anyhow::Result<JobFile> {
    JobFile::parse("", "[[network]]\nname = \"default\"\n").context("without a file")
}

/// The topology of a job, encoded; empty, if there are too many hosts to tell of.
pub(super) struct Whereabouts(Vec<u8>);

impl Whereabouts {
    pub(super) fn new(file: Option<JobFile>, hosts: &[Host], job: &Job) -> anyhow::Result<Self> {
        let file = match file {
            Some(file) => file,
            None => without_file()?,
        };
        // Nobody may ever ask.
        Ok(Self(
            describe(&file, hosts, job).encode().unwrap_or_default(),
        ))
    }

    /// A page of it.
    pub(super) fn page(&self, rank: u32, from: u32) -> ToAgent {
        let begin = (from as usize).min(self.0.len());
        let end = (begin + TOPOLOGY_PAGE).min(self.0.len());
        ToAgent::Topology {
            rank,
            from,
            total: u32::try_from(self.0.len()).unwrap_or(u32::MAX),
            bytes: self.0[begin..end].to_vec(),
        }
    }
}

fn describe(file: &JobFile, hosts: &[Host], job: &Job) -> Topology {
    let names: Vec<&str> = hosts.iter().map(|host| &host.name[..]).collect();
    let gateways = file.gateways(DEFAULT_CHANNEL, &names);
    let networks = file.networks().iter().map(|network| {
        let (latency, rate) = cost_of(network);
        NetworkOf {
            name: network.name.clone(),
            driver: match network.driver {
                Driver::Ofi { .. } => "ofi".to_owned(),
                _ => "tcp".to_owned(),
            },
            is_sealed: network.security == Security::Tls,
            latency,
            rate,
        }
    });
    let declared = file.channels().iter().filter(|channel| channel.is_declared);
    let declared = declared.map(|channel| &channel.name[..]);
    let joined = file
        .virtual_channels()
        .iter()
        .map(|channel| &channel.name[..]);
    let others = declared
        .chain(joined)
        .filter(|name| *name != DEFAULT_CHANNEL);
    let number = |name: &str| {
        let found = file
            .networks()
            .iter()
            .position(|network| network.name == name);
        u32::try_from(found.unwrap_or(0)).unwrap_or(u32::MAX)
    };
    let channels = [DEFAULT_CHANNEL].into_iter().chain(others).map(|name| {
        let parts = file.parts(name).map(|part| {
            let on = (0..)
                .zip(&names)
                .filter(|(_, host)| part.hosts.contains(host));
            (number(&part.network), stretches(on.map(|(host, _)| host)))
        });
        ChannelOf {
            name: name.to_owned(),
            parts: parts.collect(),
        }
    });
    let hosts = hosts.iter().enumerate().map(|(index, host)| HostOf {
        name: host.name.clone(),
        cluster: file.cluster_of(&host.name).unwrap_or_default().to_owned(),
        ranks: stretches(job.ranks_of(index).into_iter()),
        networks: file
            .networks_of(&host.name)
            .map(|network| number(&network.name))
            .collect(),
        is_gateway: gateways.contains(&&host.name[..]),
    });
    Topology {
        networks: networks.collect(),
        channels: channels.collect(),
        hosts: hosts.collect(),
    }
}

/// Numbers that follow each other, as ranges.
pub(super) fn stretches(numbers: impl Iterator<Item = u32>) -> Vec<(u32, u32)> {
    let mut stretches: Vec<(u32, u32)> = Vec::new();
    for number in numbers {
        match stretches.last_mut() {
            Some((_, end)) if *end == number => *end += 1,
            _ => stretches.push((number, number + 1)),
        }
    }
    stretches
}
