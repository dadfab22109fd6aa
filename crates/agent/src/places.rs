//! Where an agent listens for others, and where it looks for them: on the networks of the job, as processes do.
//!
//! A locator names networks and addresses, `site=10.0.0.1:4000;fast=10.1.0.1:4000`: whoever dials takes those of networks that it is on.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};

use anyhow::{Context, ensure};
use mizzen_proto::boot::{Network, Start};
use mizzen_proto::membership::MAX_LOCATOR;
use mizzen_tcp::{Interface, interfaces};

/// A socket that listens, and what others are told of it.
pub(crate) fn listen(start: &Start) -> anyhow::Result<(TcpListener, String)> {
    let here = interfaces().context("the interfaces of this host cannot be seen")?;
    let mut named: Vec<(&str, Vec<IpAddr>)> = Vec::new();
    for network in reachable(&start.networks) {
        named.push((&network.name, addresses(network, start, &here)?));
    }
    let mut all: Vec<IpAddr> = named.iter().flat_map(|(_, all)| all.clone()).collect();
    all.sort_unstable();
    all.dedup();
    let at = match all[..] {
        [one] => one,
        [..] if all.iter().all(IpAddr::is_ipv4) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        [..] => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    let listener = TcpListener::bind(SocketAddr::new(at, 0)).with_context(|| {
        format!(
            "the agent of {} cannot listen at {at}; check --hosts",
            start.host
        )
    })?;
    listener.set_nonblocking(true)?;
    let port = listener.local_addr()?.port();
    let part = |(name, all): &(&str, Vec<IpAddr>)| {
        let texts = all.iter().map(|ip| SocketAddr::new(*ip, port).to_string());
        format!("{name}={}", texts.collect::<Vec<_>>().join(","))
    };
    let mut locator = named.iter().map(part).collect::<Vec<_>>().join(";");
    while locator.len() > MAX_LOCATOR {
        // What is preferred comes first.
        let cut = locator.rfind([',', ';']).unwrap_or(0);
        locator.truncate(cut);
    }
    ensure!(
        !locator.is_empty(),
        "{} has no address for other hosts",
        start.host
    );
    Ok((listener, locator))
}

/// The networks on which agents reach each other. Those who are at another site they do not: the launchers pass that on.
fn reachable(networks: &[Network]) -> impl Iterator<Item = &Network> {
    networks.iter().filter(|network| network.door.is_none())
}

/// The addresses in a locator on our networks, best first: the order of our networks, then those in a subnet of ours.
pub(crate) fn addresses_in(locator: &str, networks: &[Network]) -> Vec<SocketAddr> {
    let ours = interfaces().unwrap_or_default();
    let is_near = |address: &SocketAddr| {
        let mut outer = ours.iter().filter(|one| !one.is_inner());
        outer.any(|one| one.reaches(address.ip()))
    };
    let mut found = Vec::new();
    for network in reachable(networks) {
        let parts = locator.split(';').filter_map(|part| part.split_once('='));
        let texts = parts.filter(|(name, _)| *name == network.name);
        let texts = texts.flat_map(|(_, texts)| texts.split(','));
        let mut addresses: Vec<SocketAddr> = texts.filter_map(|text| text.parse().ok()).collect();
        addresses.sort_by_key(|address| !is_near(address));
        found.extend(addresses);
    }
    found.dedup();
    found.truncate(MAX_ADDRESSES);
    found
}

fn addresses(network: &Network, start: &Start, here: &[Interface]) -> anyhow::Result<Vec<IpAddr>> {
    if network.interfaces.is_empty() {
        if !start.bind.is_empty() {
            let bind = start.bind.parse();
            let host = &start.host;
            return Ok(vec![bind.with_context(|| {
                format!(
                    "{:?}, where {host} is to listen, is not an address",
                    start.bind
                )
            })?]);
        }
        return Ok(outer(here));
    }
    let mut found: Vec<IpAddr> = Vec::new();
    for wanted in &network.interfaces {
        let meant = here.iter().filter(|one| one.is_meant_by(wanted));
        found.extend(meant.map(|one| one.address));
    }
    ensure!(
        !found.is_empty(),
        "{} has no interface of {}, which the network {} names",
        start.host,
        network.interfaces.join(", "),
        network.name
    );
    Ok(found)
}

/// The addresses that other hosts can use, IPv4 first; loopback only if there is nothing else.
fn outer(here: &[Interface]) -> Vec<IpAddr> {
    let is_link_local = |ip: IpAddr| match ip {
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
        IpAddr::V4(ip) => ip.is_link_local(),
    };
    let is_outer = |one: &&Interface| {
        !one.is_inner() && !one.address.is_loopback() && !is_link_local(one.address)
    };
    let mut found: Vec<IpAddr> = here
        .iter()
        .filter(is_outer)
        .map(|one| one.address)
        .collect();
    if found.is_empty() {
        found.push(Ipv4Addr::LOCALHOST.into());
    }
    found.sort_by_key(IpAddr::is_ipv6);
    found
}

/// Addresses of one agent: each may take a second to try.
const MAX_ADDRESSES: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_networks_in_common_are_dialled() {
        let named = |name: &str| Network {
            name: name.into(),
            ..Network::plain()
        };
        let locator = "slow=192.0.2.1:1;fast=192.0.2.2:2,[2001:db8::1]:2;odd=x;";
        let addresses = addresses_in(locator, &[named("fast"), named("other")]);
        let texts: Vec<String> = addresses.iter().map(SocketAddr::to_string).collect();
        assert_eq!(texts, ["192.0.2.2:2", "[2001:db8::1]:2"]);
        assert_eq!(addresses_in("nonsense", &[named("fast")]), []);
        let mut through = named("fast");
        through.door = Some(mizzen_proto::boot::Door {
            at: "127.0.0.1:4434".into(),
            meeting: "render@b".into(),
        });
        assert_eq!(addresses_in(locator, &[through]), [], "at another site");
    }
}
