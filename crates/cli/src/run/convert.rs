//! A network of the job's file, as agents and processes are told of it.

use anyhow::ensure;
use mizzen_config::{Driver, Interface, Security};
use mizzen_proto::boot::{Carrier, MAX_INTERFACES, MAX_STREAMS, Network};

pub(super) fn convert(network: &mizzen_config::Network) -> anyhow::Result<Network> {
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
        streams: match network.is_far() {
            true => network.streams.unwrap_or(1).min(MAX_STREAMS),
            false => 0,
        },
        // Of a packet of 1,514 bytes 1,448 are ours: the rest is not counted.
        pace: network
            .rate
            .map_or(0, |rate| rate * 1_000_000 / 8 * 95 / 100),
        door: None,
    })
}

/// What a short message takes over a network, in nanoseconds, and bytes a second: measured between two namespaces of one machine (docs/networks.md), so of the
/// software and not of a cable.
pub(crate) fn cost_of(network: &mizzen_config::Network) -> (u64, u64) {
    match (&network.driver, network.security) {
        (Driver::Ofi { .. }, _) => (11_000, 2_800_000_000),
        (_, Security::Trusted) => (6_300, 3_800_000_000),
        (_, Security::Tls) => (8_000, 1_700_000_000),
    }
}
