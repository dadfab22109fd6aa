//! Where this host can be reached, and how that is written down.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use if_addrs::IfAddr;
use mizzen_driver::{ConnectError, Locator};

/// An address of this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// The name of the interface.
    pub name: String,
    /// One of its addresses.
    pub address: IpAddr,
    /// How many bits of it are those of its subnet.
    pub prefix: u8,
}

impl Interface {
    /// Whether it only joins containers or virtual machines of this host: other hosts have one with the same name and address,
    /// and cannot reach ours.
    #[must_use]
    pub fn is_inner(&self) -> bool {
        INNER.iter().any(|start| self.name.starts_with(start))
    }

    /// Whether a job's file means this interface: by its name, or by a subnet that its address is in.
    #[must_use]
    pub fn is_meant_by(&self, wanted: &str) -> bool {
        let Some((address, prefix)) = wanted.split_once('/') else {
            return self.name == wanted;
        };
        let (Ok(address), Ok(prefix)) = (address.parse::<IpAddr>(), prefix.parse::<u8>()) else {
            return false;
        };
        let subnet = Self {
            name: String::new(),
            address,
            prefix,
        };
        subnet.reaches(self.address)
    }

    /// Whether an address is in its subnet.
    #[must_use]
    pub fn reaches(&self, other: IpAddr) -> bool {
        match (self.address, other) {
            (IpAddr::V4(ours), IpAddr::V4(other)) => {
                let shift = 32 - u32::from(self.prefix.min(32));
                let differ = u64::from(u32::from(ours) ^ u32::from(other));
                differ >> shift == 0
            }
            (IpAddr::V6(ours), IpAddr::V6(other)) => {
                let shift = 128 - u32::from(self.prefix.min(128));
                let differ = u128::from(ours) ^ u128::from(other);
                differ.checked_shr(shift).unwrap_or(0) == 0
            }
            _ => false,
        }
    }
}

/// How the names of bridges within a host begin.
const INNER: [&str; 9] = [
    "docker", "virbr", "br-", "cni", "flannel", "lxcbr", "lxdbr", "podman", "kube-",
];

/// The locator of a driver that listens at `bound`: at `offered`, or else where others most likely reach it.
pub(crate) fn locator_of(bound: SocketAddr, offered: &[IpAddr]) -> io::Result<Locator> {
    let addresses = match bound.ip() {
        _ if !offered.is_empty() => offered.to_vec(),
        ip if !ip.is_unspecified() => vec![ip],
        // A socket on the unspecified IPv6 address takes IPv4 as well.
        IpAddr::V6(_) => reachable(&outer(interfaces()?)),
        IpAddr::V4(_) => {
            let mut all = outer(interfaces()?);
            all.retain(IpAddr::is_ipv4);
            reachable(&all)
        }
    };
    let addresses = addresses.into_iter().take(MAX_ADDRESSES);
    let texts: Vec<String> = addresses
        .map(|ip| SocketAddr::new(ip, bound.port()).to_string())
        .collect();
    Locator::new(&texts.join(",")).map_err(io::Error::other)
}

/// The addresses in a locator.
pub(crate) fn addresses_in(locator: &Locator) -> Result<Vec<SocketAddr>, ConnectError> {
    let bad = |why: String| ConnectError::BadLocator { why };
    let parse = |text: &str| {
        text.parse::<SocketAddr>()
            .map_err(|_| bad(format!("{text:?} is not an address and a port")))
    };
    let addresses: Vec<SocketAddr> = locator
        .as_str()
        .split(',')
        .map(parse)
        .collect::<Result<_, _>>()?;
    if addresses.len() > MAX_ADDRESSES {
        return Err(bad(format!(
            "{} addresses, more than {MAX_ADDRESSES}",
            addresses.len()
        )));
    }
    Ok(addresses)
}

/// The addresses that are not only of this host, unless there are no others.
fn outer(all: Vec<Interface>) -> Vec<IpAddr> {
    let is_outer = |one: &Interface| !one.is_inner() && !one.address.is_loopback();
    let only_outer = all.iter().any(is_outer);
    let addresses = all.iter().filter(|one| !only_outer || is_outer(one));
    addresses.map(|one| one.address).collect()
}

/// The addresses in the order in which they are best tried: first those in a subnet of ours.
pub(crate) fn in_order(mut addresses: Vec<SocketAddr>, ours: &[Interface]) -> Vec<SocketAddr> {
    let outer: Vec<&Interface> = ours.iter().filter(|one| !one.is_inner()).collect();
    addresses.sort_by_key(|address| !outer.iter().any(|one| one.reaches(address.ip())));
    addresses
}

/// The addresses that others can use, IPv4 first; loopback only if there is nothing else.
fn reachable(all: &[IpAddr]) -> Vec<IpAddr> {
    let (loopback, others): (Vec<IpAddr>, Vec<IpAddr>) =
        all.iter().partition(|ip| ip.is_loopback());
    let is_link_local = |ip: &IpAddr| match ip {
        // Without the name of an interface, which means something else on another host, these lead nowhere.
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
        IpAddr::V4(ip) => ip.is_link_local(),
    };
    let mut found: Vec<IpAddr> = others.into_iter().filter(|ip| !is_link_local(ip)).collect();
    if found.is_empty() {
        found = loopback;
    }
    if found.is_empty() {
        found.push(Ipv4Addr::LOCALHOST.into());
    }
    found.sort_by_key(IpAddr::is_ipv6);
    found.dedup();
    found
}

