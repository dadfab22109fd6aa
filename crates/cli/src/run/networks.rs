//! The networks of a job: from its file, or the plain one.

use anyhow::{Context, bail, ensure};
use mizzen_config::{Channel, DEFAULT_CHANNEL, JobFile, Security};
use mizzen_proto::boot::{MAX_NETWORKS, MAX_RANGES, MAX_SPANS, Network, Span};

use super::channels::{self, Named};
use super::convert::convert;
use super::job::Job;
use super::options::Run;
use super::printer::say;
use crate::hosts::Host;

/// What the hosts of a job have of networks.
pub(crate) struct Layout {
    /// What each host attaches to, in the order of the hosts.
    pub(crate) networks: Vec<Vec<Network>>,
    /// Which hosts share which networks, if there are gateways.
    pub(crate) spans: Vec<Span>,
    /// Which hosts are gateways.
    pub(crate) is_gateway: Vec<bool>,
    /// The channels that programs may name, as each host is on them, in the order of the hosts.
    pub(crate) channels: Vec<Named>,
}

/// The job's file, if there is one.
pub(crate) fn read(options: &Run) -> anyhow::Result<Option<JobFile>> {
    let file = options.file.as_ref().map(JobFile::read);
    file.transpose().context("the job's file cannot be used")
}

/// What the job's file says of each host, if there is one. Says what a user should know about its networks.
pub(crate) fn networks(
    file: Option<&JobFile>,
    hosts: &[Host],
    job: &Job,
) -> anyhow::Result<Layout> {
    let Some(file) = file else {
        return Ok(Layout {
            networks: vec![vec![Network::plain()]; hosts.len()],
            spans: Vec::new(),
            is_gateway: vec![false; hosts.len()],
            channels: vec![Named::default(); hosts.len()],
        });
    };
    for network in file.networks() {
        warn(network, hosts.len());
    }
    let networks = hosts.iter().map(|host| of_host(file, host));
    let names: Vec<&str> = hosts.iter().map(|host| &host.name[..]).collect();
    let gateways = file.gateways(DEFAULT_CHANNEL, &names);
    let idle = |(number, name): &(usize, &&str)| {
        job.ranks_of(*number).is_empty() && !gateways.contains(*name)
    };
    if let Some((_, name)) = names.iter().enumerate().find(idle) {
        bail!(
            "the host {name} carries no processes, and is no gateway: nobody needs it between two networks of the job's file; leave it out \
             of --gateways"
        );
    }
    Ok(Layout {
        networks: networks.collect::<anyhow::Result<_>>()?,
        spans: match gateways[..] {
            [] => Vec::new(),
            _ => spans(file, &names)?,
        },
        is_gateway: names.iter().map(|name| gateways.contains(name)).collect(),
        channels: channels::named(file, hosts, job)?,
    })
}

/// Who shares which networks of the channel that everybody is on.
fn spans(file: &JobFile, names: &[&str]) -> anyhow::Result<Vec<Span>> {
    let mut spans = Vec::new();
    for part in file.parts(DEFAULT_CHANNEL) {
        let mut hosts: Vec<(u32, u32)> = Vec::new();
        for (number, name) in (0..).zip(names) {
            match hosts.last_mut() {
                _ if !part.hosts.contains(name) => {}
                Some((_, end)) if *end == number => *end += 1,
                _ => hosts.push((number, number + 1)),
            }
        }
        if !hosts.is_empty() {
            let network = part.network.clone();
            let mut networks = file.networks().iter();
            let declared = networks.find(|declared| declared.name == network);
            let trusted = declared.is_some_and(|network| network.security == Security::Trusted);
            spans.push(Span {
                network,
                hosts,
                trusted,
            });
        }
    }
    let ranges: usize = spans.iter().map(|span| span.hosts.len()).sum();
    ensure!(
        spans.len() <= MAX_SPANS && ranges <= MAX_RANGES,
        "the job's file joins {} networks in {ranges} stretches of hosts; at most {MAX_SPANS} and {MAX_RANGES} can be used: name the hosts \
         of each cluster one after the other in --hosts",
        spans.len()
    );
    Ok(spans)
}

fn of_host(file: &JobFile, host: &Host) -> anyhow::Result<Vec<Network>> {
    let parts: Vec<&Channel> = file.parts(DEFAULT_CHANNEL).collect();
    let carries = |network: &&mizzen_config::Network| {
        let mut parts = parts.iter().filter(|part| part.network == network.name);
        parts.any(|part| part.hosts.contains(&host.name))
    };
    let networks: Vec<Network> = file
        .networks_of(&host.name)
        .filter(carries)
        .map(convert)
        .collect::<anyhow::Result<_>>()?;
    let name = &host.name;
    ensure!(
        !networks.is_empty(),
        "no network of the job's file has the host {name}; add it to the hosts of one, or leave its hosts out"
    );
    ensure!(
        networks.len() <= MAX_NETWORKS,
        "the host {name} is on {} networks; at most {MAX_NETWORKS} can be used by one job",
        networks.len()
    );
    Ok(networks)
}

/// A network without encryption is said aloud, each time.
fn warn(network: &mizzen_config::Network, hosts: usize) {
    if network.security == Security::Trusted && hosts > 1 {
        say(&format!(
            "warning: the network {} is declared trusted: messages on it are not encrypted, and whoever is on it can read and \
             change them.",
            network.name
        ));
    }
}
