//! The channels of the job's file that programs may name, as each host is on them.

use anyhow::ensure;
use mizzen_config::{DEFAULT_CHANNEL, JobFile};
use mizzen_proto::boot::{self, MAX_CHANNELS, MAX_NETWORKS, MAX_OWN_DRIVERS, MAX_RANGES, Network};

use super::convert::convert;
use super::job::Job;
use crate::hosts::Host;

/// The channels that programs may name, as one host is on them.
#[derive(Clone, Default)]
pub(crate) struct Named {
    pub(crate) channels: Vec<boot::Channel>,
    /// The networks that only they use.
    pub(crate) others: Vec<Network>,
}

/// One of them.
struct Described<'f> {
    name: &'f str,
    /// Whether it joins others.
    is_joined: bool,
    /// Whether the file names it. One that merely stands for a network has no connections of its own.
    is_declared: bool,
}

/// What each host is told of them, in the order of the hosts. All are told of all, in one order.
pub(super) fn named(file: &JobFile, hosts: &[Host], job: &Job) -> anyhow::Result<Vec<Named>> {
    let described = described(file);
    ensure!(
        described.len() <= MAX_CHANNELS,
        "the job's file has {} channels; at most {MAX_CHANNELS} can be used",
        described.len()
    );
    let ranks: Vec<Vec<(u32, u32)>> = described
        .iter()
        .map(|channel| members(file, channel.name, hosts, job))
        .collect();
    let ranges: usize = ranks.iter().map(Vec::len).sum();
    ensure!(
        ranges <= MAX_RANGES,
        "the channels of the job's file have their ranks in {ranges} stretches; at most {MAX_RANGES} can be used: name the hosts of each \
         cluster one after the other in --hosts"
    );
    // The same for all hosts, or they would not find each other: connections can be shared where there are some everywhere.
    let is_there = |channel: &Described<'_>, host: &Host| {
        let of_default = networks_of(file, DEFAULT_CHANNEL, host);
        let networks = networks_of(file, channel.name, host);
        networks.iter().all(|name| of_default.contains(name))
    };
    let is_own = |channel: &Described<'_>| {
        channel.is_declared || !hosts.iter().all(|host| is_there(channel, host))
    };
    let all = described.into_iter().zip(ranks);
    let all = all.map(|(channel, ranks)| boot::Channel {
        name: channel.name.to_owned(),
        ranks,
        networks: Vec::new(),
        is_own: is_own(&channel),
        is_joined: channel.is_joined,
    });
    let all: Vec<boot::Channel> = all.collect();
    hosts.iter().map(|host| of_host(file, &all, host)).collect()
}

/// The networks over which a channel goes on a host, in order of preference.
fn networks_of(file: &JobFile, channel: &str, host: &Host) -> Vec<String> {
    let parts = file.parts(channel);
    let on = parts.filter(|part| part.hosts.contains(&host.name));
    on.map(|part| part.network.clone()).collect()
}

fn described(file: &JobFile) -> Vec<Described<'_>> {
    let plain = file.channels().iter().map(|channel| Described {
        name: &channel.name,
        is_joined: false,
        // The file has no channel over a network that is called like it: it stands for the network.
        is_declared: channel.name != channel.network,
    });
    let joined = file.virtual_channels().iter().map(|channel| Described {
        name: &channel.name,
        is_joined: true,
        is_declared: !is_default(file, &channel.name),
    });
    let all = plain.chain(joined);
    all.filter(|channel| channel.name != DEFAULT_CHANNEL)
        .collect()
}

/// Whether a channel has the same parts as the one that everybody is on.
fn is_default(file: &JobFile, name: &str) -> bool {
    let parts = |of| {
        file.parts(of)
            .map(|part| part.name.clone())
            .collect::<Vec<_>>()
    };
    parts(name) == parts(DEFAULT_CHANNEL)
}

/// The ranks on a channel, in stretches.
fn members(file: &JobFile, channel: &str, hosts: &[Host], job: &Job) -> Vec<(u32, u32)> {
    let is_on = |host: &Host| {
        file.parts(channel)
            .any(|part| part.hosts.contains(&host.name))
    };
    let on = (0..hosts.len()).filter(|index| is_on(&hosts[*index]));
    let mut ranks: Vec<u32> = on.flat_map(|index| job.ranks_of(index)).collect();
    ranks.sort_unstable();
    let mut stretches: Vec<(u32, u32)> = Vec::new();
    for rank in ranks {
        match stretches.last_mut() {
            Some((_, end)) if *end == rank => *end += 1,
            _ => stretches.push((rank, rank + 1)),
        }
    }
    stretches
}

fn of_host(file: &JobFile, all: &[boot::Channel], host: &Host) -> anyhow::Result<Named> {
    let of_default = networks_of(file, DEFAULT_CHANNEL, host);
    let channels = all.iter().map(|channel| boot::Channel {
        networks: networks_of(file, &channel.name, host),
        ..channel.clone()
    });
    let channels: Vec<boot::Channel> = channels.collect();
    let own = channels.iter().filter(|channel| channel.is_own);
    let drivers: usize = own.clone().map(|channel| channel.networks.len()).sum();
    ensure!(
        drivers <= MAX_OWN_DRIVERS,
        "the host {} is on channels over {drivers} networks in all, each with connections of its own; at most {MAX_OWN_DRIVERS} can be used",
        host.name
    );
    let is_other = |network: &&mizzen_config::Network| {
        let is_used = own
            .clone()
            .any(|channel| channel.networks.contains(&network.name));
        is_used && !of_default.contains(&network.name)
    };
    let others = file.networks().iter().filter(is_other).map(convert);
    let others = others.collect::<anyhow::Result<Vec<_>>>()?;
    ensure!(
        others.len() <= MAX_NETWORKS,
        "the channels of the host {} use {} networks that the channel {DEFAULT_CHANNEL} does not; at most {MAX_NETWORKS} can be used",
        host.name,
        others.len()
    );
    Ok(Named { channels, others })
}
