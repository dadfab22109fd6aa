//! The networks of a job: from its file, or the plain one.

use anyhow::{Context, ensure};
use mizzen_config::{DEFAULT_CHANNEL, Driver, Interface, JobFile, Security};
use mizzen_proto::boot::{Carrier, MAX_INTERFACES, MAX_NETWORKS, Network};

use super::options::Run;
use super::printer::say;
use crate::hosts::Host;

/// What each host attaches to, in the order of `hosts`. Says what a user should know about them.
pub(crate) fn networks(options: &Run, hosts: &[Host]) -> anyhow::Result<Vec<Vec<Network>>> {
    let Some(path) = &options.file else {
        return Ok(vec![vec![Network::plain()]; hosts.len()]);
    };
    let file = JobFile::read(path).context("the job's file cannot be used")?;
    tell_of_gateways(&file, hosts)?;
    for network in file.networks() {
        warn(network, hosts.len());
    }
    hosts.iter().map(|host| of_host(&file, host)).collect()
}

/// What the file may describe, and jobs do not do yet, is not silently left out.
fn tell_of_gateways(file: &JobFile, hosts: &[Host]) -> anyhow::Result<()> {
    ensure!(
        !file.has_channels(),
        "jobs cannot use the channels of a file yet, `mizzen topo` only shows them; leave [[channel]] and [[vchannel]] out"
    );
    let names: Vec<&str> = hosts.iter().map(|host| &host.name[..]).collect();
    let gateways = file.gateways(DEFAULT_CHANNEL, &names);
    if !gateways.is_empty() {
        say(&format!(
            "warning: some hosts share no network, and gateways do not forward yet: what is on both of theirs ({}) does not help them.",
            gateways.join(", ")
        ));
    }
    Ok(())
}

fn of_host(file: &JobFile, host: &Host) -> anyhow::Result<Vec<Network>> {
    let networks: Vec<Network> = file
        .networks_of(&host.name)
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

fn convert(network: &mizzen_config::Network) -> anyhow::Result<Network> {
    ensure!(
        network.interfaces.len() <= MAX_INTERFACES,
        "the network {} names {} interfaces; at most {MAX_INTERFACES} can be used",
        network.name,
        network.interfaces.len()
    );
    let carrier = match &network.driver {
        Driver::Tcp { port } => Carrier::Tcp { port: *port },
        Driver::Ofi { provider } => Carrier::Ofi {
            provider: provider.clone().unwrap_or_default(),
        },
        other => anyhow::bail!("this command does not know the driver {other:?}"),
    };
    let interfaces = network.interfaces.iter().map(|interface| match interface {
        Interface::Name(name) => name.clone(),
        Interface::Subnet(subnet) => subnet.to_string(),
    });
    Ok(Network {
        name: network.name.clone(),
        carrier,
        interfaces: interfaces.collect(),
        trusted: network.security == Security::Trusted,
    })
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
