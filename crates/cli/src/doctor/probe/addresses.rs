//! The addresses of this host, as the C library lists them.
//!
//! The file is about unsafety in so far as it reads that list.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An interface, or one of its addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) interface: String,
    pub(crate) up: bool,
    /// None: the entry says only that there is such an interface.
    pub(crate) address: Option<IpAddr>,
}

/// All interfaces and all their addresses, in the system's order.
pub(crate) fn entries() -> io::Result<Vec<Entry>> {
    let mut first: *mut libc::ifaddrs = std::ptr::null_mut();
    // SAFETY: `first` is a valid place for a pointer.
    if unsafe { libc::getifaddrs(&raw mut first) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let mut entries = Vec::new();
    let mut next = first;
    while !next.is_null() {
        // SAFETY: getifaddrs succeeded, so `first` and what is reached by `ifa_next` up to a null pointer are
        // valid entries until freeifaddrs, which is called after this loop.
        let entry = unsafe { &*next };
        if !entry.ifa_name.is_null() {
            // SAFETY: the name of a valid entry is a string of C, valid as long as the entry; it is copied.
            let name = unsafe { CStr::from_ptr(entry.ifa_name) };
            entries.push(Entry {
                interface: name.to_string_lossy().into_owned(),
                up: entry.ifa_flags & libc::IFF_UP as libc::c_uint != 0,
                // SAFETY: `ifa_addr` of a valid entry is null or a valid address.
                address: unsafe { ip_of(entry.ifa_addr) },
            });
        }
        next = entry.ifa_next;
    }
    // SAFETY: `first` came from getifaddrs and no reference to its entries is left.
    unsafe { libc::freeifaddrs(first) };
    Ok(entries)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_host_has_a_loopback_interface() {
        let entries = entries().unwrap();
        assert!(entries.iter().any(|entry| entry.interface == "lo"));
    }
}
