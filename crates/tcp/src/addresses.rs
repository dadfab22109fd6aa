//! Where this host can be reached, and how that is written down.
//!
//! The file is about unsafety in so far as it reads the list of interfaces that the C library makes.
#![allow(unsafe_code)]

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use mizzen_driver::{ConnectError, Locator};

/// The locator of a driver that listens at `bound`.
pub(crate) fn locator_of(bound: SocketAddr) -> io::Result<Locator> {
    let addresses = match bound.ip() {
        ip if !ip.is_unspecified() => vec![ip],
        // A socket on the unspecified IPv6 address takes IPv4 as well.
        IpAddr::V6(_) => reachable(&interfaces()?),
        IpAddr::V4(_) => {
            let only_v4: Vec<IpAddr> = interfaces()?.into_iter().filter(IpAddr::is_ipv4).collect();
            reachable(&only_v4)
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
fn interfaces() -> io::Result<Vec<IpAddr>> {
    let mut first: *mut libc::ifaddrs = std::ptr::null_mut();
    // SAFETY: `first` is a valid place for a pointer.
    if unsafe { libc::getifaddrs(&raw mut first) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let mut addresses = Vec::new();
    let mut next = first;
    while !next.is_null() {
        // SAFETY: getifaddrs succeeded, so `first` and what is reached by `ifa_next` up to a null pointer are
        // valid entries until freeifaddrs, which is called after this loop.
        let entry = unsafe { &*next };
        let is_up = entry.ifa_flags & libc::IFF_UP as libc::c_uint != 0;
        // SAFETY: `ifa_addr` of a valid entry is null or a valid address.
        let address = unsafe { ip_of(entry.ifa_addr) };
        addresses.extend(address.filter(|_| is_up));
        next = entry.ifa_next;
    }
    // SAFETY: `first` came from getifaddrs and no reference to its entries is left.
    unsafe { libc::freeifaddrs(first) };
    Ok(addresses)
}

/// The IP address in a socket address.
///
/// # Safety
///
/// `address` is null, or points to a socket address of the size that belongs to its family.
unsafe fn ip_of(address: *const libc::sockaddr) -> Option<IpAddr> {
    if address.is_null() {
        return None;
    }
    // SAFETY: not null, so the caller says that there is a socket address, which starts with its family.
    match i32::from(unsafe { (*address).sa_family }) {
        libc::AF_INET => {
            // SAFETY: the caller says that an address of this family has this size. It is read unaligned.
            let address = unsafe { address.cast::<libc::sockaddr_in>().read_unaligned() };
            Some(Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let address = unsafe { address.cast::<libc::sockaddr_in6>().read_unaligned() };
            Some(Ipv6Addr::from(address.sin6_addr.s6_addr).into())
        }
        _ => None,
    }
}

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

    #[test]
    fn this_host_has_interfaces() {
        assert!(interfaces().unwrap().iter().any(IpAddr::is_loopback));
    }

    #[test]
    fn a_locator_lists_what_was_bound() {
        let bound: SocketAddr = "127.0.0.1:4000".parse().unwrap();
        let locator = locator_of(bound).unwrap();
        assert_eq!(locator.as_str(), "127.0.0.1:4000");
        assert_eq!(addresses_in(&locator), Ok(vec![bound]));
        let everywhere = locator_of("0.0.0.0:4000".parse().unwrap()).unwrap();
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