/// The addresses of all interfaces that are up, in the system's order.
///
/// ```
/// let all = mizzen_tcp::interfaces()?;
/// assert!(all.iter().any(|one| one.address.is_loopback()));
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
///
/// If the system does not let us see them.
pub fn interfaces() -> io::Result<Vec<Interface>> {
    let all = if_addrs::get_if_addrs()?.into_iter();
    Ok(all.filter(is_up).map(Interface::from).collect())
}

impl From<if_addrs::Interface> for Interface {
    fn from(one: if_addrs::Interface) -> Self {
        let prefix = match &one.addr {
            IfAddr::V4(address) => address.prefixlen,
            IfAddr::V6(address) => address.prefixlen,
        };
        Self {
            address: one.ip(),
            prefix,
            name: one.name,
        }
    }
}

/// Whether an interface was switched on. One whose cable is out is not running but still up: the cable may come back, and
/// until then other interfaces do.
fn is_up(one: &if_addrs::Interface) -> bool {
    one.is_oper_up() || flags_of(&one.name).is_some_and(|flags| flags & IFF_UP != 0)
}

/// The flags of an interface, which if-addrs does not give.
fn flags_of(name: &str) -> Option<u32> {
    let text = std::fs::read_to_string(format!("/sys/class/net/{name}/flags")).ok()?;
    u32::from_str_radix(text.trim().strip_prefix("0x")?, 16).ok()
}

/// The flag of an interface that was switched on, as `netdevice(7)` numbers them.
const IFF_UP: u32 = 1;

/// Addresses of one process: each may take seconds to try.
const MAX_ADDRESSES: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    fn ips(texts: &[&str]) -> Vec<IpAddr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn loopback_is_offered_only_if_there_is_nothing_else() {
        let all = ips(&[
            "127.0.0.1",
            "10.0.0.1",
            "::1",
            "fd00::1",
            "fe80::1",
            "169.254.0.1",
            "10.0.1.1",
        ]);
        assert_eq!(reachable(&all), ips(&["10.0.0.1", "10.0.1.1", "fd00::1"]));
        assert_eq!(
            reachable(&ips(&["127.0.0.1", "fe80::1"])),
            ips(&["127.0.0.1"])
        );
        assert_eq!(reachable(&[]), ips(&["127.0.0.1"]));
    }

    fn interface(name: &str, address: &str, prefix: u8) -> Interface {
        Interface {
            name: name.into(),
            address: address.parse().unwrap(),
            prefix,
        }
    }

    #[test]
    fn bridges_within_a_host_are_not_offered_unless_there_is_nothing_else() {
        let lo = interface("lo", "127.0.0.1", 8);
        let docker = interface("docker0", "172.17.0.1", 16);
        let virbr = interface("virbr0", "192.168.122.1", 24);
        let eth = interface("eth0", "10.0.0.1", 24);
        let all = vec![lo.clone(), docker.clone(), virbr, eth];
        assert_eq!(outer(all), ips(&["10.0.0.1"]));
        assert_eq!(outer(vec![lo, docker]), ips(&["127.0.0.1", "172.17.0.1"]));
    }

    #[test]
    fn addresses_in_a_subnet_of_ours_are_tried_first() {
        let ours = [
            interface("docker0", "172.17.0.1", 16),
            interface("eth0", "10.0.1.7", 24),
            interface("eth1", "fd00:1::7", 64),
        ];
        let texts = ["172.17.0.1:1", "10.0.2.1:1", "10.0.1.1:1", "[fd00:1::1]:1"];
        let parse = |texts: &[&str]| -> Vec<SocketAddr> {
            texts.iter().map(|text| text.parse().unwrap()).collect()
        };
        assert_eq!(
            in_order(parse(&texts), &ours),
            parse(&["10.0.1.1:1", "[fd00:1::1]:1", "172.17.0.1:1", "10.0.2.1:1"])
        );
        assert!(interface("x", "10.0.0.1", 0).reaches("1.2.3.4".parse().unwrap()));
        assert!(interface("x", "fd00::1", 0).reaches("::1".parse().unwrap()));
    }

    #[test]
    fn this_host_has_interfaces() {
        let all = interfaces().unwrap();
        let loopback = all.iter().find(|one| one.address.is_loopback()).unwrap();
        assert_eq!((&loopback.name[..], loopback.prefix), ("lo", 8));
    }

    #[test]
    fn the_kernel_says_which_interfaces_are_up() {
        assert_ne!(flags_of("lo").unwrap() & IFF_UP, 0);
        assert_eq!(flags_of("no such interface"), None);
    }

    #[test]
    fn a_locator_lists_what_was_bound() {
        let bound: SocketAddr = "127.0.0.1:4000".parse().unwrap();
        let locator = locator_of(bound, &[]).unwrap();
        assert_eq!(locator.as_str(), "127.0.0.1:4000");
        assert_eq!(addresses_in(&locator), Ok(vec![bound]));
        let offered = locator_of("0.0.0.0:4000".parse().unwrap(), &ips(&["10.0.0.9"])).unwrap();
        assert_eq!(offered.as_str(), "10.0.0.9:4000");
        let everywhere = locator_of("0.0.0.0:4000".parse().unwrap(), &[]).unwrap();
        assert!(
            addresses_in(&everywhere)
                .unwrap()
                .iter()
                .all(|address| address.port() == 4000)
        );
    }

    #[test]
    fn a_locator_has_few_addresses() {
        let many = ["10.0.0.1:1"; MAX_ADDRESSES + 1].join(",");
        assert!(addresses_in(&Locator::new(&many).unwrap()).is_err());
    }
}
