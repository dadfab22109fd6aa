//! The channels of the job's file that programs may name, as each host is on them.

use anyhow::ensure;
use mizzen_config::{DEFAULT_CHANNEL, JobFile};
use mizzen_proto::boot::{self, MAX_CHANNELS, MAX_NETWORKS, MAX_OWN_DRIVERS, MAX_RANGES, Network};

use super::convert::convert;
use super::job::Job;
use super::whereabouts::stretches;
use crate::hosts::Host;

/// The channels that programs may name, as one host is on them.
#[derive(Clone, Default)]
pub(crate) struct Named {
    pub(crate) channels: Vec<boot::Channel>,
    /// The networks that only they use.
    pub(crate) others: Vec<Network>,
}

/// What each host is told of them, in the order of the hosts. All are told of all, in one order.
pub(super) fn named(file: &JobFile, hosts: &[Host], job: &Job) -> anyhow::Result<Vec<Named>> {
    let all = described(file, hosts, job)?;
    hosts.iter().map(|host| of_host(file, &all, host)).collect()
}

/// The channels that the file declares, without what differs from host to host.
fn described(file: &JobFile, hosts: &[Host], job: &Job) -> anyhow::Result<Vec<boot::Channel>> {
    let plain = file.channels().iter().filter(|channel| channel.is_declared);
    let plain = plain.map(|channel| (&channel.name, false));
    let joined = file.virtual_channels().iter();
    let joined = joined.map(|channel| (&channel.name, true));
    let all = plain
        .chain(joined)
        .filter(|(name, _)| *name != DEFAULT_CHANNEL);
    let all = all.map(|(name, is_joined)| boot::Channel {
        name: name.clone(),
        ranks: members(file, name, hosts, job),
        networks: Vec::new(),
        is_joined,
    });
    let all: Vec<boot::Channel> = all.collect();
    ensure!(
        all.len() <= MAX_CHANNELS,
        "the job's file has {} channels besides {DEFAULT_CHANNEL}; at most {MAX_CHANNELS} can be used",
        all.len()
    );
    let ranges: usize = all.iter().map(|channel| channel.ranks.len()).sum();
    ensure!(
        ranges <= MAX_RANGES,
        "the channels of the job's file have their ranks in {ranges} stretches; at most {MAX_RANGES} can be used: name the hosts of each \
         cluster one after the other in --hosts"
    );
    let names: Vec<&str> = hosts.iter().map(|host| &host.name[..]).collect();
    let has_gateways = !file.gateways(DEFAULT_CHANNEL, &names).is_empty();
    for channel in all.iter().filter(|_| !has_gateways) {
        ensure!(
            file.gateways(&channel.name, &names).is_empty(),
            "the virtual channel {} needs gateways between its networks, and it has those of the channel {DEFAULT_CHANNEL}, which needs none \
             here: let {DEFAULT_CHANNEL} join the same channels, or put its hosts on one network",
            channel.name
        );
    }
    Ok(all)
}

/// The networks over which a channel goes on a host, in order of preference.
fn networks_of(file: &JobFile, channel: &str, host: &Host) -> Vec<String> {
    let parts = file.parts(channel);
    let on = parts.filter(|part| part.hosts.contains(&host.name));
    on.map(|part| part.network.clone()).collect()
}

/// The ranks on a channel, in stretches.
fn members(file: &JobFile, channel: &str, hosts: &[Host], job: &Job) -> Vec<(u32, u32)> {
    let is_on = |host: &Host| !networks_of(file, channel, host).is_empty();
    let on = (0..hosts.len()).filter(|index| is_on(&hosts[*index]));
    let mut ranks: Vec<u32> = on.flat_map(|index| job.ranks_of(index)).collect();
    ranks.sort_unstable();
    stretches(ranks.into_iter())
}

fn of_host(file: &JobFile, all: &[boot::Channel], host: &Host) -> anyhow::Result<Named> {
    let of_default = networks_of(file, DEFAULT_CHANNEL, host);
    let channels = all.iter().map(|channel| boot::Channel {
        networks: networks_of(file, &channel.name, host),
        ..channel.clone()
    });
    let channels: Vec<boot::Channel> = channels.collect();
    let drivers: usize = channels.iter().map(|channel| channel.networks.len()).sum();
    ensure!(
        drivers <= MAX_OWN_DRIVERS,
        "the host {} is on channels over {drivers} networks in all, each with connections of its own; at most {MAX_OWN_DRIVERS} can be used",
        host.name
    );
    let is_other = |network: &&mizzen_config::Network| {
        let mut users = channels.iter();
        let is_used = users.any(|channel| channel.networks.contains(&network.name));
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
